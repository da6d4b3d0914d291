"""Make up values from a schema: valid, and equal for equal keys in every process (paper, A.4)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from jsonschema.protocols import Validator

from ..errors import RunFailure
from ..state import Json, JsonObject
from .complaints import find_faults
from .flat import flatten
from .rules import accepts, canonical, rules_of
from .specimens import (
    CHECKED_AFTERWARDS,
    Dice,
    find_member_schema,
    is_own_identifier,
    list_examples,
    list_types,
    make_names,
    make_numbers,
    make_texts,
    noun,
    vocabulary,
    words,
)

MAX_DEPTH = 24
MAX_VALUES = 4_000
MAX_ECHOED = 2_000
"""Longest argument that may be repeated, in characters."""
MAX_ROUNDS = 2
"""How often a recursive reference is followed."""
TRIES = 3
_WRAPPERS = vocabulary("data result response payload body")
"""Wrapper members, which do not name the object in them."""
_ITEM = "try "
"""Start of the last trail token of an item."""

_BAD = vocabulary(
    "error errors failure failed exception warning warnings invalid deleted blocked expired cancelled canceled more"
)
"""Words of fields and values that would make a success look like a failure."""


class Impossible(RunFailure):
    """No value that fits the schema was found."""


class ValueTooLarge(RunFailure):
    """A value with more than `MAX_VALUES` parts."""


def make_value(
    schema: JsonObject,
    *,
    seed: int,
    key: str,
    hints: Mapping[str, Json] | None = None,
    subject: str = "",
    examples: Sequence[Json] = (),
) -> Json:
    """Make up a value that fits a schema.

    Args:
        schema: JSON Schema 2020-12; references point into it.
        seed: Seed of the value.
        key: Identity of the value: equal keys and seeds give equal values, different keys different identifiers.
        hints: A call's arguments, repeated in fields of the same names.
        subject: Name of the tool, for identifiers.
        examples: Known whole values; the call's arguments replace their members of the same names.

    Raises:
        Impossible: No fitting value was found.
    """
    reason, rules = "it allows nothing", rules_of(schema)
    # finally without the arguments: a repeated number may be too large for a result
    for turn, (tight, args) in enumerate(((False, hints), (True, hints), (True, None))):
        maker = _Maker(rules, key=f"{seed}\0{key}\0{turn}", args=args or {}, examples=examples)
        try:
            value = maker.make(rules.schema, Position(owner=noun(subject), tight=tight))
        except (Impossible, ValueTooLarge) as failure:
            reason = str(failure)
            continue
        wrong = find_faults(schema, value)
        if not wrong:
            return value
        reason = wrong[0]
    raise Impossible(reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The position of a part in the value: its trail from the root, the nearest field, and the object's name."""

    trail: tuple[str | int, ...] = ()
    name: str = ""
    owner: str = ""
    refs: tuple[str, ...] = ()
    """References on the way here, with repetitions."""
    listed: bool = False
    again: bool = False
    """Whether it is inside an item other than the first of its list."""
    tight: bool = False
    """Whether only required parts are made."""
    above: frozenset[tuple[str, ...]] = frozenset()
    """Names in the enclosing objects: an argument for one of them does not apply to a part."""
    beside: frozenset[tuple[str, ...]] = frozenset()
    """Names in the object itself."""
    is_thing: bool = False
    """Whether an enclosing object has an identifier of its own."""
    is_other: bool = False
    """Whether this is inside a thing within another thing, to which a call's arguments do not apply."""

    def inside(self, names: Iterable[str]) -> Position:
        """Return the position inside an object whose members have these names."""
        is_item = bool(self.trail) and str(self.trail[-1]).startswith(_ITEM)
        is_thing = any(is_own_identifier(name, self.name or self.owner) for name in names)
        return replace(
            self,
            above=self.above | self.beside,
            beside=frozenset(map(words, names)),
            is_thing=self.is_thing or is_thing,
            is_other=self.is_other or (self.is_thing and (is_thing or is_item)),
        )

    def member(self, name: str) -> Position:
        owner = self.owner if self.name in _WRAPPERS else self.name or self.owner
        return replace(self, trail=(*self.trail, name), name=name, owner=owner)


class _Maker:
    def __init__(self, rules: Validator, *, key: str, args: Mapping[str, Json], examples: Sequence[Json] = ()) -> None:
        self._rules = rules
        self._key, self._examples = key, examples
        self._args = {words(name): value for name, value in args.items() if len(json.dumps(value)) <= MAX_ECHOED}
        self._left = MAX_VALUES

    def _dice(self, position: Position, what: str) -> Dice:
        return Dice("\0".join([self._key, what, *map(str, position.trail)]))

    def _fits(self, schema: Any, value: Json) -> bool:
        return accepts(self._rules.evolve(schema=schema), value)

    def _spend(self, parts: int) -> None:
        self._left -= parts
        if self._left < 0:
            raise ValueTooLarge(f"more than {MAX_VALUES} parts")

    def make(self, schema: Any, position: Position) -> Json:
        """Make a value for the schema or one of its parts. Raises Impossible, ValueTooLarge."""
        self._spend(1)
        if len(position.trail) > MAX_DEPTH:
            raise Impossible(f"more than {MAX_DEPTH} levels deep")
        composed = isinstance(schema, dict) and not schema.keys().isdisjoint(CHECKED_AFTERWARDS)
        for turn in range(TRIES if composed else 1):
            for flat, refs in flatten(schema, self._rules.schema, self._dice(position, f"choice {turn}")):
                again = max((position.refs.count(ref) for ref in refs), default=0)
                if again > MAX_ROUNDS:
                    continue
                here = replace(position, refs=(*position.refs, *refs), tight=position.tight or again > 0)
                try:
                    value = self._flat(flat, here, turn)
                except Impossible:
                    continue
                if not composed or self._fits(schema, value):
                    return value
        raise Impossible(f"nothing fits at {'.'.join(map(str, position.trail)) or 'the top'}")

    def _flat(self, flat: JsonObject, position: Position, turn: int) -> Json:
        if "const" in flat:
            return flat["const"]
        dice = self._dice(position, f"field {turn}")
        for value in chain(self._from_call(position), self._from_examples(flat, position)):
            if self._fits(flat, value):
                return value
        if "enum" in flat:
            return self._listed(flat, dice)
        for kind in list_types(flat):
            try:
                return self._of_kind(kind, flat, position, dice)
            except Impossible:
                continue
        raise Impossible("no kind of value fits")

    def _from_call(self, position: Position) -> Iterator[Json]:
        """Yield the call's values for a field."""
        asked, own = words(position.name), is_own_identifier(position.name, position.owner)
        if position.is_other or asked in position.above or (own and position.listed):
            return
        for name in (asked, (*words(position.owner), *asked) if own else ()):
            if name in self._args:
                yield self._args[name]

    def _from_examples(self, flat: JsonObject, position: Position) -> Iterator[Json]:
        """Yield the schema's examples and default, except texts, which each field handles itself."""
        if position.tight or position.again:
            return
        whole = [] if position.trail else self._examples
        for value in chain(whole, list_examples(flat)):
            if value in whole or not isinstance(value, str | None):
                yield self._with_call_values(value, flat, position)

    def _with_call_values(self, value: Json, flat: JsonObject, position: Position) -> Json:
        """Return an example with the call's values in its members."""
        if not isinstance(value, dict):
            return value
        made, inside = JsonObject(), position.inside([*value])
        for name, each in value.items():
            rule, there = find_member_schema(flat, name), inside.member(name)
            inner = next((one for one, _ in flatten(rule, self._rules.schema, self._dice(there, "shown"))), {})
            said = (one for one in self._from_call(there) if self._fits(rule, one))
            made[name] = next(said, self._with_call_values(each, inner, there))
        return made

    def _of_kind(self, kind: str, flat: JsonObject, position: Position, dice: Dice) -> Json:
        if kind == "object":
            return self._object(flat, position, dice)
        if kind == "array":
            return self._array(flat, position, dice)
        for candidate in _scalars(kind, flat, position, dice):
            if (candidate is not None or kind == "null") and self._fits(flat, candidate):
                return candidate
        raise Impossible(f"no {kind} fits")

    def _listed(self, flat: JsonObject, dice: Dice) -> Json:
        rest = {key: rule for key, rule in flat.items() if key != "enum"}
        fitting = [value for value in flat["enum"] if self._fits(rest, value)]
        if not fitting:
            raise Impossible("no listed value fits")
        return dice.pick([value for value in fitting if value is not None and not _is_bad(str(value))] or fitting)

    def _array(self, flat: JsonObject, position: Position, dice: Dice) -> list[Json]:
        first, unique = flat.get("prefixItems", []), bool(flat.get("uniqueItems"))
        least, most = flat.get("minItems", 0), flat.get("maxItems", 3)
        wanted = max(least, flat.get("minContains", 1) if "contains" in flat else 0)
        self._spend(wanted)
        count = wanted if position.tight else max(wanted, min(max(dice.between(1, 3), len(first)), most))
        value: list[Json] = []
        for index in range(count):
            rule = first[index] if index < len(first) else flat.get("items", True)
            if index < flat.get("minContains", 1) and "contains" in flat:
                rule = {"allOf": [rule, flat["contains"]]}
            try:
                value.append(self._another(rule, position, value, unique=unique, needed=index < wanted))
            except Impossible:
                if len(value) < wanted:
                    raise
                break
        return value

    def _another(self, rule: Any, position: Position, value: list[Json], *, unique: bool, needed: bool) -> Json:
        """Return one more item, different from earlier ones if required or possible."""
        item: Json = None
        seen = set(map(canonical, value))
        for salt in range(2 * TRIES):
            item = self.make(
                rule,
                replace(
                    position,
                    trail=(*position.trail, len(value), f"{_ITEM}{salt}"),
                    listed=True,
                    again=bool(value or salt),
                ),
            )
            if canonical(item) not in seen:
                return item
        if unique or not needed:
            raise Impossible("no further item was found")
        return item

    def _object(self, flat: JsonObject, position: Position, dice: Dice) -> JsonObject:
        rules, required = dict(flat.get("properties", {})), _all_required(flat)
        for name in required:
            rules.setdefault(name, find_member_schema(flat, name))
        room = flat.get("maxProperties", len(rules)) - len(required)
        value: JsonObject = {}
        position = position.inside([*rules])
        for name, rule in rules.items():
            wanted = name in required
            if not wanted and (
                room <= 0 or position.tight or _is_bad(name) or name in flat.get("dependentRequired", {})
            ):
                continue
            try:
                value[name] = self.make(rule, position.member(name))
            except Impossible:
                if wanted:
                    raise
                continue
            room -= not wanted
        self._fill(value, flat, position, dice)
        return value

    def _fill(self, value: JsonObject, flat: JsonObject, position: Position, dice: Dice) -> None:
        """Add missing members, and further members to a map."""
        least = flat.get("minProperties", 0)
        self._spend(least)
        is_map = not flat.get("properties") and bool(flat.get("additionalProperties") or flat.get("patternProperties"))
        wanted = max(least, len(value) + (dice.between(1, 2) if is_map and not position.tight else 0))
        listed = [name for name, rule in flat.get("properties", {}).items() if name not in value and rule is not False]
        for name in chain(listed, make_names(flat, dice, position.name or position.owner)):
            if len(value) >= min(wanted, flat.get("maxProperties", wanted)):
                return
            if name not in value and (name in listed or self._fits(flat.get("propertyNames", True), name)):
                value[name] = self.make(find_member_schema(flat, name), position.member(name))


def _scalars(kind: str, flat: JsonObject, position: Position, dice: Dice) -> Iterator[Json]:
    if kind == "null":
        yield None
    elif kind == "boolean":
        yield from (one for one in list_examples(flat) if isinstance(one, bool))
        yield from (not _is_bad(position.name), _is_bad(position.name))
    elif kind == "string":
        yield from make_texts(flat, dice, name=position.name, owner=position.owner)
    else:
        yield from make_numbers(flat, dice, name=position.name, whole=kind == "integer")


def _is_bad(name: str) -> bool:
    return not _BAD.isdisjoint(words(name))


def _all_required(flat: JsonObject) -> list[str]:
    names = list(flat.get("required", []))
    beside = flat.get("dependentRequired", {})
    for name in names:
        names += (other for other in beside.get(name, ()) if other not in names)
    return names
