"""Secrets in prompts: roles that judge or check a call need to know that a password is the same, not what it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..state import Role

BLIND: frozenset[Role] = frozenset({"validator", "checklist", "judge"})
"""Roles that are not shown secrets. The others make, answer or book the calls that hold them."""

_NAMES = (
    r"pass(?:word|wd|code|phrase)|pwd|pin(?:[_ -]?code)?|cv[vc]2?|(?:client|shared)[_ -]?secret|secret[_ -]?key"
    r"|(?:api|access|private)[_ -]?key|(?:credit|debit)?[_ -]?card[_ -]?(?:number|no)"
)
_BEFORE = r"(?:\w{1,40}[_-]|[a-z0-9]{1,40}(?=[A-Z]))?"
_NAMED = re.compile(rf"^{_BEFORE}(?i:{_NAMES})$")
_MEMBER = re.compile(rf"\"{_BEFORE}(?i:{_NAMES})\": (?:\"((?:[^\"\\]|\\.){{3,200}})\"|(\d{{3,20}}))")
_SAID = re.compile(
    rf"(?i)\b(?:{_NAMES})\b(?: (?:is|of|to|as))?[ :=]{{1,3}}[\"'`]?(?=\S{{0,60}}\d)([^\s\"'`,;]{{4,60}})"
)
_CARD = re.compile(r"(?<![\w.])\d(?:[ -]?\d){12,18}(?![\w.])")


def is_secret(name: str) -> bool:
    """Return whether an argument of this name holds a secret: a password, a PIN, a card's number."""
    return _NAMED.match(name) is not None


def hide_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """Return a prompt's variables with each secret that they hold replaced by `(secret 1)`, the same one alike."""
    found = dict.fromkeys(value for text in variables.values() for value in _find(text))
    if not found:
        return {**variables}
    names = {value: f"(secret {number})" for number, value in enumerate(found, 1)}
    longest = sorted(map(re.escape, found), key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(longest)})(?!\w)")
    return {key: pattern.sub(lambda match: names[match[0]], text) for key, text in variables.items()}


def _find(text: str) -> Iterator[str]:
    yield from (first or second for first, second in _MEMBER.findall(text))
    yield from (value.rstrip(".?)") for value in _SAID.findall(text))
    yield from (match[0] for match in _CARD.finditer(text) if _is_card(match[0]))


def _is_card(text: str) -> bool:
    """Return whether digits are a card's number: their Luhn sum (ISO/IEC 7812-1) ends in 0."""
    digits = [int(each) for each in reversed(text) if each.isdigit()]
    return sum(each if place % 2 == 0 else sum(divmod(2 * each, 10)) for place, each in enumerate(digits)) % 10 == 0
