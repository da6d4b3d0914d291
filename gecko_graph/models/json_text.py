"""JSON in what a model wrote: between prose, in fences, behind thoughts; in time linear in the text's length."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any, Literal

from ..state import Json

MAX_REPLY_CHARS = 1_000_000
_MOST_VALUES = 64

_STRING = r'"(?:[^"\\]++|\\.?+)*+"?+'  # an unclosed one goes to the end: each character is read once
_OPENING = re.compile(r"[{\[]")
_TOKEN = re.compile(rf"{_STRING}|[{{}}\[\]]", re.DOTALL)
_COMMA = re.compile(rf"{_STRING}|,(?=\s*+[}}\]])", re.DOTALL)
_JSON_LIKE = re.compile(r"""\{\s*+(?:["'}]|\w++\s*+:)|\[\s*+["'{\[\]]""")


class Unreadable(ValueError):
    """A reply that is not what was asked for; the message gives the reason, in one line.

    Args:
        why: One line.
        kind: `prose` if there was no JSON at all, `final` if asking again is of no use.
    """

    def __init__(self, why: str, *, kind: Literal["shape", "prose", "final"] = "shape") -> None:
        super().__init__(why)
        self.prose, self.final = kind == "prose", kind == "final"


def find_json(text: str) -> list[Json]:
    """Return the JSON values in a text: all of it, else those between prose, thoughts left out; never a part of one.

    Raises:
        Unreadable: Empty, huge, cut off in the middle of a value, or without any JSON.
    """
    if len(text) > MAX_REPLY_CHARS:
        raise Unreadable(f"the reply is {len(text):,} characters long, {MAX_REPLY_CHARS:,} are allowed")
    with suppress(Unreadable):
        return [parse(text)]
    text, thought = (text, len(text)) if _thinks_inside(text) else without_thoughts(text)
    if not text.strip():
        raise Unreadable("the reply is empty")
    spans = _spans(text)
    if not any(start < thought < end for start, end in spans) and thought < len(text):
        spans = [span for span in spans[-1:] if not text[span[1] :].strip("` \n")]  # only its end can be the answer
    if len(spans) > _MOST_VALUES:
        raise Unreadable(f"the reply holds {len(spans)} JSON values: give one")
    values: list[Json] = []
    problem: Unreadable | None = None
    for start, end in spans:
        try:
            values.append(parse(text[start:end]))
        except Unreadable as wrong:
            problem = problem or wrong
    if not values:
        raise problem or Unreadable("the reply holds no JSON object", kind="prose")
    return values


def parse(text: str) -> Json:
    """Parse a text that is one JSON value; commas before a closing bracket are forgiven.

    Raises:
        Unreadable: It is not, or an object has two values for one name.
    """
    try:
        return _loads(text)
    except Unreadable:
        repaired = _COMMA.sub(lambda found: "" if found[0] == "," else found[0], text)
        if repaired == text:
            raise
        return _loads(repaired)


def without_thoughts(text: str) -> tuple[str, int]:
    """Return the text outside of `<think>...</think>`, and where in it an unclosed thought begins (its length if none).

    The opening may be missing: chat templates write it for the model.
    """
    kept: list[str] = []
    at = 0
    if (end := text.find("</think>")) >= 0 and not 0 <= text.find("<think>") < end:
        at = end + len("</think>")
    while (start := text.find("<think>", at)) >= 0 and (end := text.find("</think>", start)) >= 0:
        kept.append(text[at:start])
        at = end + len("</think>")
    outside = "".join([*kept, text[at:]])
    return outside, len(outside) if start < 0 else len(outside) - len(text) + start


def _thinks_inside(text: str) -> bool:
    """Return whether every mark of a thought stands in one JSON value: there it is data."""
    first, last = text.find("think>"), text.rfind("think>")
    with suppress(Unreadable):
        for start, end in _spans(text) if first >= 0 else ():
            if start < first and last < end:
                parse(text[start:end])
                return True
    return False


def _spans(text: str) -> list[tuple[int, int]]:
    """Return where the outermost brackets that look like JSON begin and end. Quotes count only inside of brackets."""
    opened: list[int] = []
    spans: list[tuple[int, int]] = []
    at = 0
    while found := (_TOKEN if opened else _OPENING).search(text, at):
        start, at = found.span()
        if text[start] in "{[":
            opened.append(start)
        elif text[start] in "}]" and _JSON_LIKE.match(text, start := opened.pop()):
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, at))
    for start in opened:
        if _JSON_LIKE.match(text, start):
            raise Unreadable(f"the JSON that begins at character {start} has no end: it is cut off, or not closed")
    return spans


def _loads(text: str) -> Json:
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_members, strict=False)
    except RecursionError:
        raise Unreadable("the reply is nested too deeply") from None
    except ValueError as error:
        raise Unreadable(f"the reply is not JSON: {error}") from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs) and (twice := [name for name, value in pairs if members[name] != value]):
        raise ValueError(f"two values for {twice[0][:100]!r}")
    return members


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
