"""Values made up from a schema: valid, plausible, the same for the same key in every process (paper, A.4)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from ..errors import RunFailure
from ..schemas.complaints import find_faults
from ..schemas.formats import FORMATS
from ..schemas.pattern import compile_pattern
from ..schemas.rules import accepts, canonical, rules_of
from ..state import Json, JsonObject
from .agreement import Echo, Position, agree
from .dice import Dice
from .fields import Field, choose_boolean, find_person, is_error, make_numbers, make_text
from .flatten import find_member_schema, flatten, is_composed, is_hidden, list_types, make_names
from .moments import find_form, find_rank, find_start, list_examples, make_moment
from .naming import is_identifier, is_own_identifier, noun, vocabulary, words
from .spelling import MAX_LENGTH, spell

MAX_DEPTH = 24
MAX_VALUES = 4_000
FEW_MEMBERS = 4
MAX_ROUNDS = 2
"""How often a recursive reference is followed."""

TRIES = 3

_PAGE_SIZES = vocabulary("limit max top size per count n k")


class Impossible(RunFailure):
    """No value was found that fits the schema."""


class TooLarge(RunFailure):
    """A value of more than `MAX_VALUES` parts."""


def make_value(
    schema: JsonObject, *, seed: int, key: str, hints: Mapping[str, Json] | None = None, subject: str = ""
) -> Json:
    """Make up a value that fits a schema.

    Args:
        schema: JSON Schema 2020-12; references point into it.
        seed: Another seed, another value.
        key: Identity of the value; equal keys and seeds give equal values, different keys different identifiers.
        hints: A call's arguments, repeated where the schema has fields for them.
        subject: Name of the tool, for names and identities.

    Raises:
        Impossible: No fitting value was found.
    """
    reason = "it allows nothing"
    for turn, tight in ((0, False), (1, True), (2, True)):
        maker = Maker(schema, key=f"{seed}\0{key}\0{turn}", args=hints or {}, subject=subject)
        try:
            value = maker.make(tight=tight)
        except (Impossible, TooLarge) as failure:
            reason = str(failure)
            continue
        wrong = find_faults(schema, value)
        if not wrong:
            return value
        reason = wrong[0]
    raise Impossible(reason)


class Maker:
    """Makes one value; used once.

    `key` is the seed of the dice; the call's arguments are repeated where they fit.
    """

    def __init__(self, schema: JsonObject, *, key: str, args: Mapping[str, Json], subject: str) -> None:
        self._rules = rules_of(schema)
        self._key = key
        self._echo = Echo(args, tool=subject)
        self._person = find_person(args)
        self._subject = noun(subject)
        self._given, self._timed = find_start(dict(args))
        self._page = _page_size(args)
        self._left = MAX_VALUES

    def make(self, *, tight: bool) -> Json:
        """Make the value; a tight one has only its required parts.

        Raises:
            Impossible: No fitting value was found.
            TooLarge: The value would have too many parts.
        """
        return self._value(self._rules.schema, Position(owner=self._subject, tight=tight))

    def _dice(self, trail: tuple[str | int, ...], what: str) -> Dice:
        return Dice("\0".join([self._key, what, *map(str, trail)]))

    def _fits(self, schema: Any, value: Json) -> bool:
        return accepts(self._rules.evolve(schema=schema), value)

    def _spend(self, parts: int) -> None:
        self._left -= parts
        if self._left < 0:
            raise TooLarge(f"more than {MAX_VALUES} parts")

    def _value(self, schema: Any, position: Position) -> Json:
        self._spend(1)
        if len(position.trail) > MAX_DEPTH:
            raise Impossible(f"more than {MAX_DEPTH} levels deep")
        composed = is_composed(schema)
        for turn in range(TRIES if composed else 1):
            for flat, refs in flatten(schema, self._rules.schema, self._dice(position.trail, f"choice {turn}")):
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
        for argument in self._echo.candidates(position):
            if self._fits(flat, argument):
                return argument
        if "enum" in flat:
            return self._listed(flat, position, turn)
        makers = {"object": self._object, "array": self._array}
        for kind in list_types(flat):
            try:
                return (
                    makers[kind](flat, position, turn) if kind in makers else self._scalar(kind, flat, position, turn)
                )
            except Impossible:
                continue
        raise Impossible("no kind of value fits")

    def _listed(self, flat: JsonObject, position: Position, turn: int) -> Json:
        rest = {key: rule for key, rule in flat.items() if key != "enum"}
        fitting = [value for value in flat["enum"] if self._fits(rest, value)]
        bright = [value for value in fitting if value is not None and not is_error(str(value))]
        if not fitting:
            raise Impossible("no listed value fits")
        return self._dice(position.trail, f"enum {turn}").pick(bright or fitting)

    def _scalar(self, kind: str, flat: JsonObject, position: Position, turn: int) -> Json:
        for candidate in self._candidates(kind, flat, position, turn):
            if (candidate is not None or kind == "null") and self._fits(flat, candidate):
                return candidate
        raise Impossible(f"no {kind} fits")

    def _candidates(self, kind: str, flat: JsonObject, position: Position, turn: int) -> Iterator[Json]:
        if kind == "null":
            yield None
        elif kind == "boolean":
            yield from (choose_boolean(position.name), not choose_boolean(position.name))
        elif form := find_form(position.name, flat):
            dice, later = self._dice(position.item, "anchor"), bool(position.item)
            yield make_moment(dice, form, find_rank(position.near), self._given, timed=self._timed, later=later)
        person = None if position.item else self._person
        dice, shared = self._dice(position.trail, f"field {turn}"), self._dice(position.scope, "scope")
        field = Field(position.name, position.owner, dice, shared, person)
        if kind in ("integer", "number"):
            yield from make_numbers(flat, field, whole=kind == "integer")
        elif kind == "string":
            yield from self._texts(flat, position, field)

    def _texts(self, flat: JsonObject, position: Position, field: Field) -> Iterator[Json]:
        """Yield texts that may fit, the most plausible first."""
        least, most = flat.get("minLength", 0), flat.get("maxLength")
        if least > MAX_LENGTH:
            raise TooLarge(f"a text of more than {MAX_LENGTH} characters")
        shown = list_examples(flat)
        if shown and (is_identifier(position.name) or field.dice.chance(60)):
            example = field.dice.pick(shown)
            yield (
                _vary(example, field.dice) if is_identifier(position.name) or flat.get("format") == "uuid" else example
            )
        if (pattern := compile_pattern(flat.get("pattern", ""))) and "pattern" in flat:
            yield spell(pattern, field.dice, least=least, most=most)
            yield from shown
        value = make_text(field, flat)
        yield value
        if flat.get("format") not in FORMATS:
            yield _sized(value, field.dice, least, most)
        yield from shown

    def _array(self, flat: JsonObject, position: Position, turn: int) -> list[Json]:
        dice, first = self._dice(position.trail, f"array {turn}"), flat.get("prefixItems", [])
        least, most = flat.get("minItems", 0), flat.get("maxItems", 3)
        wanted = max(least, flat.get("minContains", 1) if "contains" in flat else 0)
        self._spend(wanted)
        count = wanted if position.tight else min(max(wanted, dice.between(1, 3), len(first)), most, self._page)
        value: list[Json] = []
        for index in range(max(count, wanted)):
            rule = first[index] if index < len(first) else flat.get("items", True)
            if index < flat.get("minContains", 1) and "contains" in flat:
                rule = {"allOf": [rule, flat["contains"]]}
            item = self._another(rule, position, value, unique=bool(flat.get("uniqueItems")))
            if item is None and len(value) >= wanted:
                break
            value.append(item[0] if item else self._value(rule, self._item(position, index, 0)))
        return value

    def _item(self, position: Position, index: int, salt: int) -> Position:
        trail = (*position.trail, index, *([f"again {salt}"] if salt else []))
        return replace(position, trail=trail, near=(), item=trail)

    def _another(self, rule: Any, position: Position, value: list[Json], *, unique: bool) -> tuple[Json] | None:
        """Return one more item that differs from the others, as a tuple; None where none was found.

        Items without `uniqueItems` and without an identity differ where possible.
        """
        item: Json = None
        seen = set(map(canonical, value[-20:] if not unique else value))
        for salt in range(2 * TRIES):
            try:
                item = self._value(rule, self._item(position, len(value), salt))
            except Impossible:
                return None
            if canonical(item) not in seen and not _same_identity(item, value, position.name):
                return (item,)
        return None if unique or isinstance(item, dict) else (item,)

    def _object(self, flat: JsonObject, position: Position, turn: int) -> JsonObject:
        rules, required = dict(flat.get("properties", {})), _all_required(flat)
        for name in required:
            rules.setdefault(name, find_member_schema(flat, name))
        left_out = self._left_out(flat, position, turn)
        room = flat.get("maxProperties", len(rules)) - len(required)
        value: JsonObject = {}
        for name, rule in rules.items():
            wanted = name in required
            if not wanted and (room <= 0 or name in left_out):
                continue
            try:
                value[name] = self._value(rule, position.member(name))
            except Impossible:
                if wanted:
                    raise
                continue
            room -= not wanted
        self._fill(value, flat, position, self._dice(position.trail, f"members {turn}"))
        echoed = {name: map(canonical, self._echo.candidates(position.member(name))) for name in value}
        args = {name for name, arguments in echoed.items() if canonical(value[name]) in arguments}
        agree(value, fixed=args, fits=lambda name, value: self._fits(rules.get(name, True), value))
        return value

    def _left_out(self, flat: JsonObject, position: Position, turn: int) -> set[str]:
        """Return the optional members to leave out: some of many, fields about errors, fields hidden in results."""
        dice, optional = self._dice(position.trail, f"object {turn}"), flat.get("properties", {})
        if position.tight:
            return set(optional)
        few = len(optional) <= FEW_MEMBERS
        return {
            name
            for name, rule in optional.items()
            if is_hidden(rule)
            or is_error(name)
            or name in flat.get("dependentRequired", {})
            or not (few or is_own_identifier(name, position.name or position.owner) or dice.chance(90))
        }

    def _fill(self, value: JsonObject, flat: JsonObject, position: Position, dice: Dice) -> None:
        """Add missing members, and unlisted ones to a map."""
        least = flat.get("minProperties", 0)
        self._spend(least)
        is_map = not flat.get("properties") and bool(flat.get("additionalProperties") or flat.get("patternProperties"))
        wanted = max(least, len(value) + (dice.between(1, 2) if is_map and not position.tight else 0))
        if len(value) >= wanted:
            return
        listed = [name for name, rule in flat.get("properties", {}).items() if name not in value and rule is not False]
        for name in chain(listed, make_names(flat, dice, position.name or position.owner)):
            if len(value) >= min(wanted, flat.get("maxProperties", wanted)):
                return
            if name not in value and (name in listed or self._fits(flat.get("propertyNames", True), name)):
                value[name] = self._value(find_member_schema(flat, name), position.member(name))


def _all_required(flat: JsonObject) -> list[str]:
    names = list(flat.get("required", []))
    beside = flat.get("dependentRequired", {})
    for name in names:
        names += (other for other in beside.get(name, ()) if other not in names)
    return names


def _same_identity(item: Json, others: list[Json], owner: str) -> bool:
    if not isinstance(item, dict):
        return False
    own = [name for name in item if is_own_identifier(name, owner) and isinstance(item[name], str | int)]
    return any(isinstance(other, dict) and any(other.get(name) == item[name] for name in own) for other in others)


def _page_size(args: Mapping[str, Json]) -> int:
    sizes = (value for name, value in args.items() if _PAGE_SIZES & set(words(name)) and isinstance(value, int))
    return min((size for size in sizes if size > 0), default=3)


def _sized(value: str, dice: Dice, least: int, most: int | None) -> str:
    while len(value) < least:
        value += f" {dice.letters(6, 'abcdefghijklmnopqrstuvwxyz')}" if value else dice.letters(6)
    return value if most is None else value[:most].strip() or dice.letters(most)


def _vary(example: Json, dice: Dice) -> Json:
    """Return an identifier like the example, with other digits; where it has none, other letters."""
    if not isinstance(example, str):
        return example
    old, new = ("[0-9]", "0123456789") if re.search("[0-9]", example) else ("[a-z]", "abcdefghijklmnopqrstuvwxyz")
    value = re.sub(old, lambda _: dice.pick(new), example)
    return value if new[0] == "0" else re.sub("[A-Z]", lambda _: dice.pick(new).upper(), value)
