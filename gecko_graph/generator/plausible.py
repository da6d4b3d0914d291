"""Plausible values for fields by name and format. Nobody real: names, numbers, addresses reserved for examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ..state import Json
from .dice import Dice
from .naming import IDENTIFIERS, noun, vocabulary, words

_FIRST = "Ada Ben Carla Diego Elif Farid Grace Hana Ivan Julia Kofi Lena Mateo Nora Omar Priya Quinn Rosa Samir Tess"
_LAST = (
    "Alvarez Becker Chen Diaz Eriksen Fischer Garcia Haddad Ito Jansen Kowalski Lopez Moreau Nguyen Okafor Patel Rossi "
    "Silva Tanaka Weber"
)
_QUALITIES = "Blue Bright Classic Compact Fresh Golden Green Modern Quiet Simple Silver Urban"
_THINGS = "Garden Harbor Lantern Meadow Orchard River Studio Summit Valley Willow Workshop"
_STREETS = ("Oak Street", "Maple Avenue", "Hill Road", "Station Street", "Park Lane", "River Road", "Mill Lane")
_PLACES = (
    ("Boston", "US", "United States", "MA", "02108", "BOS"),
    ("Chicago", "US", "United States", "IL", "60601", "ORD"),
    ("Denver", "US", "United States", "CO", "80202", "DEN"),
    ("Seattle", "US", "United States", "WA", "98101", "SEA"),
    ("Toronto", "CA", "Canada", "ON", "M5H 2N2", "YYZ"),
    ("Paris", "FR", "France", "IDF", "75001", "CDG"),
    ("Berlin", "DE", "Germany", "BE", "10115", "BER"),
    ("Madrid", "ES", "Spain", "MD", "28013", "MAD"),
    ("Tokyo", "JP", "Japan", "13", "100-0001", "HND"),
    ("Sydney", "AU", "Australia", "NSW", "2000", "SYD"),
)
_PEOPLE = vocabulary(
    "user person customer passenger owner author contact employee member patient student driver guest sender "
    "recipient account assignee organizer creator"
)


@dataclass(frozen=True, slots=True)
class Field:
    """A field that wants a value.

    Args:
        name: Its name; the nearest one where it is an item of an array, empty at the root.
        owner: What the object it stands in is about: `user`, `order`; empty if nobody knows.
        dice: Its own dice.
        scope: Key of the dice that all fields of one object share, so that they agree with each other.
        person: First and last name that the call's arguments speak of.
    """

    name: str
    owner: str
    dice: Dice
    scope: str
    person: tuple[str, str] | None = None

    def shared(self, what: str) -> Dice:
        """The dice for something that several fields of the object tell."""
        return Dice(f"{self.scope}\0{what}")

    def full_name(self) -> tuple[str, str]:
        """First and last name of the object's person."""
        dice = self.shared("person")
        return self.person or (dice.word(_FIRST), dice.word(_LAST))

    def place(self) -> tuple[str, ...]:
        """The object's place: city, country code, country, region, postal code, airport. Two ends of a way differ."""
        end = {"destination", "to", "arrival", "dropoff"} & set(words(self.name))
        index = self.shared("place").below(len(_PLACES))
        return _PLACES[(index + 3) % len(_PLACES) if end else index]


Writer: TypeAlias = Callable[[Field], str]
"""Writes a plausible text for a field."""


def _email(field: Field) -> str:
    first, last = field.full_name()
    return f"{first}.{last}@example.com".lower()


def _phone(field: Field) -> str:
    return f"+1-{field.dice.pick(('202', '303', '415', '617'))}-555-01{field.dice.below(100):02d}"


def _username(field: Field) -> str:
    first, last = field.full_name()
    return f"{first}_{last}{field.shared('person').below(90) + 10}".lower()


def _url(field: Field) -> str:
    return f"https://example.com/{noun(field.owner) or 'item'}/{field.dice.letters(8)}"


def _image(field: Field) -> str:
    return f"https://example.com/images/{field.dice.letters(8)}.png"


def _title(field: Field) -> str:
    return f"{field.dice.word(_QUALITIES)} {field.dice.word(_THINGS)}"


def _sentence(field: Field) -> str:
    about = noun(field.owner) or "entry"
    return f"{field.dice.word(_QUALITIES)} {about} near the {field.dice.word(_THINGS).lower()}."


def _message(field: Field) -> str:
    return "The request was carried out."


def _name(field: Field) -> str:
    return " ".join(field.full_name()) if {noun(field.owner), *words(field.name)} & _PEOPLE else _title(field)


def _address(field: Field) -> str:
    place = field.place()
    return f"{field.dice.between(1, 899)} {field.dice.pick(_STREETS)}, {place[0]}, {place[3]} {place[4]}"


def _street(field: Field) -> str:
    return f"{field.dice.between(1, 899)} {field.dice.pick(_STREETS)}"


def _of_place(index: int) -> Writer:
    return lambda field: field.place()[index]


def _one_of(*values: str) -> Writer:
    return lambda field: field.dice.pick(values)


def identifier(field: Field) -> str:
    """A text that tells entities apart."""
    about = noun(field.name) or noun(field.owner)
    return f"{about}_{field.dice.letters(8)}" if about else field.dice.letters(12)


def _file(field: Field) -> str:
    return f"{field.dice.word(_THINGS).lower()}_{field.dice.below(90) + 10}.txt"


def _path(field: Field) -> str:
    return f"{field.dice.word(_THINGS).lower()}/{field.dice.word(_QUALITIES).lower()}"


def _host(field: Field) -> str:
    return f"{field.dice.word(_THINGS).lower()}.example.com"


def _address_of_net(field: Field) -> str:
    return f"192.0.2.{field.dice.between(1, 254)}"


def _version(field: Field) -> str:
    return f"{field.dice.between(1, 4)}.{field.dice.below(10)}.{field.dice.below(10)}"


_CURRENCY = _one_of("USD", "EUR", "GBP", "JPY")
_LANGUAGE = _one_of("en", "de", "es", "fr", "ja")

_BY_WORDS: tuple[tuple[str, Writer], ...] = (
    ("email mail", _email),
    ("phone mobile fax telephone", _phone),
    ("username login handle nickname by", _username),
    ("url uri link href website homepage webpage urls links", _url),
    ("image photo picture avatar thumbnail icon logo", _image),
    ("description summary comment content text body note notes bio caption reason details review snippet", _sentence),
    ("message detail result response", _message),
    ("title subject label headline heading product company organization team", _title),
    ("city town location place origin destination from to", _of_place(0)),
    ("country", _of_place(2)),
    ("region province", _of_place(3)),
    ("zip zipcode postcode postal", _of_place(4)),
    ("airport iata", _of_place(5)),
    ("address", _address),
    ("street address1 line1", _street),
    ("name user person customer passenger owner author contact employee driver guest sender recipient creator", _name),
    ("color colour", _one_of("black", "blue", "green", "grey", "red", "white", "yellow")),
    ("currency", _CURRENCY),
    ("language locale lang", _LANGUAGE),
    ("timezone", _one_of("America/New_York", "Europe/Berlin", "Europe/Paris", "Asia/Tokyo", "UTC")),
    ("gender", _one_of("female", "male")),
    ("version", _version),
    ("ip", _address_of_net),
    ("host hostname domain", _host),
    ("status state stage", _one_of("active", "completed", "confirmed", "open")),
    ("type category kind class tier level plan", _one_of("basic", "plus", "standard")),
    ("tag tags keyword keywords topic topics", _one_of("family", "garden", "news", "sport", "travel")),
    ("file filename filenames files", _file),
    ("path folder directory", _path),
    ("duration", lambda field: f"{field.dice.between(1, 8)} hours"),
    ("symbol symbols ticker stock stocks", lambda field: field.dice.letters(4, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")),
    ("unit units", _one_of("kg", "km", "piece")),
)
_WRITERS: Mapping[str, Writer] = {word: writer for names, writer in _BY_WORDS for word in names.split()}

_PAIRS: Mapping[str, Writer] = {
    "first name": lambda field: field.full_name()[0],
    "given name": lambda field: field.full_name()[0],
    "last name": lambda field: field.full_name()[1],
    "family name": lambda field: field.full_name()[1],
    "full name": lambda field: " ".join(field.full_name()),
    "middle name": lambda field: field.shared("middle").word(_FIRST),
    "file name": _file,
    "country code": _of_place(1),
    "currency code": _CURRENCY,
    "language code": _LANGUAGE,
    "airport code": _of_place(5),
    "postal code": _of_place(4),
    "zip code": _of_place(4),
    "phone number": _phone,
    "time zone": _WRITERS["timezone"],
}

_FORMATS: Mapping[str, Writer] = {
    "email": _email,
    "uri": _url,
    "url": _url,
    "uri-reference": _url,
    "uuid": lambda field: _uuid(field.dice.letters(32)),
    "hostname": _host,
    "ipv4": _address_of_net,
    "ipv6": lambda field: f"2001:db8::{field.dice.letters(4, '123456789abcdef')}",
    "duration": lambda field: f"PT{field.dice.between(1, 12)}H",
    "phone": _phone,
    "byte": lambda field: (
        field.dice.letters(11, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") + "="
    ),
    "iso-country-code": _of_place(1),
}


def _uuid(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def text(field: Field, format_: str | None = None) -> str:
    """A plausible text."""
    if format_ is not None and format_ in _FORMATS:
        return _FORMATS[format_](field)
    found = words(field.name)
    if pair := _PAIRS.get(" ".join(found[-2:])):
        return pair(field)
    if found and found[-1] in IDENTIFIERS:
        return identifier(field)
    writer = next((_WRITERS[word] for word in reversed(found) if word in _WRITERS), None)
    return writer(field) if writer else field.dice.word(_THINGS).lower()


_RANGES: tuple[tuple[frozenset[str], tuple[int, int]], ...] = (
    (vocabulary("age"), (18, 80)),
    (vocabulary("year"), (2015, 2025)),
    (vocabulary("month"), (1, 12)),
    (vocabulary("day"), (1, 28)),
    (vocabulary("hour"), (0, 23)),
    (vocabulary("minute second"), (0, 59)),
    (vocabulary("page offset priority rank index"), (1, 1)),
    (vocabulary("rating stars score"), (1, 5)),
    (vocabulary("percent percentage humidity progress battery"), (20, 95)),
    (vocabulary("latitude lat"), (-60, 60)),
    (vocabulary("longitude lon lng long"), (-170, 170)),
    (vocabulary("temperature temp"), (5, 30)),
    (vocabulary("price amount cost balance fee fare rate subtotal charge revenue"), (10, 500)),
    (vocabulary("salary income budget mileage miles population volume"), (20_000, 90_000)),
    (vocabulary("quantity qty seats rooms guests passengers adults stock bedrooms"), (1, 9)),
    (vocabulary("size bytes length distance"), (100, 5_000)),
    (vocabulary("duration minutes"), (15, 240)),
    (vocabulary("width height"), (100, 1_200)),
    (vocabulary("status http"), (200, 200)),
)


def range_of(name: str) -> tuple[int, int]:
    """A range in which a number of this name is plausible."""
    found = set(words(name))
    return next((range_ for names, range_ in _RANGES if found & names), (1, 100))


_GOOD = vocabulary(
    "success successful succeeded ok valid verified enabled active available status authenticated "
    "confirmed result found exists accepted sent created updated"
)
_BAD = vocabulary(
    "error failed failure deleted blocked expired cancelled canceled disabled invalid archived suspended "
    "locked deprecated hidden more truncated"
)


def boolean(field: Field) -> bool:
    """A plausible truth: a call that passed the rules has worked."""
    found = set(words(field.name))
    if found & _GOOD or not found:
        return True
    return not found & _BAD and field.dice.chance(60)


def is_error(name: str) -> bool:
    """True if the field tells of failure; a success leaves it out."""
    return bool({"error", "errors", "failure", "exception", "warning", "warnings"} & set(words(name)))


def vary(example: Json, field: Field) -> Json:
    """An identifier in the manner of an example, with digits of its own; where there is none, letters."""
    if not isinstance(example, str):
        return example
    digits = any(char.isdigit() for char in example)
    out = []
    for char in example:
        if char.isdigit():
            out.append(str(field.dice.below(10)))
        elif not digits and char.isascii() and char.isalpha():
            letter = "abcdefghijklmnopqrstuvwxyz"[field.dice.below(26)]
            out.append(letter.upper() if char.isupper() else letter)
        else:
            out.append(char)
    return "".join(out)


def person_in(args: Mapping[str, Json]) -> tuple[str, str] | None:
    """First and last name, where an identifier among the arguments spells one out, as `john_doe_001` does."""
    for name, value in args.items():
        about = set(words(name))
        if not isinstance(value, str) or not about & (_PEOPLE | {"username", "email"}):
            continue
        parts = [part for part in words(value.partition("@")[0]) if part.isalpha() and len(part) > 1]
        if len(parts) == 2 and len(value) < 60 and not set(parts) & (_PEOPLE | {"test", "example"}):
            return parts[0].capitalize(), parts[1].capitalize()
    return None
