"""A person's decisions on calls, in the format of LangChain's HumanInTheLoopMiddleware.

A question has an id; an answer is valid once, and only for its question.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from itertools import chain
from typing import Any, NotRequired

from langgraph.config import get_config
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from ..errors import GeckoError, StateError, did_you_mean
from ..models.ask import FunctionCall, Reply
from ..models.formatting import format_complaint
from ..schemas.complaints import find_complaints
from ..state import VERSION, Call, JsonObject
from ..tools import Toolkit
from ..values.digest import check_json, digest, open_json
from ..values.places import excerpt
from .claims import ANSWERS, BACKOFF_S, KEY_CHARS, MOST_TRIES, Claims, Steps, format_call, use, wait
from .questions import find_raised, raise_question, spend, take_answer

NO_SAVER = (
    "the review pauses the run, which needs a checkpointer: give one to the agent, or to the graph around it; "
    "interrupt_on='none' with tools that only read needs none"
)
DOUBT_DECISIONS = ("happened", "make_now", "skip")
IN_DOUBT = (
    "{tool} was called, and it is not known whether it took effect. happened: it did; your message is its result. "
    "make_now: it did not; make the call now. skip: leave it as it is.\n{call}"
)
DELETED = (
    "{tool} was called for this message before the thread was deleted; in the current thread it was not. "
    "happened: that call counts, with its result or the one in your message. make_now: make the call. skip: leave it "
    "as it is.\n{call}"
)
NO_ID = 'it does not say which question it answers: answer with its id, as {"id": ..., "decisions": [...]}'
OTHER_ID = "it was given to another question, or this one was answered before: decide again, with this question's `id`"


class Action(TypedDict):
    """A call in the format of LangChain's `Action`."""

    name: str
    args: JsonObject


class Decision(TypedDict):
    """One decision.

    `edit` has an `edited_action`, `respond` a `message`; `reject` and `happened` may have a message.
    """

    type: str
    edited_action: NotRequired[Action]
    message: NotRequired[str]


class Response(TypedDict):
    """A decision on each call, in order; with a question's `id` it is valid only for that question."""

    id: NotRequired[str]
    decisions: list[Decision]


def ask_person(
    calls: Sequence[Call],
    descriptions: Sequence[str],
    toolkit: Toolkit,
    claims: Claims | None,
    *,
    allowed: Sequence[Sequence[str]],
    needs_id: bool = False,
    more: JsonObject | None = None,
) -> Generator[list[FunctionCall], list[Reply], list[Decision]]:
    """Ask a person for a decision on each call, one of those `allowed` for it.

    It interrupts the run, again if the answer is invalid; then the same question shows the problem. An answer is valid
    once, for a question that this task has raised in a saved checkpoint. It names the question by its `id` or by
    LangGraph's interrupt id. The interrupt id belongs to the task, so it does not suffice if an identical question was
    answered before. Without either it answers the turn's first question, unless `needs_id`.

    The node must not have any effect before, since a resume runs it again. A caller that asks again after an edit gets
    its `edited` back from `find_edited`. `more` are further keys of the question: `edited`, and `gecko` with the
    descriptions as data, for other front ends.

    Raises:
        GeckoError: There is no checkpointer, so a run cannot pause.
    """
    if claims is None:
        raise GeckoError(NO_SAVER)
    thread_id, problem, config = claims.standing.thread_id, "", get_config()
    content = digest([thread_id, claims.path, claims.turn, [*calls], [*descriptions], [*map(list, allowed)]])
    while True:
        answered = yield from use(claims.ledger.read, thread_id, scope=claims.answers)
        before = sum(row["content"] == content for row in answered)
        own = digest([content, before])[:KEY_CHARS]
        raised = yield from use(find_raised, claims.standing)
        answer, is_addressed = take_answer(config["configurable"]) if raised is not None else (None, False)
        decisions: list[Decision] = []
        if answer is not None:
            is_bare = (is_addressed and not before) or not (needs_id or answered)
            if not (problem := find_mismatch(answer, own, raised, is_bare=is_bare)):
                decisions, problem = read_decisions(answer, calls, toolkit, allowed)
        if not decisions:
            first = f"The answer could not be used: {problem}\n\n{descriptions[0]}" if problem else descriptions[0]
            request = build_request(calls, [first, *descriptions[1:]], allowed)
            schema = build_schema(own, allowed)
            raise raise_question({"id": own, **request, **(more or {})}, config["configurable"], schema)
        row = {"v": VERSION, "rev": 1, "content": content, "decisions": decisions}
        if (yield from use(claims.ledger.claim, thread_id, f"{ANSWERS}{own}", claims.answers, row)):
            yield from use(spend, claims.standing)
            return decisions
        problem = OTHER_ID


def find_mismatch(answer: Any, own: str, raised: Any, *, is_bare: bool) -> str:
    """Return why an answer is not for the question with the id `own`, "" if it is; one without an id if it `is_bare`.

    `raised` is the question that the task has raised.
    """
    named = answer.get("id") if isinstance(answer, Mapping) else None
    if not isinstance(raised, Mapping) or raised.get("id") != own or named not in (None, own):
        return OTHER_ID
    return "" if named is not None or is_bare else NO_ID


def find_edited(claims: Claims) -> Steps:
    """Return `edited` of the question that this task has raised; None without a question."""
    raised = yield from use(find_raised, claims.standing)
    return raised.get("edited") if isinstance(raised, Mapping) else None


def settle_doubt(
    claims: Claims, row: JsonObject, toolkit: Toolkit, timeout_s: float, *, is_keyed: bool, needs_id: bool = False
) -> Steps:
    """Resolve a call in doubt; return its row and whether to make the call again here.

    A tool with an idempotency key is called again with the same key, which is no second call. Otherwise a person
    decides: `happened`, with the result; `make_now`, as it did not happen; `skip`, to leave it in doubt.
    """
    if is_keyed and row["tries"] < MOST_TRIES and not row.get("deleted"):
        yield from wait(BACKOFF_S * 2 ** (row["tries"] - 1))
        return (yield from claims.retake(row, timeout_s)), True
    (decision,) = yield from ask_doubts([row], toolkit, claims, needs_id=needs_id)
    if decision["type"] == "make_now":
        return (yield from claims.retake(row, timeout_s)), True
    return (yield from claims.settle(row, **settled_by(decision, row), **claims.here)), False


def ask_doubts(rows: Sequence[JsonObject], toolkit: Toolkit, claims: Claims, *, needs_id: bool = False) -> Steps:
    """Return a person's decisions on calls in doubt."""
    calls: list[Call] = [row["call"] for row in rows]
    texts = [DELETED if row.get("deleted") else IN_DOUBT for row in rows]
    asked = [text.format(tool=call["name"], call=format_call(call)) for text, call in zip(texts, calls, strict=True)]
    allowed = [DOUBT_DECISIONS for _ in calls]
    return (yield from ask_person(calls, asked, toolkit, claims, allowed=allowed, needs_id=needs_id))


def settled_by(decision: Decision, row: JsonObject) -> JsonObject:
    """Return the fields of a claim's row after the decision that the call happened, or is left in doubt."""
    now, message = time.time(), decision.get("message")
    if decision["type"] == "skip":
        return {"status": "left", "ended_at": now}
    result = open_json(message) if message else row.get("result") if row.get("deleted") else None
    return {"status": "ok", "result": result, "by": "person", "ended_at": now}


def build_request(calls: Sequence[Call], descriptions: Sequence[str], allowed: Sequence[Sequence[str]]) -> JsonObject:
    """Return the HITLRequest: an action for each call, in order, and the allowed decisions, by the tool's name."""
    actions = [
        {"name": call["name"], "args": call["args"], "description": text}
        for call, text in zip(calls, descriptions, strict=True)
    ]
    by_name = {call["name"]: [*words] for call, words in zip(calls, allowed, strict=True)}
    configs = [{"action_name": name, "allowed_decisions": words} for name, words in by_name.items()]
    return {"action_requests": actions, "review_configs": configs}


def build_schema(question: str, allowed: Sequence[Sequence[str]]) -> JsonObject:
    """Return the JSON Schema of the answer to a question, for forms of front ends."""
    schema = TypeAdapter(Response).json_schema()
    schema["properties"]["id"]["const"] = question
    schema["properties"]["decisions"] |= {"minItems": len(allowed), "maxItems": len(allowed)}
    schema["$defs"]["Decision"]["properties"]["type"]["enum"] = [*dict.fromkeys(chain(*allowed))]
    return schema


def read_decisions(
    answer: object, calls: Sequence[Call], toolkit: Toolkit, allowed: Sequence[Sequence[str]]
) -> tuple[list[Decision], str]:
    """Return the decisions of a HITLResponse, or the problem and how to correct it."""
    given = answer.get("decisions") if isinstance(answer, Mapping) else answer
    if not isinstance(given, list | tuple):
        return [], f'expected {{"decisions": [...]}} with a decision for each call, got {excerpt(answer)}'
    if len(given) != len(calls):
        some = "1 decision" if len(calls) == 1 else f"{len(calls)} decisions"
        return [], f"expected {some}, one for each call in order, got {len(given)}"
    decisions: list[Decision] = []
    for number, (raw, call, words) in enumerate(zip(given, calls, allowed, strict=True), 1):
        decision, problem = read_decision(raw, call, toolkit, words)
        if decision is None:
            return [], f"decision {number} ({call['name']}): {problem}"
        decisions.append(decision)
    return decisions, ""


def read_decision(raw: object, call: Call, toolkit: Toolkit, allowed: Sequence[str]) -> tuple[Decision | None, str]:
    word = raw.get("type") if isinstance(raw, Mapping) else None
    if not isinstance(raw, Mapping) or word not in allowed:
        return None, f"expected a `type` of {', '.join(allowed)}, got {excerpt(raw if word is None else word)}"
    message = raw.get("message")
    if word == "respond" and not isinstance(message, str):
        return None, f"respond: expected the call's result as a text in `message`, got {excerpt(message)}"
    if word == "edit":
        edited, problem = read_edit(raw.get("edited_action"), toolkit)
        return (None, f"edit: {problem}") if edited is None else ({"type": "edit", "edited_action": edited}, "")
    decision: Decision = {"type": str(word)}
    return {**decision, "message": str(message)} if message else decision, ""


def read_edit(raw: object, toolkit: Toolkit) -> tuple[Action | None, str]:
    """Return an edited call that is valid for its tool, or None and the problem."""
    if not isinstance(raw, Mapping) or not isinstance(raw.get("args"), dict) or not isinstance(raw.get("name"), str):
        return None, f'expected `edited_action` to be {{"name": ..., "args": {{...}}}}, got {excerpt(raw)}'
    tool = toolkit.get(raw["name"])
    if tool is None or tool.real is None:
        known = [each.name for each in toolkit if each.real is not None]
        return None, f"no tool {excerpt(raw['name'])} can be called{did_you_mean(raw['name'], known)}"
    try:
        check_json(raw["args"], what="args")
    except StateError as error:
        return None, str(error)
    complaints = [format_complaint(each) for each in find_complaints(tool, raw["args"])]
    return (None, "; ".join(complaints)) if complaints else ({"name": tool.name, "args": raw["args"]}, "")
