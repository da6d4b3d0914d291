"""Names of fields: their words and their nouns."""

from __future__ import annotations

import re
from functools import lru_cache


def vocabulary(text: str) -> frozenset[str]:
    """Return the words of a text."""
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
    """Return the words of a name in lower case: `checkInDate` and `check_in_date` are both `checkin date`."""
    found = " ".join(_WORD.findall(name)).lower()
    return tuple(_ONE_WORD.sub(lambda match: match[0].replace(" ", ""), found).split())


def is_identifier(name: str) -> bool:
    """Return whether the field identifies entities."""
    return bool(IDENTIFIERS & set(words(name)[-1:]))


def is_own_identifier(name: str, owner: str) -> bool:
    """Return whether the field identifies its own object, which is called `owner`."""
    found = words(name)
    return is_identifier(name) and (len(found) == 1 or singular(owner) == " ".join(found[:-1]))


def singular(name: str) -> str:
    """Return the name's words, the last one in the singular."""
    text = " ".join(words(name))
    if len(text.rpartition(" ")[2]) < 4 or text.endswith(("ss", "us", "is")):
        return text
    return f"{text[:-3]}y" if text.endswith("ies") else text.removesuffix("s")


def noun(name: str) -> str:
    """Return the main noun of a name: `user` of `get_user_details`, `order` of `order_id`."""
    found = [word for word in words(name) if word not in _VERBS | IDENTIFIERS and not word.isdigit()]
    return singular(found[-1]) if found else ""
