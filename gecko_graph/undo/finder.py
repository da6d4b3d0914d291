"""Calls that undo a write: a search over forks of a `World`, by the known effects of contracts."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from typing import Any, TypeAlias

from ..context import GeckoContext
from ..errors import GeckoError
from ..schemas.specimens import noun
from ..state import RUNTIME, Call, Json, JsonObject, Operation, Patch
from ..tools import Toolkit, ToolSpec
from ..values.difference import json_equal, make_patch
from ..values.digest import digest_apart_from
from ..values.notes import notes_of
from ..values.patch import find, tokens
from ..values.places import pointer, scalars, scalars_of
from ..world.provenance import is_planned
from ..world.records import Hole, Undo, UndoCall
from ..world.rung import DECIDING
from ..world.world import World
from .arguments import ARGUMENTS, arguments, changed, effects_of, fixed_keys, named

LIMIT_S = 0.2
"""Limit of processor time for one write, in seconds."""
SLOWEST = 5
"""Limit of wall time, as a multiple of the processor time, for machines with other work."""
DEEPEST = 3
"""Most calls that undo one call."""
MOST_CALLS = 400
"""Most calls to try for one write; more take longer than `LIMIT_S` on any machine."""
MOST_VALUES = 1_000
"""Most values of the task state, besides the call's changes, that serve as arguments."""
_BEAM = 6
JOURNAL = "x-journal"
"""Mark of a root key in the task state's schema that only records events, such as a log or a counter."""
_SEEDS = 7_919, 104_729
"""Seeds of the two worlds of the search: neither may generate the same values as the plan's own world."""
_KNOBS = GeckoContext(semantic_validation=False)

_Way: TypeAlias = tuple[tuple[int, ...], World]
"""A world after a call, with its sort key; the calls are in the world's log."""


class UndoFinder:
    """Finds calls that undo a call's changes.

    Args:
        toolkit: The tools; those with contracts or `simulate` are tried.
    """

    def __init__(self, toolkit: Toolkit) -> None:
        self.toolkit = toolkit
        self.tools = [tool for tool in toolkit if not toolkit.is_read(tool.name) and _decides(tool)]
        self.worlds = [
            World(toolkit, context=_KNOBS.model_copy(update={"seed": seed}), derive=False) for seed in _SEEDS
        ]
        self.fixed = {key for tool in self.tools for key in fixed_keys(tool)}
        journals = ((toolkit.state_schema or {}).get("properties") or {}).items()
        self.journals = {RUNTIME, *(key for key, rule in journals if isinstance(rule, dict) and rule.get(JOURNAL))}

    def begin(self, state: JsonObject) -> World:
        return self.worlds[0].begin(state).fork(by_rules=True)

    def find(
        self,
        call: Call,
        outcome: Mapping[str, Any],
        before: JsonObject,
        after: JsonObject,
        *,
        limit_s: float = LIMIT_S,
    ) -> Undo:
        """Return the calls that undo a call.

        Args:
            call: The call.
            outcome: Its outcome.
            before: The task state before it.
            after: The state to search from; it may contain later changes, but none at places that this call changed.
            limit_s: Seconds for the search.
        """
        if not is_known(outcome):
            return {"call": call, "status": "none", "calls": [], "reason": "no rule knows its changes"}
        undo = self.restore(call, outcome["result"], before, after, limit_s=limit_s)
        return bind(undo, outcome["result"], before) if undo["status"] == "found" else undo

    def restore(
        self, call: Call, result: Json, target: JsonObject, state: JsonObject, *, limit_s: float = LIMIT_S
    ) -> Undo:
        """Return calls that lead from a state to the target, equal except for generated identifiers and journals."""
        search = _Search(self, call, result, target, state, limit_s)
        try:
            found = search.run()
        except GeckoError as error:
            return {"call": call, "status": "none", "calls": [], "reason": str(error)}
        calls: list[UndoCall] = [{"name": each["name"], "args": each["args"], "bindings": []} for each in found or ()]
        if found is not None:
            return {"call": call, "status": "found", "calls": calls}
        if named := [each for each in self.toolkit if each.contract and each.contract.compensates == call["name"]]:
            calls = [{"name": tool.name, "args": {}, "bindings": []} for tool in named]
            return {"call": call, "status": "compensated", "calls": calls}
        if search.is_late and search.left < 0:
            return {
                "call": call,
                "status": "none",
                "calls": [],
                "reason": f"{MOST_CALLS} calls were tried without success",
            }
        return {"call": call, "status": "timeout" if search.is_late else "none", "calls": []}

    def without_journals(self, patch: Patch) -> Patch:
        return [each for each in patch if tokens(each["path"])[:1] not in [[key] for key in self.journals]]

    def watched(self, state: JsonObject) -> JsonObject:
        """Return a task state without its journals."""
        return {key: value for key, value in state.items() if key not in self.journals}


def is_known(outcome: Mapping[str, Any]) -> bool:
    """Return whether a written or established contract, or the tool's own function, defines the changes."""
    sure = outcome["rung"] in DECIDING and not outcome.get("invented") and not outcome.get("supposed")
    return sure and outcome.get("evidence", "established") == "established"


def bind(undo: Undo, result: Json, before: JsonObject) -> Undo:
    """Return the calls that undo a call, with holes for values that only the call's own result contains.

    A string in the state `before` is known; a number there may belong to something else.
    """
    own = list(scalars_of(undo["call"]["args"]))
    drawn = {
        (type(value), value): pointer(place)
        for place, value in scalars(result)
        if isinstance(value, str | int) and not isinstance(value, bool) and value not in own
    }
    given = {value for each in undo["calls"] for value in scalars_of(each["args"]) if (type(value), value) in drawn}
    texts = {value for value in given if isinstance(value, str)}
    for text in texts.intersection(scalars_of(before, keys=True)) if texts else ():
        del drawn[str, text]
    calls: list[UndoCall] = []
    for each in undo["calls"]:
        holes = [(pointer(place), drawn.get((type(value), value))) for place, value in scalars(each["args"])]
        bindings: list[Hole] = [{"argument": argument, "path": path} for argument, path in holes if path is not None]
        calls.append({**each, "bindings": bindings})
    return {**undo, "calls": calls}


class _Search:
    """A breadth-first search that continues from the worlds nearest to the target."""

    def __init__(
        self, finder: UndoFinder, call: Call, result: Json, target: JsonObject, state: JsonObject, limit_s: float
    ) -> None:
        self._finder, self._target, self._state = finder, target, state
        self._goal, self._seen = finder.watched(target), [finder.watched(state)]
        self._given = [*named(result, 1, noun(call["name"])), *named(call["args"], 1)]
        self._until = time.thread_time() + limit_s, time.monotonic() + SLOWEST * limit_s
        self.left, self.is_late = MOST_CALLS, False
        gone = [each for each in make_patch(target, state, by_members=True) if each["op"] == "remove"]
        paths = [tokens(each["path"]) for each in gone]
        self._lost = {text for path in paths for text in (path[-1], *scalars_of(find(target, path), keys=True))}
        """Values that the call has removed; only a new thing may have another identifier instead."""
        self._rest = [*islice(named(self._goal, 4), MOST_VALUES)]

    def run(self) -> list[Call] | None:
        needed = make_patch(self._seen[0], self._goal, by_members=True)
        if not needed:  # only journals may have changed
            return [] if json_equal(self._state, self._target) else None
        if not all(any(_may_do(tool, each) for tool in self._finder.tools) for each in needed):
            return None
        worlds = [self._finder.begin(self._state)]
        for depth in range(1, DEEPEST + 1):
            ends, reached = self._expand(worlds, is_last=depth == DEEPEST)
            if ends:
                return [step["call"] for step in min(ends, key=lambda each: each[0])[1].log]
            if self.is_late:
                break
            worlds = [world for _, world in nsmallest(_BEAM, reached, key=lambda each: each[0])]
        return None

    def _expand(self, worlds: Sequence[World], *, is_last: bool) -> tuple[list[_Way], list[_Way]]:
        """Return the worlds after one more call: those at the target with cost, and others with distance from it."""
        ends: list[_Way] = []
        reached: list[_Way] = []
        moves = ((world, move) for world in worlds for move in self._moves(world, is_last=is_last))
        for world, (tool, args) in moves:
            self.left -= 1
            if self._is_over():
                break
            if (child := _try(world, tool, args)) is None:
                continue
            state = self._finder.watched(child.state)
            if self._is_goal(state, child):
                ends.append(((*_cost(tool), len(args), len(ends)), child))
            elif not is_last and state not in self._seen:
                self._seen.append(state)
                reached.append(((len(make_patch(state, self._goal)), len(reached)), child))
        return ends, reached

    def _is_over(self) -> bool:
        self.is_late = self.left < 0 or time.thread_time() > self._until[0] or time.monotonic() > self._until[1]
        return self.is_late

    def _is_goal(self, state: JsonObject, world: World) -> bool:
        """Return whether a state equals the target, except for identifiers that tools generated."""
        if json_equal(state, self._goal):
            return True
        if not self._lost:
            return False
        there, here = ({*scalars_of(each, keys=True)} for each in (self._goal, state))
        gone, new = there - here, here - there
        if not gone or len(gone) != len(new) or not gone <= self._lost:
            return False
        other = self._finder.worlds[1].begin(self._state)
        other.call_all({"name": step["call"]["name"], "args": step["call"]["args"]} for step in world.log)
        is_drawn = new.isdisjoint(scalars_of(other.state, keys=True))
        return is_drawn and digest_apart_from(new, state) == digest_apart_from(gone, self._goal)

    def _moves(self, world: World, *, is_last: bool) -> Iterator[tuple[ToolSpec, JsonObject]]:
        """Yield calls to try; if the state is not yet the target, tools that write to the differing keys come first."""
        now = self._finder.watched(world.state)
        patch = make_patch(now, self._goal, by_members=True)
        known = [*islice(changed(patch, now, self._goal, self._finder.fixed), MOST_VALUES), *self._given, *self._rest]
        roots = {place[0] for each in patch if (place := tokens(each["path"]))}
        tools = [tool for tool in self._finder.tools if _touches(tool, roots)]
        tools += [] if is_last else [tool for tool in self._finder.tools if tool not in tools]
        options = [arguments(tool, known) for tool in tools if not self._is_over()]
        for rank in range(ARGUMENTS):
            for tool, some in zip(tools, options, strict=False):
                if rank < len(some):
                    yield tool, some[rank]


def _try(world: World, tool: ToolSpec, args: JsonObject) -> World | None:
    """Return the world after a call that is known to be allowed and to change something; else None."""
    child = world.fork()
    step = child.call({"name": tool.name, "args": args})
    if not is_planned(step) or not step["outcome"]["patch"] or not is_known(step["outcome"]):
        return None
    return None if notes_of(step["outcome"], "unclear", "may_refuse") else child


def _decides(tool: ToolSpec) -> bool:
    return tool.simulate is not None or (tool.contract is not None and tool.contract.answers)


def _touches(tool: ToolSpec, roots: set[str]) -> bool:
    return tool.contract is None or not tool.contract.state_keys or bool(roots & tool.contract.state_keys)


def _cost(tool: ToolSpec) -> tuple[int, int]:
    """Return the order of tools with the same result: fewer effects other than removals first."""
    effects = tool.contract.data.get("effects", []) if tool.contract else []
    return sum(each.get("op") != "remove" for each in effects), len(effects)


def _may_do(tool: ToolSpec, needed: Operation) -> bool:
    """Return whether a tool's contract has an effect that may be this operation, or a part of it."""
    if tool.simulate or (needed["op"] == "replace" and isinstance(needed["value"], dict | list)):
        return True
    return any(_may_be(effect, needed) for effect in effects_of(tool))


def _may_be(effect: JsonObject, needed: Operation) -> bool:
    keys, removes = [f"{each}\0" for each in tokens(needed["path"])], needed["op"] == "remove"
    does = effect["op"] in ("remove", "move") if removes else effect["op"] != "remove"
    written = effect["from"] if removes and effect["op"] == "move" else effect["path"]
    if does and (not isinstance(written, list) or re.fullmatch(_pattern(written), "".join(keys))):
        value = effect.get("value")
        is_open = "value" not in effect or isinstance(value, dict | list) or "{{" in str(value)
        return is_open or value == needed.get("value")
    return re.match(_pattern(effect["path"]), "".join(keys[:-1])) is not None


def _pattern(written: Any) -> str:
    """Return a regex of the keys of a written path, each ended by NUL; a computed key may be several."""
    parts = written if isinstance(written, list) else ()
    return "".join(r"(?:[^\0]+\0)+" if "{{" in str(each) or each == "-" else re.escape(f"{each}\0") for each in parts)
