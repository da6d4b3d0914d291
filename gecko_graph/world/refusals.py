"""Real refusals that a thread knows of: the same call is not proposed again while nothing is known to have changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from langchain_core.messages import ToolMessage

from ..models.formatting import cut, one_line
from ..models.memory import real_results, rung_of
from ..state import Call, Complaint, Step
from ..tools.spec import ToolSpec
from ..values.difference import json_equal
from ..values.digest import digest
from ..values.places import as_text, excerpt
from .channels import AttemptState

ERROR_CHARS = 300
SAME = "another call: really refused, and since then no write has succeeded and no read has shown anything else: "
AGAIN = "; where the user wants it all the same, make it again"

Get = Callable[[str], ToolSpec | None]


def is_same_call(one: Any, other: Any) -> bool:
    """Return whether two calls are of one tool with the same arguments, whatever their ids."""
    return one["name"] == other["name"] and json_equal(one["args"], other["args"])


def find_refusal(call: Call, state: AttemptState, get: Get) -> tuple[str, bool] | None:
    """Return as `find_last`; of this turn only what an attempt begins with can hold a refusal: it simulates writes."""
    messages, steps, first = state.get("conversation", ()), state.get("steps") or [], len(state.get("replayed") or ())
    told = any(isinstance(each, ToolMessage) and each.status == "error" and rung_of(each) for each in messages)
    if not told and not any(_is_refused(step.get("outcome")) for step in steps[:first]):
        return None
    past = ({"call": {"name": each["tool"], "args": each["args"]}, "outcome": each} for each in real_results(messages))
    return find_last(call, [*((step, True) for step in past), *((step, False) for step in steps)], get)


def find_last(call: Call, made: Iterable[tuple[Any, bool]], get: Get) -> tuple[str, bool] | None:
    """Return by which error this very call was really refused, and whether the user has spoken since.

    None once a write has succeeded, or a read differed. `made` are steps, each with whether it is of an earlier turn.
    """
    found: tuple[str, bool] | None = None
    shown: dict[str, str] = {}
    for step, is_past in made:
        other, outcome = step["call"], step.get("outcome", {"status": "error", "simulated": True})
        if _is_refused(outcome) and is_same_call(other, call):
            found = cut(one_line(as_text(outcome["result"])), budget=ERROR_CHARS), is_past
        elif outcome["status"] == "ok" and not _reads(get, other["name"]):
            found = None
        elif outcome["status"] == "ok" and not outcome.get("simulated"):
            key, seen = digest([other["name"], other["args"]]), digest(outcome["result"])
            found = found if shown.get(key, seen) == seen else None
            shown[key] = seen
    return found


def complain(call: Call, state: AttemptState, get: Get) -> list[Complaint]:
    """Return the complaint about a write that was really refused; none once it is made again where the user spoke."""
    known = None if _reads(get, call["name"]) else find_refusal(call, state, get)
    return tell(call, known, is_told=known is not None and _is_told(call, state.get("steps") or []))


def tell(call: Call, known: tuple[str, bool] | None, *, is_told: bool) -> list[Complaint]:
    """Return the complaint about a call that is `known` to be refused, unless the user spoke and it `is_told`."""
    if known is None or (known[1] and is_told):
        return []
    told = SAME + known[0] + AGAIN * known[1]
    return [{"tool": call["name"], "path": "$", "expected": told, "got": excerpt(call["args"]), "source": "rule"}]


def _is_refused(outcome: Any) -> bool:
    is_error = bool(outcome) and outcome["status"] == "error" and not outcome.get("simulated")
    return is_error and not outcome.get("undecided")


def _reads(get: Get, name: str) -> bool:
    tool = get(name)
    return tool is not None and tool.reads


def _is_told(call: Call, steps: Sequence[Step]) -> bool:
    told = (step for step in steps if is_same_call(step["call"], call))
    return any(each["expected"].startswith(SAME) for step in told for each in step.get("complaints", ()))
