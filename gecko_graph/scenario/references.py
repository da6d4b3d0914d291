"""References in recorded replies: `{{ calls[0].result.id }}` stands for what an earlier call of the same run returned.

They are filled in only where a scenario has `references: true`. Between the braces stands an expression of the contract
language over two names; a text that holds `{{` itself is written with `{{ "{{" }}`.

| name | what |
| --- | --- |
| `calls` | the attempt's calls that ran before the reply, from 0: `name`, `args`, `status`, `result`, `rung` |
| `turns` | earlier turns, from 0, each with the `calls` that the conversation remembers |
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from ..contracts.language.expression import Expression, Scope
from ..errors import ContractError, EvaluationFailed
from ..models.formatting import text_of
from ..models.memory import recall_calls, rung_of
from ..models.node import NODE_STATE
from ..state import Json, JsonObject
from ..values.leaves import as_text, map_texts, scalars
from ..world.rung import answered_calls

NAMES = frozenset({"calls", "turns"})
ESCAPED = '{{ "{{" }}'
_NAME = re.compile(r"(?!.*__)[A-Za-z]\w*", re.ASCII)


def fill(reply: Json, where: str, attempt: int) -> Json:
    """Return a reply with its references filled in from the run of the node that asks; `where` is for messages.

    Raises:
        EvaluationFailed: A reference names nothing that the run has, or cannot be read.
    """
    return _filled(reply, where, cache(lambda: known_calls(NODE_STATE.get(), attempt)))


def check_references(reply: Json, where: str) -> Iterator[str]:
    """Yield what is wrong with the form of a reply's references, each with its place."""
    for place, text in scalars(reply, keys=True):
        if isinstance(text, str):
            try:
                _parts(text, where + "".join(_step(each) for each in place))
            except ContractError as error:
                yield str(error)


def known_calls(state: Mapping[str, Any], attempt: int) -> JsonObject:
    """Return `calls` and `turns` as a node's state has them."""
    steps = state.get("steps")
    if steps is None:
        steps = next((each["steps"] for each in state.get("attempts_to_judge") or () if each["number"] == attempt), ())
    rungs = [step["outcome"]["rung"] for step in steps if "outcome" in step]
    calls = [{**call, "rung": rung} for call, rung in zip(answered_calls(steps), rungs, strict=True)]
    return {
        "calls": calls,
        "turns": _earlier_turns(state.get("conversation") or recall_calls(state.get("messages", ()))),
    }


def _earlier_turns(messages: Sequence[AnyMessage]) -> list[JsonObject]:
    turns: list[JsonObject] = []
    made: dict[str | None, JsonObject] = {}
    for message in messages:
        if isinstance(message, HumanMessage):
            turns.append({"calls": []})
        elif isinstance(message, AIMessage):
            made = {call["id"]: {"name": call["name"], "args": call["args"]} for call in message.tool_calls}
        elif isinstance(message, ToolMessage) and turns and rung_of(message):
            try:
                result = json.loads(text_of(message))
            except ValueError:
                result = text_of(message)
            call = {**made.get(message.tool_call_id, {}), "result": result, "rung": rung_of(message)}
            turns[-1]["calls"].append(call)
    return turns


def _filled(value: Json, where: str, known: Callable[[], JsonObject]) -> Json:
    def fill_text(text: str) -> Json:
        if "{{" not in text:
            return text
        try:
            parts = _parts(text, where)
        except ContractError as error:
            raise EvaluationFailed(str(error)) from None
        scope = Scope(known())
        values = [part if isinstance(part, str) else part.evaluate(scope) for part in parts]
        if len(values) == 1:
            return values[0]
        return "".join(map(as_text, values))

    return map_texts(value, fill_text, keys=True)


def _parts(text: str, where: str) -> list[str | Expression]:
    """Return plain texts and expressions in their order. Raises ContractError."""
    parts: list[str | Expression] = []
    plain: list[str] = []
    end = 0
    while (begin := text.find("{{", end)) >= 0:
        plain.append(text[end:begin])
        if text.startswith(ESCAPED, begin):
            plain.append("{{")
            end = begin + len(ESCAPED)
        elif text.startswith("{", begin + 2):  # of three the last two open
            plain.append("{")
            end = begin + 1
        else:
            close = text.find("}}", begin)
            if close < 0:
                raise ContractError(f"{where}: a reference ends with }}}}; a text that holds {{{{ has {ESCAPED}")
            parts += filter(None, ["".join(plain)])
            parts.append(Expression.compile(text[begin + 2 : close].strip(), names=NAMES, where=where))
            plain, end = [], close + 2
    return [*parts, *filter(None, ["".join([*plain, text[end:]])])] or [""]


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _NAME.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"
