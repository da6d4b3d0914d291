"""The interface of `--save`: stores changes of sessions. `journal` is a file, `postgres` a database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..state import Json, JsonObject


class Row(NamedTuple):
    """A change: the session, the kind (`call`, `new`, `fork`, `reset`, `state`, `close` ...), and the data."""

    session: str
    kind: str
    data: Json


class Found(NamedTuple):
    """The rows that others have added to a session: the number of its last row (0: none), and the new rows."""

    seen: int
    rows: Sequence[Row] = ()
    anew: bool = False
    """True if the session was closed or recreated, so that these are all its rows."""


class Store:
    """Stores nothing: sessions exist in memory only. Its coroutines may raise HttpRefusal (503)."""

    is_shared = False
    """Whether other processes change the same sessions: then memory has copies, renewed by each claim."""

    def read(self) -> Iterable[Row]:
        """Return the rows of all sessions at the start. Raises GeckoError."""
        return ()

    async def claim(self, name: str, seen: int) -> Found:
        """Return the rows after the last known one, once nobody else can change the session."""
        return Found(seen)

    async def keep(self, name: str, seen: int, rows: Sequence[Row], steps: int) -> int:
        """Store all changes or none, and end the claim; return the number of the last row."""
        return seen

    async def list(self) -> list[JsonObject]:
        """Return the sessions of a shared store: `id`, `steps`, and `idle_s` since the last change."""
        return []

    async def count(self) -> int:
        """Return the number of sessions of a shared store."""
        return 0

    async def sweep(self) -> None:
        """Delete idle sessions of a shared store."""

    def close(self) -> None: ...
