"""Digests of documents up to identifiers that tools have drawn: what refers to what counts, not how it is called."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ..state import Json
from .digest import digest
from .places import Place


def digest_apart_from(drawn: Collection[Json], state: Json) -> str:
    """Return a digest in which a drawn value stands for what surrounds it, looked at twice: what refers to what."""
    labels = dict.fromkeys(drawn, "drawn")
    for _ in range(2 if drawn else 0):
        around: dict[Json, list[str]] = {each: [] for each in drawn}
        for place, value, inside in _members(state):
            for each in (value, place[-1]):
                if isinstance(each, str) and each in around:
                    shown = [labels.get(key, key) if isinstance(key, str) else 0 for key in place]
                    around[each].append(digest([shown, each == value, _mask(inside, labels)]))
        labels = {each: digest(sorted(found)) for each, found in around.items()}
    return digest(_mask(state, labels))


def _members(value: Json, place: Place = ()) -> Iterator[tuple[Place, Json, Json]]:
    """Yield each value in a value with its place, and what surrounds it: itself, or of a scalar what holds it."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        here = (*place, key)
        yield here, each, each if isinstance(each, dict | list) else value
        yield from _members(each, here)


def _mask(value: Json, labels: Mapping[Json, str]) -> Json:
    if isinstance(value, dict):
        return sorted(([labels.get(key, key), _mask(each, labels)] for key, each in value.items()), key=digest)
    if isinstance(value, list):
        return [_mask(each, labels) for each in value]
    return labels.get(value, value) if isinstance(value, str) else value
