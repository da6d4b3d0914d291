"""Random walks in a `World`: calls whose arguments come from schema, state and earlier results, and what they come to.

A move knows which of its values an earlier result gave, so that it can be made again where that result differs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple

from ..conversation.changed import UNWATCHED
from ..conversation.milestones.tables import REST, find_table
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
_NAMING = frozenset("id ids key code sku symbol identifier number".split())
_TRIES = 12
_MOST_VALUES = 4_000
NOTHING: Any = object()


class Source(NamedTuple):
    """Where a value of a move comes from: the result of the move of this origin, and the place in it."""

    origin: int
    place: Place


@dataclass(frozen=True, slots=True)
class Move:
    """One call of a walk; `origin` is its number in the walk, by which it is known however the walk is changed."""

    origin: int
    name: str
    args: JsonObject
    sources: Mapping[Place, Source] = field(default_factory=dict)


def replay(world: World, moves: Sequence[Move]) -> dict[int, Step]:
    """Make moves in a world, with the values that earlier results give now; returns their steps by origin."""
    done: dict[int, Step] = {}
    for move in moves:
        args = clone(move.args)
        for place, source in move.sources.items():
            step = done.get(source.origin)
            new = value_at(step["outcome"]["result"], source.place) if step and is_planned(step) else NOTHING
            if new is not NOTHING:
                _put(args, place, new)
        done[move.origin] = world.call({"name": move.name, "args": args, "id": f"call_{move.origin + 1}"})
    return done


def value_at(value: Json, place: Place) -> Any:
    """Return what stands at a place of a value; `NOTHING` where nothing does."""
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


# the end ------------------------------------------------------------------------------------------------------------


class End(NamedTuple):
    """What moves come to: their steps by origin, and the state up to drawn identifiers."""

    steps: dict[int, Step]
    state: JsonObject
    drawn: frozenset[Json]

    def digest(self, free: Sequence[str] = ()) -> str:
        """Return a digest that equal ends share, whatever their drawn values; tables that are free do not count."""
        return _digest(find_table(self.state, REST + ", ".join((*UNWATCHED, *free))), self.drawn)


def play(worlds: tuple[World, World], moves: Sequence[Move]) -> End:
    """Return what moves come to in two worlds that begin alike and draw other values; neither is changed."""
    one, other = (world.fork() for world in worlds)
    steps = replay(one, moves)
    replay(other, moves)
    state = one.state
    there, begun = _atoms(other.state), _atoms(worlds[0].state)
    return End(steps, state, frozenset(each for each in _atoms(state) - there - begun if isinstance(each, str)))


def _atoms(value: Json) -> set[Json]:
    return {each for _, each in scalars(value, keys=True) if not isinstance(each, bool)}


def _digest(state: Json, drawn: Collection[Json]) -> str:
    """Return a digest in which a drawn value stands for what surrounds it, looked at twice: what refers to what."""
    labels = dict.fromkeys(drawn, "drawn")
    for _ in range(2 if drawn else 0):
        around: dict[Json, list[str]] = {each: [] for each in drawn}
        for place, value, inside in _members(state):
            for each in (value, place[-1]):
                if isinstance(each, str) and each in around:
                    shown = [labels.get(key, key) if isinstance(key, str) else 0 for key in place]
                    around[each].append(digest([shown, each == value, _mask(inside, labels)]))
        labels = {each: digest(sorted(found)) for each, found in around.items()}
    return digest(_mask(state, labels))


def _members(value: Json, place: Place = ()) -> Iterator[tuple[Place, Json, Json]]:
    """Yield each value in a value with its place, and what surrounds it: the value itself, or of a scalar its holder."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        here = (*place, key)
        yield here, each, each if isinstance(each, dict | list) else value
        yield from _members(each, here)


def _mask(value: Json, labels: Mapping[Json, str]) -> Json:
    if isinstance(value, dict):
        return sorted(([labels.get(key, key), _mask(each, labels)] for key, each in value.items()), key=digest)
    if isinstance(value, list):
        return [_mask(each, labels) for each in value]
    return labels.get(value, value) if isinstance(value, str) else value


# the walk -----------------------------------------------------------------------------------------------------------


class _Known(NamedTuple):
    value: Json
    names: frozenset[str]
    source: Source | None = None
    weight: int = 1


class Walk:
    """A walk that goes on call by call: what is refused, or fails, is as if it had not been tried.

    Args:
        world: Where it begins; it is not changed.
        rng: What decides.
    """

    def __init__(self, world: World, rng: Random) -> None:
        self.world, self._rng = world.fork(), rng
        self.moves: list[Move] = []
        self._known = [*_read(world.state, None)][:_MOST_VALUES]
        self._now = clock(world.state)

    def go(self, writes: int) -> list[Move]:
        """Make moves until so many of them have changed something, or too many have failed."""
        tools = list(self.world.toolkit)
        reads = [tool for tool in tools if self.world.toolkit.is_read(tool.name)]
        others = [tool for tool in tools if tool not in reads]
        left = _TRIES * writes
        while writes and left and others:
            left -= 1
            step = self.move(self._rng.choice(reads if reads and self._rng.random() < 0.3 else others))
            writes -= bool(step and step["outcome"]["patch"])
        return self.moves

    def move(self, tool: ToolSpec) -> Step | None:
        """Make a move of a tool; None where it is refused or fails, or could not be made."""
        sources: dict[Place, Source] = {}
        try:
            args = self._object(tool.parameters, (), tool, sources)
        except Impossible:
            return None
        before, origin = self.world.fork(), len(self.moves)
        step = self.world.call({"name": tool.name, "args": args, "id": f"call_{origin + 1}"})
        outcome = step.get("outcome")
        if not outcome or not is_planned(step) or outcome.get("invented") or outcome.get("supposed"):
            self.world = before
            return None
        self.moves.append(Move(origin, tool.name, args, sources))
        self._known += [*_read(outcome["result"], origin)][:_MOST_VALUES]
        self._known += [each._replace(weight=3) for each in _read(args, None)]
        return step

    def change(self, tool: ToolSpec, move: Move) -> Move | None:
        """Return a move with one argument changed; None where no other value was found."""
        rules = tool.parameters.get("properties", {})
        for name in self._rng.sample(sorted(move.args), len(move.args)):
            for _ in range(4):
                sources: dict[Place, Source] = {}
                with suppress(Impossible):
                    value = self._argument(rules.get(name, {}), (name,), tool, sources)
                    if digest(value) != digest(move.args[name]):
                        kept = {place: one for place, one in move.sources.items() if place[0] != name}
                        return replace(move, args={**move.args, name: value}, sources=kept)
        return None

    def _object(self, schema: JsonObject, place: Place, tool: ToolSpec, sources: dict[Place, Source]) -> JsonObject:
        required = schema.get("required", ())
        rules = schema.get("properties", {}).items()
        asked = [(name, rule) for name, rule in rules if name in required or self._rng.random() < 0.35]
        return {name: self._argument(rule, (*place, name), tool, sources) for name, rule in asked}

    def _argument(self, schema: Any, place: Place, tool: ToolSpec, sources: dict[Place, Source]) -> Json:
        rule: JsonObject = schema if isinstance(schema, dict) else {}
        kind = rule.get("type")
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
        if (known := self._choose(rule, kind, place, tool)) is not None:
            if known.source:
                sources[place] = known.source
            return known.value
        return self._free(rule, kind, place)

    def _choose(self, rule: JsonObject, kind: str, place: Place, tool: ToolSpec) -> _Known | None:
        """Return a known value, likelier one whose name is the argument's; None where one is to be made."""
        name = next(each for each in reversed(place) if isinstance(each, str))
        wanted = {singular(each) for each in words(name)}
        wanted |= {noun(tool.name)} if len(wanted) == 1 and is_identifier(name) else set()
        kinds, check = _KINDS[kind], rules_of(rule)
        found = [
            (each, len(wanted & each.names) / len(wanted))
            for each in self._known
            if type(each.value) in kinds and each.value != ""
        ]
        found = [(each, alike) for each, alike in found if alike or not (isinstance(each.value, str) and " " in each.value)]
        best = max((alike for _, alike in found), default=0.0)
        keeps = 0.97 if is_identifier(name) else 0.75 if best > 0.4 and kind == "string" else 0.4
        if not found or self._rng.random() > keeps:
            return None
        weights = [(0.02 + alike) ** 2 * each.weight for each, alike in found]
        for each, _ in self._rng.choices(found, weights, k=4):
            if accepts(check, each.value):
                return each
        return None

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
        """Return a time after the state's clock, for a format of times."""
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


def _read(value: Json, origin: int | None, place: Place = ()) -> Iterator[_Known]:
    """Yield the scalars and the keys of a value, each with the words of its name."""
    for at, each in scalars(value):
        texts = [key for key in at if isinstance(key, str)]
        names = {singular(one) for key in texts[-1:] for one in words(key)}
        names |= {singular(" ".join(texts[-2:-1]))} if is_identifier(" ".join(texts[-1:])) else set()
        yield _Known(each, frozenset(names)) if origin is None else _Known(each, frozenset(names), Source(origin, at), 5)
    if origin is None:
        yield from _read_keys(value, "")


def _read_keys(value: Json, name: str) -> Iterator[_Known]:
    """Yield the keys of objects of objects: they name what stands below them."""
    if isinstance(value, dict):
        if name and value and all(isinstance(each, dict) for each in value.values()):
            names = frozenset({singular(one) for one in words(name)} | _NAMING)
            yield from (_Known(key, names) for key in value)
        for key, each in value.items():
            yield from _read_keys(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _read_keys(each, name)
