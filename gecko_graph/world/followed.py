"""Find the effects of a real write on other collections: dependent things that disappear, or appear with a new one.

They are observed by reads directly after the write (`Observation.later`). Learning makes rules of them, and a running
agent withdraws rules that its own reads contradict.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from ..contracts.contract import Contract
from ..contracts.run import ContractRun, subtree
from ..errors import EvaluationFailed, PatchConflict
from ..state import Call, Json, JsonObject
from ..tools import Toolkit, ToolSpec
from ..values.observation import Observation
from ..values.patch import booked_patch, find, fold_patches, tokens
from ..values.places import clock
from .records import ExecutedCall
from .rung import RungRequest

LOG = logging.getLogger(__name__)
ANY_FIELD, MOST_READS = "*", 50
_Read = tuple[tuple[str, ...], JsonObject, dict[str, Json]]


class Followed(NamedTuple):
    """The evidence of reads after a write on one collection, `root`.

    Args:
        field: The member by which its things refer to the written one; "" if they are below it, `ANY_FIELD` if none.
        came: New things that no call created, by key.
        is_so: Whether things disappeared, or appeared.
    """

    root: str
    field: str
    came: Mapping[str, Json]
    is_so: bool

    @property
    def name(self) -> str:
        return f"{self.root} by {self.field or 'their paths'}"


def open_run(contract: Contract, tool: ToolSpec, row: Observation, seed: int = 0) -> ContractRun:
    """Return a contract's run for a row's call, in the state before it."""
    call, state = Call(id="call_1", name=tool.name, args=row.args), row.before or {}
    about: Any = {"parameters": tool.parameters, "call": call, "now": clock(state)}
    return contract.open(args=row.args, state=state, seed=seed, **about)


def find_followed(toolkit: Toolkit, row: Observation) -> Iterator[Followed]:
    """Yield the changes of other collections that reads directly after a successful write show."""
    tool = toolkit[row.tool]
    kind = tool.derived.kind if tool.derived else ""
    if row.status != "ok" or row.before is None or not row.later or kind not in ("create", "remove"):
        return
    if (place := _place_of(tool, row)) is None:
        return
    (root, *above), key = place[:-1], place[-1]
    for there, part, things in _reads(toolkit, row):
        held: Any = subtree(row.before, there)
        if there == place[:-1] or not isinstance(held, dict):
            continue
        if kind == "remove":
            yield from _gone(there, part, things, held, key)
        elif there[1:] == (*above, key) and part == {}:
            came = {name: each for name, each in things.items() if name not in held}
            yield Followed(there[0], "", came, bool(came))
        elif len(there) == 1 and there[0] != root and "" not in part:
            yield from _come(there[0], part, {name: each for name, each in things.items() if name not in held}, key)


def _gone(
    there: tuple[str, ...], part: JsonObject, things: Mapping[str, Json], held: JsonObject, key: str
) -> Iterator[Followed]:
    """Yield whether the things that referred to the removed one's key are gone."""
    found = dict[str, bool]()
    for name, each in held.items() if len(there) == 1 else ():
        if isinstance(each, dict) and (part.get("") == name or part.items() <= each.items()):
            for field in _naming(each, key):
                found[field] = found.get(field, True) and name not in things
    yield from (Followed(there[0], field, {}, is_gone) for field, is_gone in found.items())


def _come(root: str, part: JsonObject, came: Mapping[str, Json], key: str) -> Iterator[Followed]:
    by = dict[str, dict[str, Json]]()
    for name, each in came.items():
        for field in _naming(each, key):
            by.setdefault(field, {})[name] = each
    yield from (Followed(root, field, some, True) for field, some in by.items())
    if not by:
        named = [*_naming(part, key)]
        yield from (Followed(root, field, {}, False) for field in ([ANY_FIELD] if part == {} else named))


def _naming(thing: Any, key: str) -> Iterator[str]:
    """Yield the members whose value is the key."""
    for field, value in thing.items() if isinstance(thing, dict) else ():
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value) == key:
            yield field


def _place_of(tool: ToolSpec, row: Observation) -> tuple[str, ...] | None:
    """Return the keys that lead to a call's thing; None if they are unknown."""
    assert tool.derived is not None
    at = tool.derived.data["evidence"].get("key")
    try:
        given = {"id": find(row.result, at)} if tool.derived.kind == "create" and at else {}
        answer = open_run(tool.derived.place, tool, row).assume(**given).answer_known()
    except (EvaluationFailed, PatchConflict):
        return None
    place: Any = answer.result if answer else None
    return tuple(map(str, [*place[0], place[1]])) if place and place[1] not in ("", None) else None


def _reads(toolkit: Toolkit, row: Observation) -> Iterator[_Read]:
    """Yield the content of each read after a write: a collection, the filter, and the things by key."""
    for each in row.later[:MOST_READS]:
        tool = toolkit.get(str(each["name"]))
        if tool is None or tool.derived is None or "observes" not in tool.derived.data:
            continue
        status: Any = each.get("status", "ok")
        seen = replace(row, tool=tool.name, args=each["args"], status=status, result=each["result"])
        if "place" in tool.derived.data.get("let", {}):
            if place := _place_of(tool, seen):
                yield place[:-1], {"": place[-1]}, {place[-1]: seen.result} if status == "ok" else {}
            continue
        with suppress(EvaluationFailed):
            run = open_run(tool.derived.contract, tool, seen)
            shown = [(tuple(tokens(one["path"])), one.get("value")) for one in run.observe(seen.result)]
            for there, part in run.shown(seen.result).items() if status == "ok" else ():
                things = {path[-1]: value for path, value in shown if path[:-1] == there}
                if part is not None:
                    yield there, part, things


def withdraw_unfollowed(request: RungRequest, entry: ExecutedCall, toolkit: Toolkit) -> None:
    """Withdraw a rule on effects of the last write in other collections if this read contradicts it."""
    steps = request.steps
    at = next((at for at in reversed(range(len(steps))) if not toolkit.is_read(steps[at]["call"]["name"])), None)
    if at is None or not request.tool.reads or "outcome" not in steps[at]:
        return
    call, outcome = steps[at]["call"], steps[at]["outcome"]
    rules = toolkit[call["name"]].contract
    if outcome["simulated"] or rules is None or not rules.follows:
        return
    before = fold_patches(request.before, [booked_patch(step["outcome"]) for step in steps[:at] if "outcome" in step])
    row = Observation(call["name"], call["args"], outcome["status"], outcome["result"], before)
    read = {**request.call, "status": entry["status"], "result": entry.get("result")}
    for one in find_followed(toolkit, replace(row, later=[read])):
        for name in rules.follows if not one.is_so else ():
            if name == one.name or (one.field == ANY_FIELD and name.startswith(f"{one.root} by ")):
                rules.withdraw(name)
                LOG.warning("%s: a real read contradicts what is said to follow it: %s", call["name"], name)
                if lessons := toolkit[call["name"]].lessons:
                    lessons.note(call, outcome, refuted=[name])
