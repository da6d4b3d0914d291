"""Names for tools: valid for every provider, stable and unique."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Sequence

VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")
LONGEST = 64

_VARIABLE = re.compile(r"\{([^{}]*)\}")


def valid_name(name: str) -> str:
    """Return the name if every provider takes it, else the nearest that they do: `math.hypot` becomes `math_hypot`.

    A long name is cut, and ends in a mark made from the whole of it, so that long names stay different.
    """
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name)
    plain = plain if plain == name else plain.strip("_")
    plain = plain or "tool"
    if len(plain) <= LONGEST:
        return plain
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{plain[: LONGEST - 9]}_{mark}"


def operation_name(method: str, path: str) -> str:
    """Return a name for an operation without one: `get /pets/{petId}` is `get_pets_by_petId`."""
    words = _VARIABLE.sub(r"by_\1", path)
    return valid_name(f"{method.lower()}_{words.strip('/')}" if words.strip("/") else f"{method.lower()}_root")


def path_variables(path: str) -> list[str]:
    """Return the variables of a path template, in order, each once."""
    return list(dict.fromkeys(_VARIABLE.findall(path)))


def unique_name(name: str, taken: Container[str]) -> str:
    """Return the name, with a number at its end if it is taken: `ls`, `ls_2`, `ls_3`."""
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        end = f"_{number}"
        candidate = f"{name[: LONGEST - len(end)]}{end}"
    return candidate


def provider_names(names: Sequence[str]) -> dict[str, str]:
    """Return for each name one that every provider takes; valid names stay as they are."""
    given = {name: name for name in names if VALID.fullmatch(name)}
    taken = {*given}
    for name in names:
        if name not in given:
            given[name] = unique_name(valid_name(name), taken)
            taken.add(given[name])
    return given


def format_names(names: Sequence[str]) -> str:
    """Return the first names, and how many there are besides."""
    return (", ".join(names[:8]) or "none") + (f" and {len(names) - 8} more" if len(names) > 8 else "")
