"""Probe a sandbox by real calls that separate rival rules, or touch unseen things."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from ..models.answer import AT_ONCE, finish
from ..schemas.complaints import find_complaints
from ..schemas.made_up import Impossible, make_value
from ..state import Call, Json, JsonObject
from ..tools import Toolkit, ToolSpec
from ..tools.real import drive, run_real
from ..values.digest import digest
from ..values.observation import Observation, Observe
from ..world.followed import open_run
from ..world.world import World
from .learn import Learned, Progress
from .observation import observe_world
from .shows import reads_of

LIMIT, A_ROUND, VALUES, TIMEOUT_S = 200, 3, 12, 30.0
_ODD: tuple[Json, ...] = ("no-such-thing", "", 0, -1, 1_000_000, None)
"""Values that a tool may refuse in ways not seen before."""


def probe(
    toolkit: Toolkit,
    learned: Learned,
    *,
    limit: int = LIMIT,
    progress: Progress | None = None,
    observe: Observe = None,
) -> list[Observation]:
    """Make calls on a sandbox, where nothing can be lost, and return their results.

    Calls are chosen by what is unknown: first where rival rules disagree, then where rows have shown nothing. Reads
    that show the state of a write are made before it, if that is unknown.

    Args:
        toolkit: The tools, whose real functions lead to the sandbox.
        learned: The contracts learned so far; arguments of their rows are varied.
        limit: Most calls.
        progress: Called before each with the tool's name, its number and `limit`.
        observe: Receives each row at once, as for `World`.
    """
    world = World(learned.apply(toolkit), observe=observe, derive=False)
    pool, done, count = _Pool(learned), set[str](), 0
    while calls := [(tool, args) for tool in world.toolkit if tool.real for args in _choose(tool, pool, world, done)]:
        done |= {digest([tool.name, args]) for tool, args in calls}
        for tool, args in islice(_with_reads(calls, world), limit - count):
            count += 1
            if progress:
                progress(tool.name, count, limit)
            call = Call(id=f"probe_{count}", name=tool.name, args=args)
            answer, in_doubt = finish(drive(run_real(tool, args, TIMEOUT_S, call_id=call["id"]), AT_ONCE))
            if not in_doubt:
                world.record(call, answer)
                pool.add({**args, "": answer.result})
        if count >= limit:
            break
    return observe_world(world, source="probe")


def _with_reads(calls: Iterable[tuple[ToolSpec, JsonObject]], world: World) -> Iterator[tuple[ToolSpec, JsonObject]]:
    """Yield calls; before a write, the reads of unknown parts of its state."""
    for tool, args in calls:
        if not tool.reads:
            yield from ((read, some) for read, some in reads_of(world.toolkit, args, world.state) if read.real)
        yield tool, args


class _Pool:
    """Values by the name of their argument or member, the latest last."""

    def __init__(self, learned: Learned) -> None:
        self._values: dict[str, list[Json]] = {}
        self.bases: dict[str, list[JsonObject]] = {}
        for name in learned.contracts if learned.sample else ():
            for branch, row in learned.sample.rows(name) if learned.sample else ():
                self.bases.setdefault(name, []).insert(0 if not branch else VALUES, row.args)
                self.add({**row.args, "": row.result})

    def add(self, value: Json, name: str = "") -> None:
        if isinstance(value, dict | list):
            for key, inner in value.items() if isinstance(value, dict) else ((name, each) for each in value):
                self.add(inner, key)
        elif value not in (known := self._values.setdefault(name, [])):
            known.append(value)

    def values(self, name: str) -> list[Json]:
        return [*self._values.get(name, [])[-VALUES:], *_ODD]


def _choose(tool: ToolSpec, pool: _Pool, world: World, done: set[str]) -> list[JsonObject]:
    """Return the few most informative calls of a tool that were not made yet."""
    ranked: dict[str, tuple[int, JsonObject]] = {}
    for args in _variants(tool, pool):
        key = digest([tool.name, args])
        if key not in done and key not in ranked and not find_complaints(tool, args):
            ranked[key] = (_rank(tool, args, world.state), args)
    worth = sorted((pair for pair in ranked.values() if pair[0] < 2), key=lambda pair: pair[0])
    return [args for _, args in worth[:A_ROUND]]


def _variants(tool: ToolSpec, pool: _Pool) -> Iterator[JsonObject]:
    properties = tool.parameters.get("properties", {})
    bases = pool.bases.get(tool.name, [])[:2]
    with suppress(Impossible):
        made: Any = make_value(tool.parameters, seed=0, key=tool.name)
        bases = [*bases, {name: made[name] for name in tool.parameters.get("required", ())}]
    for base in bases:
        yield base
        for name, rule in properties.items():
            listed = rule.get("enum", ()) if isinstance(rule, dict) else ()
            for value in (*listed, *reversed(pool.values(name))):
                yield {**base, name: value}


def _rank(tool: ToolSpec, args: JsonObject, state: JsonObject) -> int:
    """Return 0 if rivals disagree, 1 if nothing is known, 2 if the tool's rules predict the outcome."""
    if tool.contract is None or tool.contract.data.get("evidence", {}).get("refusals") == {}:
        return 1  # a tool without refusals has no rules
    run = open_run(tool.contract, tool, Observation(tool.name, args, "ok", None, state))
    if run.refusal() is not None:
        return 2
    return 0 if "rival" in (run.unknown or "") else 1 if run.unknown or run.unclear else 2
