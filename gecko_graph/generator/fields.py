"""Plausible values for fields by name and format; numbers and addresses are those reserved for examples."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from ..schemas.formats import INTEGER_BITS
from .dice import Dice
from .moments import list_examples
from .naming import IDENTIFIERS, is_identifier, noun, vocabulary, words

_FAR = 1 << 53

_LISTS: Mapping[str, str] = {
    "first": "Ada Ben Carla Diego Elif Farid Grace Hana Ivan Julia Kofi Lena Mateo Nora Omar Priya Quinn Rosa Samir",
    "last": "Alvarez Becker Chen Diaz Eriksen Fischer Garcia Haddad Ito Jansen Lopez Moreau Nguyen Okafor Patel Rossi",
    "quality": "Blue Bright Classic Compact Fresh Golden Green Modern Quiet Simple Silver Urban",
    "thing": "Garden Harbor Lantern Meadow Orchard River Studio Summit Valley Willow Workshop",
    "street": "Oak_Street Maple_Avenue Hill_Road Station_Street Park_Lane River_Road Mill_Lane",
}
_PLACES = (
    ("Boston", "US", "United States", "MA", "02108", "BOS"),
    ("Chicago", "US", "United States", "IL", "60601", "ORD"),
    ("Seattle", "US", "United States", "WA", "98101", "SEA"),
    ("Toronto", "CA", "Canada", "ON", "M5H 2N2", "YYZ"),
    ("Paris", "FR", "France", "IDF", "75001", "CDG"),
    ("Berlin", "DE", "Germany", "BE", "10115", "BER"),
    ("Tokyo", "JP", "Japan", "13", "100-0001", "HND"),
)
"""City, country code, country, region, postal code, airport."""

_PEOPLE = vocabulary(
    "user person customer passenger owner author contact employee member patient student driver guest sender "
    "recipient account assignee organizer creator"
)

# the field's last significant words, and texts for it; {slots} are filled by `_fill_slot`
_TEXTS: tuple[tuple[str, str], ...] = (
    ("email mail", "{login}@example.com"),
    ("phone mobile fax telephone phone_number", "+1-202-555-01{number}"),
    ("username login handle nickname by", "{login}"),
    ("url uri link href website homepage webpage urls links", "https://example.com/{about}/{hex}"),
    ("image photo picture avatar thumbnail icon logo", "https://example.com/images/{hex}.png"),
    (
        "description summary comment content text body note notes bio caption reason details review snippet",
        "{quality} {about} near the {thing}.",
    ),
    ("message detail result response", "The request was carried out."),
    ("title subject label headline heading product company organization team", "{quality} {thing}"),
    ("city town location place origin destination from to", "{place0}"),
    ("country_code iso-country-code", "{place1}"),
    ("country", "{place2}"),
    ("region province", "{place3}"),
    ("zip zipcode postcode postal postal_code zip_code", "{place4}"),
    ("airport iata airport_code", "{place5}"),
    ("address", "{number} {street}, {place0}, {place3} {place4}"),
    ("street address1 line1", "{number} {street}"),
    ("first_name given_name firstname", "{first}"),
    ("last_name family_name lastname surname", "{last}"),
    ("full_name", "{first} {last}"),
    ("name user person customer passenger owner author contact employee driver guest sender recipient", "{name}"),
    ("color colour", "black|blue|green|red|white"),
    ("currency currency_code", "USD|EUR|GBP|JPY"),
    ("language locale lang language_code", "en|de|es|fr|ja"),
    ("timezone", "America/New_York|Europe/Berlin|Asia/Tokyo|UTC"),
    ("gender", "female|male"),
    ("version", "1.{number}.0"),
    ("ip ipv4 ip_address", "192.0.2.{number}"),
    ("host hostname domain", "{about}.example.com"),
    ("status state stage", "active|completed|confirmed|open"),
    ("type category kind class tier level plan", "basic|plus|standard"),
    ("tag tags keyword keywords topic topics", "family|garden|news|sport|travel"),
    ("file filename filenames files file_name", "{about}_{number}.txt"),
    ("path folder directory", "{about}/{number}"),
    ("duration", "2 hours|3 hours|90 minutes"),
    ("method", "GET|POST"),
    ("symbol symbols ticker stock stocks unit units", "ABCD|EFGH|KLMN|STUV"),
    ("amount price cost fee balance", "{number}.50"),
    ("last_4 digits pin", "42{number}"),
)
_BY_WORD = {word: forms for names, forms in _TEXTS for word in names.split()}
_FORMATS = _BY_WORD | {
    "uri-reference": _BY_WORD["uri"],
    "uuid": "{hex}-{hex4}-4{hex3}-a{hex3}-{hex}{hex4}",
    "ipv6": "2001:db8::1{hex3}",
    "duration": "PT{number}M",
    "byte": "{hex}{hex3}=",
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field that wants a value.

    Args:
        name: Its name; the nearest one where it is an item of an array, empty at the root.
        owner: Name of the enclosing object; empty if unknown.
        dice: Its own dice.
        shared: The dice that all fields of one object share, so that they agree with each other.
        person: First and last name found in the call's arguments.
    """

    name: str
    owner: str
    dice: Dice
    shared: Dice
    person: tuple[str, str] | None = None


def _fill_slot(slot: str, field: Field) -> str:
    """Return the text for a slot; person and place are the same for the whole object."""
    dice, which = field.dice, slot[-1]
    if slot in ("first", "last"):
        return field.person[slot == "last"] if field.person else field.shared.part(slot).word(_LISTS[slot])
    if slot in _LISTS:
        return dice.word(_LISTS[slot]).replace("_", " ")
    if slot.startswith("place"):
        # the two ends of a trip differ
        end = {"destination", "to", "arrival", "dropoff"} & set(words(field.name))
        return _PLACES[(field.shared.part("place").below(len(_PLACES)) + 3 * bool(end)) % len(_PLACES)][int(which)]
    if slot == "name":
        is_person = {noun(field.owner), *words(field.name)} & _PEOPLE
        return _fill("{first} {last}" if is_person else "{quality} {thing}", field)
    if slot == "login":
        return _fill("{first}.{last}", field).lower()
    if slot.startswith("hex"):
        return dice.letters(int(which) if which.isdigit() else 8)
    return str(dice.between(10, 99)) if slot == "number" else noun(field.owner) or "item"


def _fill(form: str, field: Field) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: _fill_slot(match[1], field), form)


def make_text(field: Field, schema: Mapping[str, Any]) -> str:
    """Return a plausible text by format, name, or the values that the description lists; else name and number."""
    found = words(field.name)
    forms = _FORMATS.get(str(schema.get("format"))) or _BY_WORD.get("_".join(found[-2:]))
    if forms is None and {*found[-1:]} & IDENTIFIERS:
        about = noun(field.name) or noun(field.owner)
        return f"{about}_{field.dice.letters(8)}" if about else field.dice.letters(12)
    if forms is None:
        forms = next((_BY_WORD[word] for word in reversed(found) if word in _BY_WORD), None)
    listed = re.findall(r"[`'\"]([\w.-]{2,30})[`'\"]", str(schema.get("description", "")))
    if listed and (forms is None or "{" not in forms):
        return str(field.dice.pick(listed))
    if forms is None:
        return f"{' '.join(found) or 'value'} {field.dice.between(1, 99)}"
    return _fill(field.dice.pick(forms.split("|")), field)


_RANGES: tuple[tuple[frozenset[str], tuple[int, int]], ...] = (
    (vocabulary("age"), (18, 80)),
    (vocabulary("year"), (2015, 2025)),
    (vocabulary("month hour"), (1, 12)),
    (vocabulary("day"), (1, 28)),
    (vocabulary("minute second"), (0, 59)),
    (vocabulary("page offset priority rank index"), (1, 1)),
    (vocabulary("rating stars score quantity qty seats rooms guests passengers adults stock bedrooms"), (1, 5)),
    (vocabulary("percent percentage humidity progress battery"), (20, 95)),
    (vocabulary("latitude lat"), (-60, 60)),
    (vocabulary("longitude lon lng long"), (-170, 170)),
    (vocabulary("temperature temp length"), (5, 30)),
    (vocabulary("price amount cost balance fee fare rate subtotal charge revenue width height duration"), (10, 500)),
    (vocabulary("salary income budget mileage miles population volume"), (20_000, 90_000)),
    (vocabulary("size bytes distance"), (100, 5_000)),
    (vocabulary("status http"), (200, 200)),
)


def make_numbers(schema: Mapping[str, Any], field: Field, *, whole: bool) -> Iterator[int | float]:
    """Yield numbers within the bounds and on the step of a flat schema, the most plausible first; a few may miss it."""
    low, high = _bounds(schema, whole=whole)
    start, stop = _likely(schema, field)
    if stop < low or start > high:  # beside the nearer bound
        start, stop = (low, low + 100) if stop < low else (high - 100, high)
    start, stop = max(start, low), min(stop, high)
    step = Fraction(str(schema.get("multipleOf", 1)))
    steps = [Fraction(step.numerator) if whole else step]
    if not whole and "multipleOf" not in schema:
        steps = [Fraction(1, 100), Fraction(1, 10_000), (stop - start) / 7 or abs(start) or Fraction(1)]
    for step, (least, most) in product(steps, ((start, stop), (low, high))):
        first, last = math.ceil(least / step), math.floor(most / step)
        for _ in range(3 if first <= last else 0):
            value = field.dice.between(first, last) * step
            yield int(value) if whole else float(value)


def _bounds(schema: Mapping[str, Any], *, whole: bool) -> tuple[Fraction, Fraction]:
    edge = Fraction(min(_FAR, 1 << (INTEGER_BITS.get(str(schema.get("format")), 54) - 1)) - 1)
    lows, highs = (
        [Fraction(str(schema[key])) for key in keys if key in schema]
        for keys in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
    )
    low = max(lows) if lows else min(-edge, highs[0] - _FAR) if highs and highs[0] < -edge else -edge
    high = min(highs) if highs else max(edge, low + _FAR) if low > edge else edge
    low += whole and low == schema.get("exclusiveMinimum")
    return low, high - (whole and high == schema.get("exclusiveMaximum"))


def _likely(schema: Mapping[str, Any], field: Field) -> tuple[Fraction, Fraction]:
    found = set(words(field.name))
    if is_identifier(field.name) and "code" not in found:
        return Fraction(100_000), Fraction(999_999)
    shown = [value for value in list_examples(dict(schema)) if type(value) in (int, float)]
    if shown and shown[0] > 1:
        return Fraction(str(shown[0])) / 2, Fraction(str(shown[0])) * 3 / 2
    low, high = next((range_ for names, range_ in _RANGES if found & names), (1, 100))
    return Fraction(low), Fraction(high)


_BAD = vocabulary(
    "error failed failure deleted blocked expired cancelled canceled disabled invalid archived suspended "
    "locked deprecated hidden more truncated"
)


def choose_boolean(name: str) -> bool:
    """Return a plausible boolean: the call has succeeded, and what it found is active."""
    return not _BAD & set(words(name))


def is_error(name: str) -> bool:
    """Return whether the field describes a failure; a success leaves it out."""
    return not vocabulary("error errors failure exception warning warnings").isdisjoint(words(name))


def find_person(args: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the first and last name that an identifier among the arguments contains, such as `john_doe_001`."""
    for name, value in args.items():
        if isinstance(value, str) and len(value) < 60 and set(words(name)) & {*_PEOPLE, "username", "email"}:
            parts = [part for part in words(value.partition("@")[0]) if part.isalpha() and len(part) > 1]
            if len(parts) == 2 and not set(parts) & {*_PEOPLE, "test", "example"}:
                return parts[0].capitalize(), parts[1].capitalize()
    return None
