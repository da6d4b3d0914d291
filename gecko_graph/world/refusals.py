"""Refusals known in a thread, by a service or a person; the same call is not proposed again.

A service's refusal holds until something may have changed, a person's until the user speaks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from langchain_core.messages import ToolMessage

from ..models.formatting import cut, one_line
from ..models.memory import real_results, rung_of
from ..state import VERSION, Call, Complaint, Step
from ..tools.spec import ToolSpec
from ..values.difference import json_equal
from ..values.digest import digest
from ..values.places import as_text, excerpt
from .channels import AttemptState
from .records import unchanged

ERROR_CHARS = 300
PERSON = "person"
SAME = "another call: really refused, and since then no write has succeeded and no read has shown anything else: "
AGAIN = "; if the user wants it all the same, make it again"
OTHER, REJECTED = "another call: ", "rejected by the user: "
OTHER_PLAN = "the user wanted another plan: "

Get = Callable[[str], ToolSpec | None]


def is_same_call(one: Any, other: Any) -> bool:
    return one["name"] == other["name"] and json_equal(one["args"], other["args"])


def rejected_step(call: Call, reason: str) -> Step:
    """Return the step of a call that a person has rejected, and that was not made."""
    return {"v": VERSION, "call": call, "outcome": unchanged("error", reason, PERSON)}


def find_refusal(call: Call, state: AttemptState, get: Get) -> tuple[str, bool] | None:
    """Return as `find_last`; in this turn only replayed steps can be refusals, since writes are simulated."""
    messages, replayed = state.get("conversation", ()), state.get("replayed")
    if not messages and not replayed:
        return None
    steps, first = state.get("steps") or [], len(replayed or ())
    told = any(isinstance(each, ToolMessage) and each.status == "error" and rung_of(each) for each in messages)
    if not told and not any(_is_refused(step.get("outcome")) for step in steps[:first]):
        return None
    known = real_results(messages, rungs=("real", PERSON))
    past = ({"call": {"name": each["tool"], "args": each["args"]}, "outcome": each} for each in known)
    return find_last(call, [*((step, True) for step in past), *((step, False) for step in steps)], get)


def find_last(call: Call, made: Iterable[tuple[Any, bool]], get: Get) -> tuple[str, bool] | None:
    """Return the error by which this call was really refused, and whether the user has spoken since.

    None if a write has succeeded or a read differed since; for a person's rejection, if the call was made since. `made`
    are steps, each with whether it is of an earlier turn.
    """
    found: tuple[str, bool] | None = None
    shown: dict[str, str] = {}
    for step, is_past in made:
        other, outcome = step["call"], step.get("outcome", {"status": "error", "simulated": True})
        if _is_refused(outcome) and is_same_call(other, call):
            found = cut(one_line(as_text(outcome["result"])), budget=ERROR_CHARS), is_past
        elif found and found[0].startswith(REJECTED):
            found = None if outcome["status"] == "ok" and is_same_call(other, call) else found
        elif outcome["status"] == "ok" and not _reads(get, other["name"]):
            found = None
        elif outcome["status"] == "ok" and not outcome.get("simulated"):
            key, seen = digest([other["name"], other["args"]]), digest(outcome["result"])
            found = found if shown.get(key, seen) == seen else None
            shown[key] = seen
    return found


def complain(call: Call, state: AttemptState, get: Get) -> list[Complaint]:
    """Return the complaint about a write that was really refused, or a call that a person has rejected.

    Empty if the call is repeated after the user spoke.
    """
    known = find_refusal(call, state, get)
    if known and _reads(get, call["name"]) and not known[0].startswith(REJECTED):
        return []
    return tell(call, known, is_told=known is not None and _is_told(call, state.get("steps") or []))


def tell(call: Call, known: tuple[str, bool] | None, *, is_told: bool) -> list[Complaint]:
    """Return the complaint about a call `known` to be refused; none if the user spoke and the planner was told."""
    if known is None or (known[1] and is_told):
        return []
    told = (OTHER if known[0].startswith(REJECTED) else SAME) + known[0] + AGAIN * known[1]
    return [{"tool": call["name"], "path": "", "expected": told, "got": excerpt(call["args"]), "source": "rule"}]


def _is_refused(outcome: Any) -> bool:
    if not outcome or outcome["status"] != "error":
        return False
    if outcome.get("rung") == PERSON:
        return str(outcome["result"]).startswith(REJECTED)
    return not (outcome.get("simulated") or outcome.get("undecided"))


def _reads(get: Get, name: str) -> bool:
    tool = get(name)
    return tool is not None and tool.reads


def _is_told(call: Call, steps: Sequence[Step]) -> bool:
    told = (step for step in steps if is_same_call(step["call"], call))
    starts = (SAME, OTHER + REJECTED)
    return any(each["expected"].startswith(starts) for step in told for each in step.get("complaints", ()))
