"""Names of fields: the words in them, and what they are about."""

from __future__ import annotations

import re
from functools import lru_cache


def vocabulary(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_JOINED = {
    ("check", "in"): "checkin",
    ("check", "out"): "checkout",
    ("drop", "off"): "dropoff",
    ("pick", "up"): "pickup",
    ("time", "stamp"): "timestamp",
    ("time", "zone"): "timezone",
    ("user", "name"): "username",
    ("date", "time"): "datetime",
    ("post", "code"): "postcode",
}

IDENTIFIERS = vocabulary("id ids uuid guid sid identifier key code number reference ref token sku slug hash sha etag")
"""Last words of fields that tell entities apart (paper, appendix A.4)."""

_VERBS = vocabulary(
    "get list search find fetch create add update delete remove set make book cancel show read query "
    "lookup retrieve post put patch send by all for of the details detail info information a an new"
)


@lru_cache(maxsize=4096)
def words(name: str) -> tuple[str, ...]:
    """The words of a name in lower case: `checkInDate` and `check_in_date` are both `checkin date`."""
    found = [word.lower() for word in _WORD.findall(name)]
    out: list[str] = []
    for word in found:
        joined = _JOINED.get((out[-1], word)) if out else None
        if joined:
            out[-1] = joined
        else:
            out.append(word)
    return tuple(out)


def is_identifier(name: str) -> bool:
    """True if the field tells entities apart."""
    found = words(name)
    return bool(found) and found[-1] in IDENTIFIERS


def is_own_identifier(name: str, owner: str) -> bool:
    """True if the field is the identity of the object it stands in, where that object is called `owner`."""
    found = words(name)
    if not found or found[-1] not in IDENTIFIERS:
        return False
    return len(found) == 1 or singular(owner) == " ".join(found[:-1])


def singular(name: str) -> str:
    """The name's words, the last one in the singular."""
    found = list(words(name))
    if found and len(found[-1]) > 3:
        last = found[-1]
        if last.endswith("ies"):
            found[-1] = f"{last[:-3]}y"
        elif last.endswith("s") and not last.endswith(("ss", "us", "is")):
            found[-1] = last[:-1]
    return " ".join(found)


def noun(name: str) -> str:
    """What a tool or field is about: `user` of `get_user_details`, `order` of `order_id`."""
    found = [word for word in words(name) if word not in _VERBS and word not in IDENTIFIERS and not word.isdigit()]
    return singular("_".join(found)).split(" ")[-1] if found else ""
