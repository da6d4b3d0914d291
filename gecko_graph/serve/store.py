"""Where the changes of sessions are kept: the seam of `--save`. `journal` is a file, `postgres` a database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..state import Json, JsonObject


class Row(NamedTuple):
    """A change: of which session, of which kind (`call`, `new`, `fork`, `reset`, `state`, `close` ...), and what."""

    session: str
    kind: str
    data: Json


class Found(NamedTuple):
    """What others have made of a session: the number of its last row (0: none), and the rows after the known one."""

    seen: int
    rows: Sequence[Row] = ()
    anew: bool = False
    """Whether what was known is void, as it was closed or made again: then these are all rows."""


class Store:
    """Keeps nothing: memory is all there is. What is awaited may raise Refused (503)."""

    is_shared = False
    """Whether other processes change the same sessions: then memory holds copies, renewed by each claim."""

    def read(self) -> Iterable[Row]:
        """Return the rows of all sessions, for memory to begin with. Raises GeckoError."""
        return ()

    async def claim(self, name: str, seen: int) -> Found:
        """Return the rows after the last known one, once nobody else can change the session."""
        return Found(seen)

    async def keep(self, name: str, seen: int, rows: Sequence[Row], steps: int) -> int:
        """Keep changes, all of them or none, and end the claim; return the number of the last row now."""
        return seen

    async def list(self) -> list[JsonObject]:
        """Return the sessions of a shared store: `id`, `steps`, and `idle_s` since the last change."""
        return []

    async def count(self) -> int:
        """Return how many a shared store has."""
        return 0

    async def sweep(self) -> None:
        """Delete what is idle in a shared store."""

    def close(self) -> None:
        """Give it back."""
