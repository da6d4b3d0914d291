"""Calls that take a write back: a search over forks of a `World`, through what contracts are known to do."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from heapq import nsmallest
from typing import Any, NamedTuple

from ..context import GeckoContext
from ..errors import GeckoError
from ..schemas.specimens import noun
from ..state import RUNTIME, Call, Json, JsonObject, Operation, Patch
from ..tools import Toolkit, ToolSpec
from ..values.difference import json_equal, make_patch
from ..values.patch import find, pointer, pointer_step, tokens
from ..values.places import json_path, scalars, scalars_of
from .provenance import is_planned
from .records import Hole, Undo, UndoCall
from .rung import DECIDING
from .undo_arguments import ARGUMENTS, arguments, changed, fixed_keys, named
from .world import World

LIMIT_S = 0.2
"""Seconds for one write."""
DEEPEST = 3
"""Calls that take back one."""
MOST_CALLS = 400
"""Calls that are tried for one write; more take longer than `LIMIT_S` on any machine."""
_BEAM = 6
JOURNAL = "x-journal"
"""Mark of a root key in the schema of the task state: what only tells what happened, such as a log or a counter."""
_SEEDS = 7_919, 104_729
"""Of the two worlds that are searched in: neither may draw again what the plan's own world has drawn."""
_KNOBS = GeckoContext(semantic_validation=False)


class UndoFinder:
    """Finds calls that take back what a call has changed.

    Args:
        toolkit: The tools: those with contracts, or `simulate`, are tried.
        limit_s: Seconds for one write.
    """

    def __init__(self, toolkit: Toolkit, *, limit_s: float = LIMIT_S) -> None:
        self._toolkit, self.limit_s = toolkit, limit_s
        self.tools = [tool for tool in toolkit if not toolkit.is_read(tool.name) and _decides(tool)]
        self.worlds = [World(toolkit, context=_KNOBS.model_copy(update={"seed": seed})) for seed in _SEEDS]
        self.fixed = {key for tool in self.tools for key in fixed_keys(tool)}
        journals = ((toolkit.state_schema or {}).get("properties") or {}).items()
        self.journals = {RUNTIME, *(key for key, rule in journals if isinstance(rule, dict) and rule.get(JOURNAL))}

    def within(self, limit_s: float) -> UndoFinder:
        """Return the same finder with another limit."""
        other = copy(self)
        other.limit_s = limit_s
        return other

    def begin(self, state: JsonObject) -> World:
        """Return a world that begins in a state, and answers by rules alone."""
        return self.worlds[0].begin(state).fork(by_rules=True)

    def find(self, call: Call, outcome: Mapping[str, Any], before: JsonObject, after: JsonObject) -> Undo:
        """Return what takes a call back.

        Args:
            call: The call.
            outcome: What it came to.
            before: The task state that it was made in.
            after: The one to search from: it may hold what later calls have changed, but not of what this one has.
        """
        if not is_known(outcome):
            return {"call": call, "status": "none", "calls": [], "reason": "its effect is not known here"}
        return self.restore(call, outcome["result"], before, after)

    def restore(self, call: Call, result: Json, target: JsonObject, state: JsonObject) -> Undo:
        """Return calls that lead from a state back to the target, equal up to drawn identifiers and journals."""
        search = _Search(self, call, result, target, state)
        try:
            found = search.run()
        except GeckoError as error:
            return {"call": call, "status": "none", "calls": [], "reason": str(error)}
        if found is not None:
            return {"call": call, "status": "found", "calls": bind(call, result, found)}
        if named := [each for each in self._toolkit if each.contract and each.contract.compensates == call["name"]]:
            calls: list[UndoCall] = [{"name": tool.name, "args": {}, "bindings": []} for tool in named]
            return {"call": call, "status": "compensated", "calls": calls}
        return {"call": call, "status": "timeout" if search.is_late else "none", "calls": []}

    def without_journals(self, patch: Patch) -> Patch:
        """Return a patch without what it writes in journals."""
        return [each for each in patch if tokens(each["path"])[:1] not in [[key] for key in self.journals]]

    def watched(self, state: JsonObject) -> JsonObject:
        """Return a task state without its journals."""
        return {key: value for key, value in state.items() if key not in self.journals}


def is_known(outcome: Mapping[str, Any]) -> bool:
    """Return whether a contract that was written or established, or the tool's own function, says what was changed."""
    sure = outcome["rung"] in DECIDING and not outcome.get("invented") and not outcome.get("supposed")
    return sure and outcome.get("evidence", "established") == "established"


def bind(call: Call, result: Json, moves: Sequence[Move]) -> list[UndoCall]:
    """Return calls with holes where their values are known from the result alone of the call that they take back."""
    own = list(scalars_of(call["args"]))
    drawn = {
        (type(value), value): json_path(place)
        for place, value in scalars(result)
        if isinstance(value, str | int) and not isinstance(value, bool) and value not in own
    }
    found: list[UndoCall] = []
    for name, args in moves:
        holes = [(json_path(place), drawn.get((type(value), value))) for place, value in scalars(args)]
        bindings: list[Hole] = [{"argument": argument, "path": path} for argument, path in holes if path]
        found.append({"name": name, "args": args, "bindings": bindings})
    return found


class Move(NamedTuple):
    """A call that is tried."""

    name: str
    args: JsonObject


class _Node(NamedTuple):
    world: World
    moves: tuple[Move, ...]


class _Search:
    """One search, breadth first; of what it comes to, what is nearest the target is gone on from."""

    def __init__(self, finder: UndoFinder, call: Call, result: Json, target: JsonObject, state: JsonObject) -> None:
        self._finder, self._target, self._state = finder, target, state
        self._goal = finder.watched(target)
        self._given = [*named(result, 1, noun(call["name"])), *named(call["args"], 1)]
        self._until, self._left = time.perf_counter() + finder.limit_s, MOST_CALLS
        self._lost = set[Json]()
        """Texts that the call has removed: only what is made anew may have another identifier."""
        for each in by_members(make_patch(target, state), target):
            if each["op"] == "remove":
                path = tokens(each["path"])
                self._lost |= {path[-1], *scalars_of(find(target, path), keys=True)}
        self._lost -= {*scalars_of(state, keys=True)}
        self._seen: list[JsonObject] = []
        self.is_late = False

    def run(self) -> tuple[Move, ...] | None:
        needed = make_patch(self._finder.watched(self._state), self._goal)
        if not needed:  # nothing was changed, or only what tells of it
            return () if json_equal(self._state, self._target) else None
        if not all(any(_may_do(tool, each) for tool in self._finder.tools) for each in by_members(needed, self._state)):
            return None
        nodes = [_Node(self._finder.begin(self._state), ())]
        self._seen.append(self._finder.watched(self._state))
        for depth in range(DEEPEST):
            ends, reached = self._expand(nodes, depth)
            if ends or self.is_late:
                return min(ends)[-1].moves if ends else None
            nodes = [node for _, _, node in nsmallest(_BEAM, reached, key=lambda each: each[:2])]
        return None

    def _expand(
        self, nodes: Sequence[_Node], depth: int
    ) -> tuple[list[tuple[int, int, int, int, _Node]], list[tuple[int, int, _Node]]]:
        """Return where one more call leads: to the target, with what it costs, and elsewhere, with how far from it."""
        ends: list[tuple[int, int, int, int, _Node]] = []
        reached: list[tuple[int, int, _Node]] = []
        for node, (tool, move) in ((one, each) for one in nodes for each in self._moves(one, depth)):
            if self._is_over():
                break
            if (child := self._try(node, move)) is None:
                continue
            state = self._finder.watched(child.world.state)
            if self._is_goal(state, child):
                ends.append((*_cost(tool), len(move.args), len(ends), child))
            elif depth + 1 < DEEPEST and state not in self._seen:
                self._seen.append(state)
                reached.append((len(make_patch(state, self._goal)), len(reached), child))
        return ends, reached

    def _is_over(self) -> bool:
        self._left -= 1
        self.is_late = self._left < 0 or time.perf_counter() > self._until
        return self.is_late

    def _try(self, node: _Node, move: Move) -> _Node | None:
        """Return where a call leads that is known to be allowed and to change something; None for any other."""
        world = node.world.fork()
        step = world.call({"name": move.name, "args": move.args})
        if not is_planned(step) or not step["outcome"]["patch"] or not is_known(step["outcome"]):
            return None
        is_open = step["outcome"].get("unclear") or step["outcome"].get("may_refuse")
        return None if is_open else _Node(world, (*node.moves, move))

    def _is_goal(self, state: JsonObject, node: _Node) -> bool:
        """Return whether a state is the target, but for identifiers that the tools have drawn in its place."""
        if json_equal(state, self._goal):
            return True
        changed = _replaced(self._goal, state)
        if not changed or not changed.keys() <= self._lost:
            return False
        other = self._finder.worlds[1].begin(self._state)
        for move in node.moves:
            other.call({"name": move.name, "args": move.args})
        again = _replaced(self._goal, self._finder.watched(other.state))
        return again is not None and again.keys() == changed.keys() and all(again[key] != changed[key] for key in again)

    def _moves(self, node: _Node, depth: int) -> Iterator[tuple[ToolSpec, Move]]:
        """Yield the calls worth a try, those first that write where the state is not yet the target."""
        now = self._finder.watched(node.world.state)
        patch = [*by_members(make_patch(now, self._goal), now)]
        known = [*changed(patch, now, self._goal, self._finder.fixed), *self._given, *named(self._goal, 4)]
        roots = {place[0] for each in patch if (place := tokens(each["path"]))}
        tools = [tool for tool in self._finder.tools if _touches(tool, roots)]
        if depth + 1 < DEEPEST:
            tools += [tool for tool in self._finder.tools if tool not in tools]
        options = [arguments(tool, known) for tool in tools]
        for rank in range(ARGUMENTS):
            for tool, some in zip(tools, options, strict=True):
                if rank < len(some):
                    yield tool, Move(tool.name, some[rank])


def _decides(tool: ToolSpec) -> bool:
    return tool.simulate is not None or (tool.contract is not None and tool.contract.answers)


def _touches(tool: ToolSpec, roots: set[str]) -> bool:
    return tool.contract is None or not tool.contract.state_keys or bool(roots & tool.contract.state_keys)


def _cost(tool: ToolSpec) -> tuple[int, int]:
    """Return what decides between tools that come to the same: one that only removes comes before one that moves."""
    effects = tool.contract.data.get("effects", []) if tool.contract else []
    return (sum(each.get("op") != "remove" for each in effects if isinstance(each, dict)), len(effects))


def by_members(patch: Patch, state: JsonObject) -> Iterator[Operation]:
    """Yield the operations of a patch; where one object replaces another, those of their members."""
    for each in patch:
        old, new = find(state, tokens(each["path"])) if each["op"] == "replace" else None, each.get("value")
        if not isinstance(old, dict) or not isinstance(new, dict):
            yield each
            continue
        yield from ({"op": "remove", "path": each["path"] + pointer_step(key)} for key in old)
        yield from ({"op": "add", "path": each["path"] + pointer_step(key), "value": new[key]} for key in new)


def _may_do(tool: ToolSpec, needed: Operation) -> bool:
    """Return whether a tool's contract has an effect that may be this operation, or a part of it."""
    effects = tool.contract.data.get("effects", []) if tool.contract and not tool.simulate else None
    mount = tool.contract.at if tool.contract else ()
    path = tokens(needed["path"])
    if effects is None or tuple(path[: len(mount)]) != mount:
        return effects is None
    below = {**needed, "path": pointer(path[len(mount) :])}
    return any(_may_be(each, below) for each in effects)


def _may_be(effect: JsonObject, needed: Operation) -> bool:
    if "do" in effect:
        return any(_may_be(each, needed) for each in effect["do"])
    removes, path = needed["op"] == "remove", tokens(needed["path"])
    written = [effect["from"]] if effect["op"] == "move" and removes else []
    written += [effect["path"]] if (effect["op"] == "remove") == removes else []
    value, wanted = effect.get("value"), needed.get("value")
    is_fixed = "value" in effect and not isinstance(value, dict | list) and "{{" not in str(value)
    if any(_is_at(each, path) for each in written):
        return not is_fixed or value == wanted
    return any(_is_at(effect["path"], path[:size]) for size in range(len(path))) or (
        isinstance(wanted, dict | list) and needed["op"] == "replace" and str(effect["path"][0]) in ("", *path[:1])
    )


def _is_at(written: Any, path: Sequence[str]) -> bool:
    """Return whether a path that is written may be this one; what is computed may be several keys."""
    if not isinstance(written, list):
        return True
    parts = [r"(?:[^\0]+\0)+" if "{{" in str(each) or each == "-" else re.escape(f"{each}\0") for each in written]
    return re.fullmatch("".join(parts), "".join(f"{each}\0" for each in path)) is not None


def _replaced(goal: Json, state: Json) -> dict[str, str] | None:
    """Return which texts stand in the place of which, each for one; None where values differ in any other way."""
    pairs: dict[str, str] = {}
    if not _pair(goal, state, pairs) or len({*pairs.values()}) < len(pairs):
        return None
    return {old: new for old, new in pairs.items() if old != new}


def _pair(goal: Json, state: Json, pairs: dict[str, str]) -> bool:
    if isinstance(goal, str) and isinstance(state, str):
        return pairs.setdefault(goal, state) == state
    if isinstance(goal, list) and isinstance(state, list):
        return len(goal) == len(state) and all(_pair(*both, pairs) for both in zip(goal, state, strict=True))
    if not isinstance(goal, dict) or not isinstance(state, dict):
        return json_equal(goal, state)
    lost, new = [key for key in goal if key not in state], [key for key in state if key not in goal]
    both = [*((key, key) for key in goal if key in state), *zip(lost, new, strict=False)]
    return len(lost) == len(new) and all(
        pairs.setdefault(old, key) == key and _pair(goal[old], state[key], pairs) for old, key in both
    )
