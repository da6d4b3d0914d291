"""Made-up values along a schema: valid, plausible, the same for the same key in every process (paper, A.4)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from ..errors import RunFailure
from ..schemas.complaints import faults
from ..schemas.formats import FORMATS
from ..schemas.pattern import compile_pattern
from ..schemas.rules import accepts, canonical, rules_of
from ..state import Json, JsonObject
from .agreement import Echo, Place, agree
from .dice import Dice
from .fields import Field, boolean, is_error, numbers_in, person_in, text
from .flatten import flattened, is_composed, is_hidden, kinds, new_names, rule_for
from .moments import examples_of, form_of, given_start, moment, rank_of
from .naming import is_identifier, is_own_identifier, noun, vocabulary, words
from .spelling import MAX_LENGTH, spell

MAX_DEPTH = 24
MAX_VALUES = 4_000
FEW_MEMBERS = 4
MAX_ROUNDS = 2
"""How often a reference is followed that leads back to itself."""

TRIES = 3

_PAGE_SIZES = vocabulary("limit max top size per count n k")


class Impossible(RunFailure):
    """A schema that nothing was found to fit."""


class TooLarge(RunFailure):
    """A value of more than `MAX_VALUES` parts."""


def make_value(
    schema: JsonObject, *, seed: int, key: str, hints: Mapping[str, Json] | None = None, subject: str = ""
) -> Json:
    """Make up a value that fits a schema.

    Args:
        schema: JSON Schema 2020-12; references point into it.
        seed: Another seed, another value.
        key: What the value belongs to; equal keys and seeds give equal values, different keys different identifiers.
        hints: A call's arguments, repeated where the schema has a place for them.
        subject: Name of the tool, for names and identities.

    Raises:
        Impossible: Nothing was found that fits.
    """
    reason = "it allows nothing"
    for turn, tight in ((0, False), (1, True), (2, True)):
        maker = Maker(schema, key=f"{seed}\0{key}\0{turn}", args=hints or {}, subject=subject)
        try:
            made = maker.make(tight=tight)
        except (Impossible, TooLarge) as failure:
            reason = str(failure)
            continue
        wrong = faults(schema, made)
        if not wrong:
            return made
        reason = wrong[0]
    raise Impossible(reason)


class Maker:
    """Makes one value. A maker is used once.

    Args:
        schema: The schema; references point into it.
        key: What the dice come from.
        args: The call's arguments, to be repeated where they fit.
        subject: Name of the tool.
    """

    def __init__(self, schema: JsonObject, *, key: str, args: Mapping[str, Json], subject: str) -> None:
        self._rules = rules_of(schema)
        self._key = key
        self._echo = Echo(args, tool=subject)
        self._person = person_in(args)
        self._subject = noun(subject)
        self._given, self._timed = given_start(dict(args))
        self._page = _page_size(args)
        self._left = MAX_VALUES

    def make(self, *, tight: bool) -> Json:
        """Make the value.

        Args:
            tight: True to make only what must be there.

        Raises:
            Impossible: Nothing was found that fits.
            TooLarge: It would have too many parts.
        """
        return self._value(self._rules.schema, Place(owner=self._subject, tight=tight))

    def _dice(self, trail: tuple[str | int, ...], what: str) -> Dice:
        return Dice("\0".join([self._key, what, *map(str, trail)]))

    def _fits(self, schema: Any, value: Json) -> bool:
        return accepts(self._rules.evolve(schema=schema), value)

    def _spend(self, parts: int) -> None:
        self._left -= parts
        if self._left < 0:
            raise TooLarge(f"more than {MAX_VALUES} parts")

    def _value(self, schema: Any, place: Place) -> Json:
        self._spend(1)
        if len(place.trail) > MAX_DEPTH:
            raise Impossible(f"more than {MAX_DEPTH} levels deep")
        composed = is_composed(schema)
        for turn in range(TRIES if composed else 1):
            for flat, refs in flattened(schema, self._rules.schema, self._dice(place.trail, f"choice {turn}")):
                again = max((place.refs.count(ref) for ref in refs), default=0)
                if again > MAX_ROUNDS:
                    continue
                here = replace(place, refs=(*place.refs, *refs), tight=place.tight or again > 0)
                try:
                    made = self._flat(flat, here, turn)
                except Impossible:
                    continue
                if not composed or self._fits(schema, made):
                    return made
        raise Impossible(f"nothing fits at {'.'.join(map(str, place.trail)) or 'the top'}")

    def _flat(self, flat: JsonObject, place: Place, turn: int) -> Json:
        if "const" in flat:
            return flat["const"]
        for said in self._echo.candidates(place):
            if self._fits(flat, said):
                return said
        if "enum" in flat:
            return self._listed(flat, place, turn)
        makers = {"object": self._object, "array": self._array}
        for kind in kinds(flat):
            try:
                return makers[kind](flat, place, turn) if kind in makers else self._scalar(kind, flat, place, turn)
            except Impossible:
                continue
        raise Impossible("no kind of value fits")

    def _listed(self, flat: JsonObject, place: Place, turn: int) -> Json:
        rest = {key: rule for key, rule in flat.items() if key != "enum"}
        fitting = [value for value in flat["enum"] if self._fits(rest, value)]
        bright = [value for value in fitting if value is not None and not is_error(str(value))]
        if not fitting:
            raise Impossible("no listed value fits")
        return self._dice(place.trail, f"enum {turn}").pick(bright or fitting)

    def _scalar(self, kind: str, flat: JsonObject, place: Place, turn: int) -> Json:
        for candidate in self._candidates(kind, flat, place, turn):
            if (candidate is not None or kind == "null") and self._fits(flat, candidate):
                return candidate
        raise Impossible(f"no {kind} fits")

    def _candidates(self, kind: str, flat: JsonObject, place: Place, turn: int) -> Iterator[Json]:
        if kind == "null":
            yield None
        elif kind == "boolean":
            yield from (boolean(place.name), not boolean(place.name))
        elif form := form_of(place.name, flat):
            dice, later = self._dice(place.item, "anchor"), bool(place.item)
            yield moment(dice, form, rank_of(place.near), self._given, timed=self._timed, later=later)
        person = None if place.item else self._person
        dice, shared = self._dice(place.trail, f"field {turn}"), self._dice(place.scope, "scope")
        field = Field(place.name, place.owner, dice, shared, person)
        if kind in ("integer", "number"):
            yield from numbers_in(flat, field, whole=kind == "integer")
        elif kind == "string":
            yield from self._texts(flat, place, field)

    def _texts(self, flat: JsonObject, place: Place, field: Field) -> Iterator[Json]:
        """Texts that may fit, the most plausible first."""
        least, most = flat.get("minLength", 0), flat.get("maxLength")
        if least > MAX_LENGTH:
            raise TooLarge(f"a text of more than {MAX_LENGTH} characters")
        shown = examples_of(flat)
        if shown and (is_identifier(place.name) or field.dice.chance(60)):
            example = field.dice.pick(shown)
            yield _vary(example, field.dice) if is_identifier(place.name) or flat.get("format") == "uuid" else example
        if (pattern := compile_pattern(flat.get("pattern", ""))) and "pattern" in flat:
            yield spell(pattern, field.dice, least=least, most=most)
            yield from shown
        made = text(field, flat)
        yield made
        if flat.get("format") not in FORMATS:
            yield _sized(made, field.dice, least, most)
        yield from shown

    def _array(self, flat: JsonObject, place: Place, turn: int) -> list[Json]:
        dice, first = self._dice(place.trail, f"array {turn}"), flat.get("prefixItems", [])
        least, most = flat.get("minItems", 0), flat.get("maxItems", 3)
        wanted = max(least, flat.get("minContains", 1) if "contains" in flat else 0)
        self._spend(wanted)
        count = wanted if place.tight else min(max(wanted, dice.between(1, 3), len(first)), most, self._page)
        made: list[Json] = []
        for index in range(max(count, wanted)):
            rule = first[index] if index < len(first) else flat.get("items", True)
            if index < flat.get("minContains", 1) and "contains" in flat:
                rule = {"allOf": [rule, flat["contains"]]}
            item = self._another(rule, place, made, unique=bool(flat.get("uniqueItems")))
            if item is None and len(made) >= wanted:
                break
            made.append(item[0] if item else self._value(rule, self._item(place, index, 0)))
        return made

    def _item(self, place: Place, index: int, salt: int) -> Place:
        trail = (*place.trail, index, *([f"again {salt}"] if salt else []))
        return replace(place, trail=trail, near=(), item=trail)

    def _another(self, rule: Any, place: Place, made: list[Json], *, unique: bool) -> tuple[Json] | None:
        """One more item that is not one of those there are, as a tuple; None where none was found.

        Items without `uniqueItems` and without an identity differ where they can.
        """
        item: Json = None
        seen = set(map(canonical, made[-20:] if not unique else made))
        for salt in range(2 * TRIES):
            try:
                item = self._value(rule, self._item(place, len(made), salt))
            except Impossible:
                return None
            if canonical(item) not in seen and not _same_identity(item, made, place.name):
                return (item,)
        return None if unique or isinstance(item, dict) else (item,)

    def _object(self, flat: JsonObject, place: Place, turn: int) -> JsonObject:
        rules, required = dict(flat.get("properties", {})), _all_required(flat)
        for name in required:
            rules.setdefault(name, rule_for(flat, name))
        left_out = self._left_out(flat, place, turn)
        room = flat.get("maxProperties", len(rules)) - len(required)
        made: JsonObject = {}
        for name, rule in rules.items():
            wanted = name in required
            if not wanted and (room <= 0 or name in left_out):
                continue
            try:
                made[name] = self._value(rule, place.member(name))
            except Impossible:
                if wanted:
                    raise
                continue
            room -= not wanted
        self._fill(made, flat, place, self._dice(place.trail, f"members {turn}"))
        args = {name for name in made if self._repeats(place.member(name), made[name])}
        agree(made, fixed=args, fits=lambda name, value: self._fits(rules.get(name, True), value))
        return made

    def _left_out(self, flat: JsonObject, place: Place, turn: int) -> set[str]:
        """The optional members that are not made: some of many, what tells of errors, what a result never shows."""
        dice, optional = self._dice(place.trail, f"object {turn}"), flat.get("properties", {})
        if place.tight:
            return set(optional)
        few = len(optional) <= FEW_MEMBERS
        return {
            name
            for name, rule in optional.items()
            if is_hidden(rule)
            or is_error(name)
            or name in flat.get("dependentRequired", {})
            or not (few or is_own_identifier(name, place.name or place.owner) or dice.chance(90))
        }

    def _repeats(self, place: Place, value: Json) -> bool:
        return any(canonical(said) == canonical(value) for said in self._echo.candidates(place))

    def _fill(self, made: JsonObject, flat: JsonObject, place: Place, dice: Dice) -> None:
        """Members that are nowhere listed: those that are missing, and some in a map."""
        least = flat.get("minProperties", 0)
        self._spend(least)
        is_map = not flat.get("properties") and bool(flat.get("additionalProperties") or flat.get("patternProperties"))
        wanted = max(least, len(made) + (dice.between(1, 2) if is_map and not place.tight else 0))
        if len(made) >= wanted:
            return
        listed = [name for name, rule in flat.get("properties", {}).items() if name not in made and rule is not False]
        for name in chain(listed, new_names(flat, dice, place.name or place.owner)):
            if len(made) >= min(wanted, flat.get("maxProperties", wanted)):
                return
            if name not in made and (name in listed or self._fits(flat.get("propertyNames", True), name)):
                made[name] = self._value(rule_for(flat, name), place.member(name))


def _all_required(flat: JsonObject) -> list[str]:
    """What an object must have, with what must stand beside it."""
    names = list(flat.get("required", []))
    beside = flat.get("dependentRequired", {})
    for name in names:
        names += (other for other in beside.get(name, ()) if other not in names)
    return names


def _same_identity(item: Json, others: list[Json], owner: str) -> bool:
    """True if one of the others has the same identifier."""
    if not isinstance(item, dict):
        return False
    own = [name for name in item if is_own_identifier(name, owner) and isinstance(item[name], str | int)]
    return any(isinstance(other, dict) and any(other.get(name) == item[name] for name in own) for other in others)


def _page_size(args: Mapping[str, Json]) -> int:
    """How many items the arguments ask for, at most."""
    sizes = (value for name, value in args.items() if _PAGE_SIZES & set(words(name)) and isinstance(value, int))
    return min((size for size in sizes if size > 0), default=3)


def _sized(made: str, dice: Dice, least: int, most: int | None) -> str:
    while len(made) < least:
        made += f" {dice.letters(6, 'abcdefghijklmnopqrstuvwxyz')}" if made else dice.letters(6)
    return made if most is None else made[:most].strip() or dice.letters(most)


def _vary(example: Json, dice: Dice) -> Json:
    """An identifier in the manner of an example, with digits of its own; where there is none, letters."""
    if not isinstance(example, str):
        return example
    old, new = ("[0-9]", "0123456789") if re.search("[0-9]", example) else ("[a-z]", "abcdefghijklmnopqrstuvwxyz")
    made = re.sub(old, lambda _: dice.pick(new), example)
    return made if new[0] == "0" else re.sub("[A-Z]", lambda _: dice.pick(new).upper(), made)
