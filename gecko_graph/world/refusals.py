"""Real refusals that a thread knows of: the same call is not proposed again while nothing is known to have changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from langchain_core.messages import AnyMessage, ToolMessage

from ..models.formatting import cut, one_line
from ..models.memory import real_results, rung_of
from ..state import Call, Complaint, Json, JsonObject, Step
from ..tools.spec import ToolSpec
from ..values.difference import json_equal
from ..values.digest import digest
from ..values.places import as_text, excerpt
from .channels import AttemptState

ERROR_CHARS = 300
SAME = "another call: really refused, and since then no write has succeeded and no read has shown anything else: "
AGAIN = "; where the user wants it all the same, make it again"


class Refusal(NamedTuple):
    """A real refusal of a call that may still hold."""

    error: Json
    is_over: bool
    """True where the user has spoken since: the call may be tried again."""


class Made(NamedTuple):
    """A call that ran, as far as it tells whether a refusal still holds."""

    name: str
    args: JsonObject
    status: str
    result: Json
    is_real: bool
    is_refusal: bool
    is_now: bool
    """Made in this turn."""


def is_same_call(one: Call, other: Call) -> bool:
    """Return whether two calls are of one tool with the same arguments."""
    return one["name"] == other["name"] and json_equal(one["args"], other["args"])


def find_refusal(call: Call, state: AttemptState, get: Callable[[str], ToolSpec | None]) -> Refusal | None:
    """Return the real refusal of this very call, unless a write has succeeded, or a read differed, since.

    Of this turn only what an attempt begins with can hold one: its own writes are simulated.
    """
    messages, steps, first = state.get("conversation", ()), state.get("steps") or [], len(state.get("replayed") or ())
    told = (each for each in messages if isinstance(each, ToolMessage) and each.status == "error")
    if not any(rung_of(each) == "real" for each in told) and not any(_is_refused(step) for step in steps[:first]):
        return None
    found: Refusal | None = None
    shown: dict[str, str] = {}
    for each in _made(messages, steps):
        is_read, key = _reads(get, each.name), digest([each.name, each.args])
        if each.is_refusal and each.name == call["name"] and json_equal(each.args, call["args"]):
            found = Refusal(each.result, not each.is_now)
        elif each.status == "ok" and not is_read:
            found = None
        elif each.status == "ok" and each.is_real:
            seen = digest(each.result)
            found = None if shown.setdefault(key, seen) != seen else found
            shown[key] = seen
    return found


def _made(messages: Sequence[AnyMessage], steps: Sequence[Step]) -> Iterator[Made]:
    """Yield the real calls of earlier turns, and what ran in this one."""
    for fact in real_results(messages):
        refused = fact["status"] == "error" and not fact.get("undecided")
        yield Made(fact["tool"], fact["args"], fact["status"], fact["result"], True, refused, False)
    for step in steps:
        if "outcome" in step:
            call, came = step["call"], step["outcome"]
            real = not came["simulated"]
            yield Made(call["name"], call["args"], came["status"], came["result"], real, _is_refused(step), True)


def _is_refused(step: Step) -> bool:
    outcome = step.get("outcome")
    is_error = outcome is not None and outcome["status"] == "error" and not outcome["simulated"]
    return is_error and not step["outcome"].get("undecided")


def complain(call: Call, state: AttemptState, get: Callable[[str], ToolSpec | None]) -> list[Complaint]:
    """Return the complaint about a write that was really refused; none once it is made again where it may be."""
    known = None if _reads(get, call["name"]) else find_refusal(call, state, get)
    if known is None or (known.is_over and _is_told(call, state.get("steps") or [])):
        return []
    told = SAME + cut(one_line(as_text(known.error)), budget=ERROR_CHARS) + AGAIN * known.is_over
    return [{"tool": call["name"], "path": "$", "expected": told, "got": excerpt(call["args"]), "source": "rule"}]


def _reads(get: Callable[[str], ToolSpec | None], name: str) -> bool:
    tool = get(name)
    return tool is not None and tool.reads


def _is_told(call: Call, steps: Sequence[Step]) -> bool:
    told = (step for step in steps if is_same_call(step["call"], call))
    return any(each["expected"].startswith(SAME) for step in told for each in step.get("complaints", ()))
