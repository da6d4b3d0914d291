"""Formats and patterns of JSON Schema; small, exact and offline.

Dates and times follow RFC 3339, as JSON Schema requires. A pattern (ECMA-262) is translated token by token into a form
that both `regex` (which supports timeouts) and Python's parser accept. Unknown tokens are refused, so that extensions
of `regex` cannot be used. Accepted Python syntax: `(?P<name>...)`, the anchors A, Z and z, and `(?i)` and `(?s)` at the
start. Backreferences are not supported. A pattern that cannot be read is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from itertools import chain
from re import escape
from typing import Any

import regex

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*"
_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"
_NAME = "(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})"
_AUTHORITY = rf"(?:(?:{_NAME}|:)*@)?(?:\[[0-9A-Fa-f:.]+\]|\[[vV][^\]]+\]|{_NAME}*)(?::[0-9]*)?(?=[/?#]|\Z)"
_ANY_TEXT = f"(?:{_NAME}|[:@/?])*"
_REFERENCE = rf"(?://{_AUTHORITY}|(?!//))(?:{_NAME}|[:@/])*(?:\?{_ANY_TEXT})?(?:#{_ANY_TEXT})?"
_SCHEME = "[A-Za-z][A-Za-z0-9+.-]*:"


def _form(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _readable(read: Callable[[str], object], pattern: str = r"[^%]*") -> Callable[[str], bool]:
    has_form = _form(pattern)

    def check(text: str) -> bool:
        try:
            return has_form(text) and read(text) is not None
        except ValueError:
            return False

    return check


_is_date = _readable(date.fromisoformat, r"\d{4}-\d\d-\d\d")
_is_time = _form(rf"{_CLOCK}:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-]{_CLOCK})")

FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date": _is_date,
    "date-time": lambda text: text[10:11] in ("T", "t") and _is_date(text[:10]) and _is_time(text[11:]),
    "time": _is_time,
    "email": _form(rf'(?:{_ATOM}(?:\.{_ATOM})*|"(?:[^"\\\x00-\x1f]|\\.)*")@(?:{_HOST}|\[[0-9A-Fa-f:.IPv]+\])'),
    "uri": _form(_SCHEME + _REFERENCE),
    "uri-reference": _form(f"(?:{_SCHEME})?{_REFERENCE}"),
    "uuid": _form(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
    "hostname": _form(_HOST),
    "ipv4": _readable(IPv4Address),
    "ipv6": _readable(IPv6Address),
    # ISO 8601, as in appendix A of RFC 3339
    "duration": _form(
        r"P(?:\d+W|(?=\d|T)(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)?"
        r"(?:T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S))?)"
    ),
}
"""Format name to its check. Other formats are ignored."""

INTEGER_BITS: Mapping[str, int] = {"int32": 32, "int64": 64}
"""OpenAPI's integer formats."""

EXPECTED: Mapping[str, str] = {
    "date": "a date in the form YYYY-MM-DD",
    "date-time": "a date and time with an offset, in the form YYYY-MM-DDThh:mm:ssZ",
    "time": "a time with an offset, in the form hh:mm:ssZ",
    "email": "an e-mail address",
    "uri": "a URI that begins with its scheme",
    "uri-reference": "a URI or a reference relative to one",
    "uuid": "a UUID",
    "hostname": "a host name",
    "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address",
    "duration": "an ISO 8601 duration, in the form P1DT2H",
    "int32": "a whole number of 32 bits",
    "int64": "a whole number of 64 bits",
}
"""The description of each format in a complaint."""


def fits_format(name: str, value: object) -> bool:
    """Return whether the value has the format; True for an unknown format or another type of value."""
    if isinstance(value, str) and name in FORMATS:
        return FORMATS[name](value)
    if isinstance(value, int | float) and not isinstance(value, bool) and name in INTEGER_BITS:
        half = 1 << (INTEGER_BITS[name] - 1)
        return -half <= value < half
    return True


def contradicts_format(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema's example, default or constant contradicts its format."""
    lists = [value for key in ("examples", "enum") if isinstance(value := schema.get(key), list)]
    given = [*(schema[key] for key in ("default", "const", "example") if key in schema), *chain(*lists)]
    return not all(fits_format(str(schema["format"]), value) for value in given)


MAX_SECONDS = 0.25
"""Longest processor time of one match."""

MAX_SIZE = 20_000
"""Largest pattern, in parts; `regex` copies a part as often as it must at least occur."""

_ESCAPE = r"\\(?:[ux]\{[\da-fA-F]{1,6}\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[A-Za-z]|[pP](?:\{[\w=]+\}|\w)|[^uxcpP])"
_TOKEN = regex.compile(
    rf"(?sa)(?P<open>\((?:(?!\?)|\?(?:[:=!]|<[=!]|P?<[A-Za-z_$][\w$]*>)))|(?P<close>\))|(?P<escape>{_ESCAPE})"
    rf"|(?P<set>\[\^?(?:{_ESCAPE}|[^\]\\])*\])|(?P<repeat>(?:[*+?]|\{{(?P<least>\d+)(?:,\d*)?\}})\??)(?![*+?])"
    r"|(?P<plain>\{(?!\d+(?:,\d*)?\})|[^()\\\[*+?{])|(?P<wrong>.)"
)
_MEMBER = regex.compile(rf"(?sa)({_ESCAPE}|.)(?:-({_ESCAPE}|.))?")
_LISTED = r"(?:\((?:\?i\)|\?:|(?!\?))|\{[\d,]*\d\}|\[[^\]\\^-]{1,2}\]|\\[^a-zA-Z0-9]|[^\\.*+{\[(])*+"

_ANY = r"[\x00-\U0010ffff]"
_WORD = "[0-9A-Z_a-z]"
_CLASSES = {
    "d": "0-9",
    "D": r"\x00-/:-\U0010ffff",
    "w": _WORD[1:-1],
    # without the two non-ASCII letters that `(?i)` treats as s and k
    "W": r"\x00-/:-@\[-\^`{-\u017e\u0180-\u2129\u212b-\U0010ffff",
    "s": r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff",
    "S": r"\x00-\x08\x0e-\x1f!-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff"
    r"\u3001-\ufefe\uff00-\U0010ffff",
}
_EDGE = f"(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD})"
_EDGES = {"b": f"(?:{_EDGE})", "B": f"(?!{_EDGE})", "A": "^", "z": r"\Z", "Z": r"\Z"}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "v": "\v", "f": "\f", "0": "\0", "b": "\b"}
_PLAIN = {"^": "^", "|": "|", ")": ")", "$": r"\Z", ".": r"[^\n\r\u2028\u2029]"}


class Pattern:
    """A compiled pattern; `spells_out` is true if it is a disguised list of values, such as `^(red|blue)$`."""

    def __init__(self, source: str) -> None:
        flags, rest = regex.fullmatch(r"(?s)(?:\(\?([is]{1,2})\))?+(.*)", source).groups("")
        self.spells_out = regex.fullmatch(_LISTED, source) is not None
        self.translated = _translate(rest, _ANY if "s" in flags else _PLAIN["."])
        self._compiled = regex.compile(self.translated, regex.IGNORECASE if "i" in flags else 0, cache_pattern=False)

    def matches(self, text: str) -> bool | None:
        """Return True if the pattern occurs in `text`, None if the search takes more than `MAX_SECONDS`."""
        try:
            return self._compiled.search(text, timeout=MAX_SECONDS) is not None
        except TimeoutError:
            return None


def _translate(source: str, dot: str) -> str:
    out, sizes, last = "", [len(source)], 0  # sizes of the open groups; `last` is the size of the part before a repeat
    for token in _TOKEN.finditer(source):
        text, kind = token.group(), token.lastgroup
        if kind == "wrong":
            raise ValueError(f"{text} is not supported here")
        if kind == "open":
            sizes.append(0)
            text = "(?:" if text[-1] in "(>" else text
        elif kind == "repeat":
            sizes[-1] += last * (max(int(token["least"] or 1), 1) - 1)
        else:
            last = max(sizes.pop(), 1) if kind == "close" and len(sizes) > 1 else 1
            sizes[-1] += last
            text = dot if text == "." else _part(text, kind)
        if sizes[-1] > MAX_SIZE:
            raise ValueError("too many repetitions")
        out += text
    return out


def _part(text: str, kind: str) -> str:
    if kind == "escape":
        return _EDGES.get(text[1]) or f"[{_member(text)}]"
    if kind != "set":
        return _PLAIN.get(text) or escape(text)
    if text in ("[]", "[^]"):
        return "(?!)" if text == "[]" else _ANY
    out = "[^" if text[1] == "^" else "["
    for low, high in _MEMBER.findall(text[len(out) : -1]):
        hyphen = r"\-" if any(end[:1] == "\\" and end[1] in "dDwWsSpP" for end in (low, high)) else "-"
        out += _member(low) + (hyphen + _member(high) if high else "")
    return out + "]"


def _member(char: str) -> str:
    """Return a character or an escape in the form for a character class."""
    if char[0] != "\\":
        return escape(char)
    kind, code = char[1], char[2:].strip("{}")
    if kind in "pP":
        return char
    if code:
        return escape(chr(ord(code) % 32 if kind == "c" else int(code, 16)))
    if kind.isalnum() and kind not in _CONTROLS and kind not in _CLASSES:
        raise ValueError(f"the escape {char} is not supported")
    return _CLASSES.get(kind) or escape(_CONTROLS.get(kind, kind))


@lru_cache(maxsize=1024)
def compile_pattern(source: str) -> Pattern | None:
    """Compile a pattern; None if it is not supported, and so is ignored."""
    try:
        return Pattern(source)
    except (ValueError, regex.error, RecursionError):
        return None
