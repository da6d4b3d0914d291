"""Regular expressions of JSON Schema (ECMA-262), matched by `regex`, which can be told to stop.

A pattern is translated token by token into what `regex` and Python's own parser both read. What is no token is refused,
so that extensions of `regex` cannot creep in. Of Python's forms, `(?P<name>...)`, the edges A, Z and z, and `(?i)` and
`(?s)` at the start are read too. Backreferences are not read. A pattern that cannot be read is ignored.
"""

from __future__ import annotations

from functools import lru_cache
from re import escape

import regex

MAX_SECONDS = 0.25
"""Processor time that one match may take."""

MAX_SIZE = 20_000
"""Parts of a pattern; `regex` writes a part out as often as it must at least occur."""

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
    # without the two letters beyond ASCII that `(?i)` takes for s and k
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
    """A compiled pattern; it `spells_out` its values if it is a list of them in disguise, as in `^(red|blue)$`."""

    __slots__ = ("_compiled", "spells_out", "translated")

    def __init__(self, source: str) -> None:
        flags, rest = regex.fullmatch(r"(?s)(?:\(\?([is]{1,2})\))?+(.*)", source).groups("")
        self.spells_out = regex.fullmatch(_LISTED, source) is not None
        self.translated = _translate(rest, _ANY if "s" in flags else _PLAIN["."])
        self._compiled = regex.compile(self.translated, regex.IGNORECASE if "i" in flags else 0, cache_pattern=False)

    def matches(self, text: str) -> bool | None:
        """Return True if the pattern occurs in `text`; None where finding out takes more than `MAX_SECONDS`."""
        try:
            return self._compiled.search(text, timeout=MAX_SECONDS) is not None
        except TimeoutError:
            return None


def _translate(source: str, dot: str) -> str:
    out, sizes, last = "", [len(source)], 0  # sizes of the open groups; `last` is the part before a repeat
    for token in _TOKEN.finditer(source):
        text, kind = token.group(), token.lastgroup
        if kind == "wrong":
            raise ValueError(f"{text} is not read here")
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
    """Return a character or an escape as it is written between square brackets."""
    if char[0] != "\\":
        return escape(char)
    kind, code = char[1], char[2:].strip("{}")
    if kind in "pP":
        return char
    if code:
        return escape(chr(ord(code) % 32 if kind == "c" else int(code, 16)))
    if kind.isalnum() and kind not in _CONTROLS and kind not in _CLASSES:
        raise ValueError(f"the escape {char} is not read")
    return _CLASSES.get(kind) or escape(_CONTROLS.get(kind, kind))


@lru_cache(maxsize=1024)
def compile_pattern(source: str) -> Pattern | None:
    """Read a pattern; None where it cannot be read, and so is ignored."""
    try:
        return Pattern(source)
    except (ValueError, regex.error, RecursionError):
        return None
