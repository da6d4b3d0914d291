"""Every place of a JSON value, for tests that damage, hide or look up one of them."""

from __future__ import annotations


def every_place(value, path=()):
    """Each path of keys and indices with the value there, the whole first."""
    yield path, value
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        yield from every_place(inner, (*path, key))
