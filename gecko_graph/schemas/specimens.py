"""Words of field names, and texts and numbers that fit a flat schema, equal in every process."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from itertools import product
from re import _parser, error, escape  # type: ignore[attr-defined]
from typing import Any, TypeVar

import regex

from ..state import Json, JsonObject
from .formats import FORMATS, INTEGER_BITS, Pattern, compile_pattern
from .reading import COMPOSED
from .rules import member_rules

Thing = TypeVar("Thing")


class Dice:
    """A reproducible random stream by key; `hash` changes between processes, `random` between versions."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._thrown = 0

    def below(self, count: int) -> int:
        """Return an integer from 0 to `count` - 1."""
        return self._throw() % max(count, 1)

    def between(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, inclusive."""
        return low + self.below(high - low + 1)

    def pick(self, things: Sequence[Thing]) -> Thing:
        return things[self.below(len(things))]

    def letters(self, count: int, alphabet: str = "0123456789abcdef") -> str:
        out = ""
        while len(out) < count:
            thrown = self._throw()
            for _ in range(min(count - len(out), 32)):
                thrown, index = divmod(thrown, len(alphabet))
                out += alphabet[index]
        return out

    def _throw(self) -> int:
        self._thrown += 1
        return int.from_bytes(sha256(f"{self._key}\0{self._thrown}".encode(errors="replace")).digest())


def vocabulary(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ONE_WORD = re.compile(r"\b(check (?:in|out)|drop off|pick up|time (?:stamp|zone)|user name|date time|post code)\b")

IDENTIFIERS = vocabulary("id ids uuid guid sid identifier key code number reference ref token sku slug hash sha etag")
"""Last words of fields that identify entities (paper, appendix A.4)."""

_VERBS = vocabulary(
    "get list search find fetch create add update delete remove set make book cancel show read query "
    "lookup retrieve post put patch send by all for of the details detail info information a an new"
)


@lru_cache(maxsize=4096)
def words(name: str) -> tuple[str, ...]:
    """Return the words of a name in lower case: `checkin date` for `checkInDate` and `check_in_date`."""
    found = " ".join(_WORD.findall(name)).lower()
    return tuple(_ONE_WORD.sub(lambda match: match[0].replace(" ", ""), found).split())


def is_identifier(name: str) -> bool:
    return bool(IDENTIFIERS & set(words(name)[-1:]))


def is_own_identifier(name: str, owner: str) -> bool:
    """Return whether the field identifies its own object, named `owner`."""
    found = words(name)
    return is_identifier(name) and (len(found) == 1 or singular(owner) == " ".join(found[:-1]))


def singular(name: str) -> str:
    """Return the name's words, the last one in the singular."""
    text = " ".join(words(name))
    if len(text.rpartition(" ")[2]) < 4 or text.endswith(("ss", "us", "is")):
        return text
    return f"{text[:-3]}y" if text.endswith("ies") else text.removesuffix("s")


def noun(name: str) -> str:
    """Return the main noun of a name: `user` for `get_user_details`, `order` for `order_id`."""
    found = [word for word in words(name) if word not in _VERBS | IDENTIFIERS and not word.isdigit()]
    return singular(found[-1]) if found else ""


TRIES = 8
MAX_LENGTH = 10_000

_LIKED = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_OTHERS = "-_.@/:+#, éßøñçλжя中あ١"


def spell(pattern: Pattern, dice: Dice, *, least: int = 0, most: int | None = None) -> str | None:
    """Return a text of `least` to `most` characters that the pattern accepts, None if no try finds one."""
    try:  # Python's parser lacks Unicode properties: some of their characters replace them
        tree = _parser.parse(regex.sub(r"\\[pP](?:\{[\w=]+\}|\w)", _list_liked, pattern.translated))
    except (error, RecursionError):
        return None
    for extra in range(TRIES if least < 200 else 2):
        text = _write(tree, dice, extra)
        if len(text) < least:
            text = _write(tree, dice, least - len(text))
        if len(text) < least:
            filling = dice.letters(least - len(text), _LIKED[:26])
            text = text + filling if pattern.matches(text + filling) else filling + text
        if least <= len(text) <= (MAX_LENGTH if most is None else most) and pattern.matches(text):
            return text
    return None


def _list_liked(found: Any) -> str:
    return "".join(escape(char) for char in _LIKED + _OTHERS if regex.match(found[0], char)) or r"\x00"


def _write(nodes: Any, dice: Dice, extra: int) -> str:
    out = ""
    for kind, value in nodes:
        if kind in (_parser.MAX_REPEAT, _parser.MIN_REPEAT):
            least, most, part = value
            most = min(most, least + 2 + extra)
            count = dice.between(min(least + min(extra, 1), most), most)
            for _ in range(count):
                out += _write(part, dice, extra // count) if len(out) <= MAX_LENGTH else ""
        elif kind in (_parser.SUBPATTERN, _parser.BRANCH):
            out += _write(dice.pick(value[1]) if kind is _parser.BRANCH else value[-1], dice, extra)
        elif kind is _parser.LITERAL:
            out += chr(value)
        elif kind in (_parser.IN, _parser.NOT_LITERAL):
            out += _pick_char(value if kind is _parser.IN else [(_parser.NEGATE, None), (kind, value)], dice)
    return out


def _pick_char(members: Any, dice: Dice) -> str:
    negated = members[0][0] is _parser.NEGATE
    spans = [span if kind is _parser.RANGE else (span, span) for kind, span in members[negated:]]
    low, high = (33, 126) if negated else dice.pick(spans)
    for chars in (_LIKED, _OTHERS, map(chr, range(low, min(high, low + 500) + 1))):
        if fitting := [char for char in chars if any(low <= ord(char) <= high for low, high in spans) != negated]:
            return dice.pick(fitting)
    return "?"


_FAR = 1 << 53
_SPECIMENS = {
    "date": "2025-0#-1#",
    "date-time": "2025-0#-1#T1#:3#:00Z",
    "time": "1#:3#:00Z",
    "duration": "PT##M",
    "email": "user-????@example.com",
    "uri": "https://example.com/????????",
    "uri-reference": "/????????",
    "hostname": "host-????.example.com",
    "ipv4": "192.0.2.1##",
    "ipv6": "2001:db8::1???",
    "uuid": "????????-????-4???-a???-????????????",
    "byte": "????????",
}
"""Texts by format; `#` is a digit from 1 to 9, `?` a hexadecimal digit."""


def list_examples(flat: JsonObject) -> list[Json]:
    """Return a schema's examples and default."""
    found = shown if isinstance(shown := flat.get("examples"), list) else []
    # an empty default ("" for every text, in Kubernetes' documents) means that the member is optional
    return [*found, *(flat[key] for key in ("example", "default") if flat.get(key) not in (None, "", {}, []))]


def make_texts(flat: JsonObject, dice: Dice, *, name: str, owner: str) -> Iterator[Json]:
    """Yield texts for a field `name` of an object `owner`; some may not fit the schema."""
    least, most, form = flat.get("minLength", 0), flat.get("maxLength"), str(flat.get("format"))
    if least > MAX_LENGTH:
        return
    names_one, shown = is_identifier(name), list_examples(flat)
    if shown:
        example = dice.pick(shown)
        yield _vary(example, dice) if names_one or form == "uuid" else example
    if (pattern := compile_pattern(flat.get("pattern", ""))) and "pattern" in flat:
        yield spell(pattern, dice, least=least, most=most)
    if form in _SPECIMENS:
        yield re.sub(
            r"[#?]",
            lambda mark: dice.letters(1, "123456789" if mark[0] == "#" else "0123456789abcdef"),
            _SPECIMENS[form],
        )
    if form not in FORMATS:
        about = noun(name) or noun(owner)
        known = f"{about}_{dice.letters(8)}".removeprefix("_") if names_one else ""
        yield _sized(known or f"example {' '.join(words(name)) or 'value'} {dice.between(1, 99)}", dice, least, most)
    yield from shown


def _sized(value: str, dice: Dice, least: int, most: int | None) -> str:
    value = value if most is None else value[max(0, len(value) - most) :].strip() or dice.letters(most)
    return value + dice.letters(max(0, least - len(value)))


def _vary(example: Json, dice: Dice) -> Json:
    """Return an identifier like the example, with other digits, or if it has none with other letters."""
    if not isinstance(example, str):
        return example
    old, new = ("[0-9]", "0123456789") if re.search("[0-9]", example) else ("[a-z]", "abcdefghijklmnopqrstuvwxyz")
    value = re.sub(old, lambda _: dice.pick(new), example)
    return value if new[0] == "0" else re.sub("[A-Z]", lambda _: dice.pick(new).upper(), value)


def make_numbers(flat: JsonObject, dice: Dice, *, name: str, whole: bool) -> Iterator[int | float]:
    """Yield numbers within bounds and step of a flat schema, the likeliest first; a few may not fit."""
    shown = [value for value in list_examples(flat) if type(value) in (int, float)]
    if is_identifier(name):  # of another thing: like the example, with other digits
        yield from (int(str(_vary(str(value), dice))) for value in shown if isinstance(value, int))
    yield from shown
    low, high = _bounds(flat, whole=whole)
    start, stop = map(Fraction, (100_000, 999_999) if is_identifier(name) else (1, 100))
    if stop < low or start > high:  # next to the nearer bound
        start, stop = (low, low + 100) if stop < low else (high - 100, high)
    start, stop = max(start, low), min(stop, high)
    step = Fraction(str(flat.get("multipleOf", 1)))
    steps = [Fraction(step.numerator) if whole else step]
    if not whole and "multipleOf" not in flat:
        steps = [Fraction(1, 100), Fraction(1, 10_000), (stop - start) / 7 or abs(start) or Fraction(1)]
    for step, (least, most) in product(steps, ((start, stop), (low, high))):
        first, last = math.ceil(least / step), math.floor(most / step)
        for _ in range(3 if first <= last else 0):
            value = dice.between(first, last) * step
            yield int(value) if whole else float(value)


def _bounds(flat: JsonObject, *, whole: bool) -> tuple[Fraction, Fraction]:
    edge = Fraction(min(_FAR, 1 << (INTEGER_BITS.get(str(flat.get("format")), 54) - 1)) - 1)
    lows, highs = (
        [Fraction(str(flat[key])) for key in keys if key in flat]
        for keys in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
    )
    low = max(lows) if lows else min(-edge, highs[0] - _FAR) if highs and highs[0] < -edge else -edge
    high = min(highs) if highs else max(edge, low + _FAR) if low > edge else edge
    low += whole and low == flat.get("exclusiveMinimum")
    return low, high - (whole and high == flat.get("exclusiveMaximum"))


_HINTS: Mapping[str, frozenset[str]] = {
    "object": vocabulary("properties required additionalProperties patternProperties minProperties"),
    "array": vocabulary("items prefixItems minItems contains uniqueItems"),
    "string": vocabulary("pattern minLength maxLength format"),
    "number": vocabulary("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"),
}
CHECKED_AFTERWARDS = COMPOSED | vocabulary(
    "not contains propertyNames dependentRequired unevaluatedItems unevaluatedProperties patternProperties"
)
"""Keywords for which a value of the flattened schema must be checked against the original schema."""


def list_types(flat: JsonObject) -> list[str]:
    """Return the types that a schema allows, null last; without `type`, those that its keywords apply to."""
    if "type" in flat:
        kinds = [flat["type"]] if isinstance(flat["type"], str) else list(flat["type"])
        return sorted(kinds, key=lambda kind: kind == "null")
    implied = [kind for kind, keys in _HINTS.items() if not flat.keys().isdisjoint(keys)]
    return list(dict.fromkeys([*implied, "string", "integer", "object", "array", "boolean"]))


def find_member_schema(flat: JsonObject, name: str) -> Any:
    return next((rule for _, rule in member_rules([name], flat)), True)


def make_names(flat: JsonObject, dice: Dice, owner: str) -> Iterator[str]:
    """Yield names for further members of an object named `owner`."""
    for source in flat.get("patternProperties", {}):
        yield from _spell_names(source, dice, 3)
    if flat.get("additionalProperties", True) is False:
        return
    named = flat.get("propertyNames", {})
    if isinstance(named, dict):
        yield from (name for name in named.get("enum", []) if isinstance(name, str))
        yield from _spell_names(named.get("pattern", ""), dice, 30)
    about = singular(owner).replace(" ", "_") or "key"
    yield from (f"{about}_{number}" for number in range(1, 30))


def _spell_names(source: str, dice: Dice, tries: int) -> Iterator[str]:
    pattern = compile_pattern(source) if source else None
    for _ in range(tries if pattern else 0):
        if pattern and (name := spell(pattern, dice, least=6) or spell(pattern, dice)):
            yield name
