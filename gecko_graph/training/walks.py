"""Random walks in a `World`: calls whose arguments come from schema, state and earlier results.

A move stores which of its values came from an earlier result, so that it can be repeated with a new result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, partial
from random import Random
from typing import Any, NamedTuple

from ..schemas.made_up import Impossible, make_value
from ..schemas.rules import accepts, rules_of
from ..schemas.specimens import is_identifier, noun, singular, words
from ..state import Json, JsonObject, Step
from ..tools import ToolSpec
from ..values.digest import clone, digest
from ..values.places import Place, clock, scalars
from ..world.provenance import is_planned
from ..world.world import World
from .vary import WORDS

_KINDS: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float)}
_NAMING = frozenset(["id", "ids", "key", "code", "sku", "symbol", "identifier", "number"])
_PLAIN = frozenset(("type", "description", "title"))
CHAIN = 3
"""Length of a sequence of dependent calls that half of the tasks must have."""
_TRIES, _CHANGES = 12, 4
_MOST_VALUES = 4_000
NOTHING: Any = object()


class ValueSource(NamedTuple):
    """The source of a move's value: the origin of an earlier move, and a place in its result."""

    origin: int
    place: Place


@dataclass(frozen=True, slots=True)
class Move:
    """One call of a walk; `origin` is its original number, which identifies it in changed walks."""

    origin: int
    name: str
    args: JsonObject
    sources: Mapping[Place, ValueSource] = field(default_factory=dict)


class Start:
    """The world at the start of walks; sequences of moves that were executed before are cached."""

    def __init__(self, world: World) -> None:
        self.world, self.state, self.toolkit = world, world.state, world.toolkit
        self._made: dict[tuple[int, str], tuple[int, World, Step]] = {}

    def make(self, moves: Sequence[Move], ids: str = "call") -> tuple[World, dict[int, Step]]:
        """Return the world after moves (do not change it), and their steps by origin.

        Values with a source are taken from the new results. A call draws the same random identifiers in all walks with
        the same `ids`, and others with different `ids`.
        """
        at, world, done = 0, self.world, dict[int, Step]()
        for move in moves:
            args = clone(move.args)
            for place, source in move.sources.items():
                step = done.get(source.origin)
                new = value_at(step["outcome"]["result"], source.place) if step and is_planned(step) else NOTHING
                if new is not NOTHING:
                    _put(args, place, new)
            call = {"name": move.name, "args": args, "id": f"{ids}_{move.origin + 1}"}
            if (key := (at, json.dumps(call))) not in self._made:
                after = world.fork()
                self._made[key] = len(self._made) + 1, after, after.call(call)
            at, world, done[move.origin] = self._made[key]
        return world, done


def value_at(value: Json, place: Place) -> Any:
    try:
        for key in place:
            value = value[key]
    except (LookupError, TypeError):
        return NOTHING
    return value


def _put(value: Any, place: Place, new: Json) -> None:
    for key in place[:-1]:
        value = value[key]
    value[place[-1]] = new


class _Known(NamedTuple):
    value: Json
    names: frozenset[str]
    source: ValueSource | None = None
    weight: int = 1


class Walk:
    """A walk that grows call by call; refused and failed calls are undone.

    Args:
        world: The start; it is not changed.
        rng: The random generator.
        chained: Whether nearly every call uses a value from another call's result.
    """

    def __init__(self, world: World, rng: Random, *, chained: bool = False) -> None:
        self.world, self._rng, self._chained = world.fork(), rng, chained
        self.moves: list[Move] = []
        self._known = [*_read(world.state, None)][:_MOST_VALUES]
        self._now = clock(world.state)
        self._fits: dict[int, tuple[JsonObject, Callable[[Json], bool]]] = {}
        """Keyed by the rule's id(), so the rule is stored too."""

    def go(self, writes: int) -> list[Move]:
        """Make moves until `writes` of them have changed the state, or too many have failed.

        A chained walk continues until three calls depend on each other. Unused reads are left out.
        """
        tools = list(self.world.toolkit)
        reads = [tool for tool in tools if self.world.toolkit.is_read(tool.name)]
        others = [tool for tool in tools if tool not in reads]
        left, depth = _TRIES * writes * (3 if self._chained else 1), dict[int, int]()
        while left and others and (writes > 0 or (self._chained and max(depth.values(), default=0) < CHAIN)):
            left -= 1
            some = reads if reads and self._rng.random() < 0.4 else others
            step = self.move(self._rng.choice(self._fitting(some) or some))
            if step and step["outcome"]["patch"]:
                writes -= 1
                depth[len(self.moves) - 1] = self._depth(len(self.moves) - 1)
        return self._trim(max(depth, key=lambda each: depth[each], default=-1) if self._chained else -1)

    def _trim(self, last: int) -> list[Move]:
        """Return the moves without unused reads, and for a chained walk without most writes outside the chain."""
        kept = {last}
        for move in reversed(self.moves):
            beside = not self.world.toolkit.is_read(move.name) and (last < 0 or self._rng.random() < 0.2)
            if move.origin in kept or (beside and (last < 0 or move.origin < last)):
                kept |= {move.origin, *(source.origin for source in move.sources.values())}
        return [move for move in self.moves if move.origin in kept]

    def _depth(self, origin: int) -> int:
        return 1 + max((self._depth(each.origin) for each in self.moves[origin].sources.values()), default=0)

    def _fitting(self, tools: Sequence[ToolSpec]) -> list[ToolSpec]:
        """Return the tools with an argument whose name fits the latest results; [] if the walk is not chained."""
        if not self._chained or not self.moves or self._rng.random() < 0.3:
            return []
        last = len(self.moves) - 2
        fresh = [each.names for each in self._known if each.source and each.source.origin >= last]
        wants = {tool.name: [_wanted(name, tool) for name in tool.parameters.get("properties", {})] for tool in tools}
        return [tool for tool in tools if any(one <= names for one in wants[tool.name] for names in fresh)]

    def move(self, tool: ToolSpec) -> Step | None:
        """Make a move with a tool, None if it is refused, fails or cannot be made."""
        sources: dict[Place, ValueSource] = {}
        try:
            args = self._object(tool.parameters, (), tool, sources)
        except Impossible:
            return None
        if self._chained and self.moves and not sources and self._rng.random() < 0.9:
            return None
        before, origin = self.world.fork(), len(self.moves)
        step = self.world.call({"name": tool.name, "args": args, "id": f"call_{origin + 1}"})
        outcome = step.get("outcome")
        if not outcome or not is_planned(step) or outcome.get("invented") or outcome.get("supposed"):
            self.world = before
            return None
        self.moves.append(Move(origin, tool.name, args, sources))
        self._known += [*_read(outcome["result"], origin, noun(tool.name))][:_MOST_VALUES]
        self._known += [each._replace(weight=3) for each in _read(args, None)]
        return step

    def change(self, move: Move, name: str) -> Move | None:
        """Return the move with another value of one argument, None if none was found."""
        tool, sources = self.world.toolkit[move.name], dict[Place, ValueSource]()
        for _ in range(_CHANGES):
            with suppress(Impossible):
                value = self._argument(tool.parameters.get("properties", {}).get(name, {}), (name,), tool, sources)
                if digest(value) != digest(move.args[name]):
                    kept = {place: one for place, one in move.sources.items() if place[0] != name}
                    return replace(move, args={**move.args, name: value}, sources=kept)
        return None

    def _object(
        self, schema: JsonObject, place: Place, tool: ToolSpec, sources: dict[Place, ValueSource]
    ) -> JsonObject:
        required = schema.get("required", ())
        rules = schema.get("properties", {}).items()
        asked = [(name, rule) for name, rule in rules if name in required or self._rng.random() < 0.35]
        return {name: self._argument(rule, (*place, name), tool, sources) for name, rule in asked}

    def _argument(self, schema: Any, place: Place, tool: ToolSpec, sources: dict[Place, ValueSource]) -> Json:
        rule, kind = _read_rule(schema)
        if "enum" in rule:
            return self._rng.choice(rule["enum"])
        if kind == "boolean":
            return self._rng.random() < 0.5
        if kind == "array" and isinstance(rule.get("items"), dict):
            count = max(rule.get("minItems", 0), self._rng.choice((1, 1, 2)))
            return [self._argument(rule["items"], (*place, at), tool, sources) for at in range(count)]
        if kind == "object" and rule.get("properties"):
            return self._object(rule, place, tool, sources)
        if kind not in _KINDS:
            return self._make(rule, place)
        if (known := self._choose(rule, kind, place, tool, {*map(_row_of, sources.values())})) is not None:
            if known.source:
                sources[place] = known.source
            return known.value
        return self._free(rule, kind, place)

    def _choose(
        self, rule: JsonObject, kind: str, place: Place, tool: ToolSpec, rows: Collection[ValueSource]
    ) -> _Known | None:
        """Choose a known value, preferring names like the argument's, and rows that gave another argument.

        None if a new value is to be made.
        """
        name = next(each for each in reversed(place) if isinstance(each, str))
        wanted, is_formed = _wanted(name, tool), bool({"format", "pattern"} & rule.keys())
        if id(rule) not in self._fits:
            self._fits[id(rule)] = rule, cache(partial(accepts, rules_of(rule)))
        fits = self._fits[id(rule)][1] if rule.keys() - _PLAIN else None
        found = []
        for each in self._known:
            alike = len(wanted & each.names) / len(wanted)
            if type(each.value) not in _KINDS[kind] or each.value == "" or (kind != "string" and not alike):
                continue
            if (not (alike or is_formed) and " " in str(each.value)) or (fits and not fits(each.value)):
                continue
            alike = max(alike, 0.5) if is_formed else alike
            weight = each.weight * (3 if each.source and each.source.origin == len(self.moves) - 1 else 1)
            weight *= 50 if each.source and _row_of(each.source) in rows else 1
            found.append((each, alike, (0.02 + alike) ** 2 * weight))
        best = max((alike for _, alike, _ in found), default=0.0)
        keeps = 0.97 if is_identifier(name) else 0.75 if best > 0.4 else 0.4
        if not found or self._rng.random() > keeps:
            return None
        return self._rng.choices([each for each, _, _ in found], [weight for _, _, weight in found])[0]

    def _free(self, rule: JsonObject, kind: str, place: Place) -> Json:
        name = next(each for each in reversed(place) if isinstance(each, str))
        value: Json = self._rng.randrange(1, 5)
        if kind == "string":
            said = words(name)
            is_file = {"file", "source"} & {*said}
            one = is_file or {"dir", "folder", "name", "title", "destination", "pattern"} & {*said}
            value = " ".join(self._rng.sample(WORDS, 1 if one else 2)) + (".txt" if is_file else "")
            if now := self._later(str(rule.get("format"))):
                value = now
        return value if accepts(rules_of(rule), value) else self._make(rule, place)

    def _later(self, form: str) -> str | None:
        if form not in ("date", "date-time") or self._now is None:
            return None
        with suppress(ValueError):
            then = datetime.fromisoformat(self._now) + timedelta(days=self._rng.randrange(1, 30))
            return then.date().isoformat() if form == "date" else then.isoformat()
        return None

    def _make(self, rule: JsonObject, place: Place) -> Json:
        name = str(place[0])
        schema = {"type": "object", "properties": {name: rule}, "required": [name]}
        return make_value(schema, seed=self._rng.randrange(1 << 30), key=name)[name]


def _read_rule(schema: Any) -> tuple[JsonObject, Any]:
    """Return an argument's schema and its type, apart from null."""
    rule: JsonObject = schema if isinstance(schema, dict) else {}
    others = [each for each in rule.get("anyOf", ()) if each != {"type": "null"}]
    rule = others[0] if len(others) == 1 and isinstance(others[0], dict) else rule
    kinds = rule.get("type")
    return rule, next((each for each in kinds if each != "null"), None) if isinstance(kinds, list) else kinds


def _wanted(name: str, tool: ToolSpec) -> set[str]:
    """Return the words of an argument's name; for a bare `id` also the tool's noun."""
    wanted = {singular(each) for each in words(name)}
    return wanted | ({noun(tool.name)} if len(wanted) == 1 and is_identifier(name) else set())


def _row_of(source: ValueSource) -> ValueSource:
    return source._replace(place=source.place[:-1])


def _read(value: Json, origin: int | None, about: str = "") -> Iterator[_Known]:
    """Yield the scalars and keys of a value, each with the words of its name."""
    for at, each in scalars(value):
        texts = [key for key in at if isinstance(key, str)]
        names = {singular(one) for key in texts[-1:] for one in words(key)}
        names |= {singular(" ".join(texts[-2:-1])) or about} if is_identifier(" ".join(texts[-1:])) else set()
        known = _Known(each, frozenset(names))
        yield known if origin is None else known._replace(source=ValueSource(origin, at), weight=5)
    if origin is None:
        yield from _read_keys(value, "")


def _read_keys(value: Json, name: str) -> Iterator[_Known]:
    """Yield the keys of objects whose members are objects: they identify these members."""
    if isinstance(value, dict):
        if name and value and all(isinstance(each, dict) for each in value.values()):
            names = frozenset({singular(one) for one in words(name)} | _NAMING)
            yield from (_Known(key, names) for key in value)
        for key, each in value.items():
            yield from _read_keys(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _read_keys(each, name)
