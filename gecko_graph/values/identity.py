"""A cache by the argument objects themselves: for schemas and rules, which are never changed in place."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, TypeVar

Make = TypeVar("Make", bound=Callable[..., Any])


def cache_by_identity(most: int) -> Callable[[Make], Make]:
    """Return a decorator that keeps a function's results by its arguments' `id()`, whatever they hold.

    The arguments are kept too, so that no id is used again while it is known. Beyond `most` results the oldest goes.
    """

    def decorate(make: Make) -> Make:
        kept: dict[Any, tuple[Any, Any]] = {}
        lock = Lock()

        @wraps(make)
        def find(first: Any, *others: Any) -> Any:
            key = (id(first), *map(id, others)) if others else id(first)
            found = kept.get(key)
            if found is not None:
                return found[0]
            made = make(first, *others)
            with lock:
                while len(kept) >= most:
                    del kept[next(iter(kept))]
                return kept.setdefault(key, (made, (first, others)))[0]

        return find  # type: ignore[return-value]

    return decorate
