"""The model's replies: each unchanged, with the role and the class that was asked for, and its defect, if any."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.outputs import LLMResult

from gecko_graph.models.ask import Ask, Dialogue, ModelAsk, Reply
from gecko_graph.models.conversation import read_message
from gecko_graph.models.reply import Unreadable, read_reply
from gecko_graph.models.roles import REPLIES
from gecko_graph.state import JsonObject

CLASSES = {each.__name__: each for replies in REPLIES.values() for each in replies}
KINDS = {
    r"has no end": "cut off",
    r"no JSON object": "prose",
    r"is empty": "empty",
    r"not JSON": "broken JSON",
    r"does not fit": "another shape",
    r"different answers|JSON values": "several answers",
    r"nested|stored": "cannot be stored",
}
"""The kind of defect, by a pattern of the reader's reason."""
MOST_LOGPROBS = 12
"""Tokens of a reply whose logprobs are kept."""


class Heard:
    """The replies of one case, in order."""

    def __init__(self, case: str) -> None:
        self._case, self._lock = case, Lock()
        self.rows: list[JsonObject] = []
        self.silent: list[str] = []
        """Questions that gave neither a value nor a reason."""
        self.failures: Counter[str] = Counter()

    def listen(self, ask: ModelAsk, dialogue: Dialogue) -> Dialogue:
        """Record each reply of a dialogue, and its result."""
        call = next(dialogue)
        while True:
            said = yield call
            if not isinstance(call.messages, Mapping):  # a decision model's replies are recorded by an `Ear`
                self.note(ask.role, said, ask if isinstance(ask, Ask) else None)
            try:
                call = dialogue.send(said)
            except StopIteration as done:
                reply: Reply = done.value
                with self._lock:
                    self.failures.update([reply.failure] if reply.failure else [])
                    self.silent += [] if (reply.value is None) != (not reply.failure) else [ask.role]
                return reply

    def note(self, role: str, said: Any, ask: Ask | None = None) -> None:
        """Record a reply or an error; `ask` if an object was asked for. A script's replies are not recorded."""
        if isinstance(said, AIMessage) and not said.response_metadata:
            return
        row: JsonObject = {"case": self._case, "role": role, "reply": None, "ids": []}
        row |= {"reply": ask.reply.__name__, "ids": [*ask.ids]} if ask else {}
        row |= as_row(said) if isinstance(said, AIMessage) else {"error": f"{type(said).__name__}: {said}"[:300]}
        # OpenAI's client raises if a reply with a bound schema is cut off
        if completion := getattr(said, "completion", None):
            spent, choice = completion.usage, completion.choices[0]
            row |= as_row(AIMessage(choice.message.content or "", response_metadata={"finish_reason": "length"}))
            row["tokens"] = [spent.prompt_tokens, spent.completion_tokens]
        with self._lock:
            self.rows.append({**row, "kind": find_kind(row)})


class Ear(BaseCallbackHandler):
    """Records the replies of a model that no `Models` asks: the agent under test, or the model of a decision model."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard

    def on_llm_end(self, response: LLMResult, *, tags: Sequence[str] | None = None, **kwargs: Any) -> None:
        role = next((tag.removeprefix("gecko:") for tag in tags or () if tag.startswith("gecko:")), "planner")
        for made in response.generations[0][:1]:
            self._heard.note(role, getattr(made, "message", made.text))


def as_row(said: AIMessage) -> JsonObject:
    usage: Any = said.usage_metadata or {}
    return {
        "content": said.content,
        "tool_calls": [{key: call[key] for key in ("name", "args", "id")} for call in said.tool_calls],
        "invalid_tool_calls": [{**call} for call in said.invalid_tool_calls],
        "finish": said.response_metadata.get("finish_reason"),
        "tokens": [usage.get("input_tokens", 0), usage.get("output_tokens", 0)],
        **({"logprobs": _shorten(logprobs)} if (logprobs := said.response_metadata.get("logprobs")) else {}),
    }


def _shorten(logprobs: JsonObject) -> JsonObject:
    """Return the logprobs of the first tokens, with their likeliest alternatives."""

    def bare(each: JsonObject) -> JsonObject:
        return {"token": each["token"], "logprob": round(each["logprob"], 4)}

    first = logprobs["content"][:MOST_LOGPROBS]
    return {"content": [{**bare(each), "top_logprobs": [*map(bare, each["top_logprobs"])]} for each in first]}


def as_message(row: JsonObject) -> AIMessage:
    calls = {key: row[key] for key in ("tool_calls", "invalid_tool_calls")}
    told = {"finish_reason": row["finish"], "logprobs": row.get("logprobs")}
    return AIMessage(row["content"], response_metadata=told, **calls)


def find_kind(row: JsonObject) -> str:
    """Return the kind of a reply: `read`, a defect, or an error of the endpoint."""
    if "content" not in row:
        return "error"
    reason = find_reason(row)
    odd = next((kind for pattern, kind in KINDS.items() if re.search(pattern, reason)), "other" if reason else "")
    if row["reply"] is None:
        return odd or ("calls" if row["tool_calls"] else "cut off" if row["finish"] == "length" else "words")
    return odd or "read"


def find_reason(row: JsonObject) -> str:
    """Return why the reader refuses a reply, or an empty text. It raises nothing but `Unreadable`."""
    message = as_message(row)
    if row["reply"] is None:
        return read_message(message)[1] or ""
    try:
        read_reply(message, CLASSES[row["reply"]], ids=row["ids"])
    except Unreadable as problem:
        return str(problem)
    return ""


def count_kinds(rows: Sequence[JsonObject]) -> dict[str, int]:
    return dict(Counter(row["kind"] for row in rows).most_common())
