"""A process that ends at a chosen write to its saver; nothing is written from then on."""

from __future__ import annotations

import time
from threading import Lock
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver


class Killed(BaseException):
    """The process has ended; nothing catches this."""


class Fate:
    """Ends the process at this write, counted from 1 (0 for never), before it or after it; each write takes a while."""

    def __init__(self, kill_at: int = 0, *, after: bool = False, slow_s: float = 0.0) -> None:
        self.kill_at, self.after, self.slow_s, self.count = kill_at, after, slow_s, 0
        self._lock = Lock()

    def write(self, write: Any, *args: Any, **kwargs: Any) -> Any:
        """Make a write. Raises Killed if the process has ended."""
        with self._lock:
            self.count += 1
            number = self.count
        time.sleep(self.slow_s)
        if self.kill_at and number > self.kill_at:
            raise Killed
        result = write(*args, **kwargs) if number != self.kill_at or self.after else None
        if number == self.kill_at:
            raise Killed
        return result

    def read(self) -> None:
        """Raise Killed if the process has ended."""
        if self.kill_at and self.count >= self.kill_at:
            raise Killed


class KillingBlobs(dict[Any, Any]):
    """The saver's blobs, including the claims of real calls, whose writes count as the process's."""

    fate: Fate

    def __setitem__(self, key: Any, value: Any) -> None:
        if key[1] == "gecko:claims":
            self.fate.write(super().__setitem__, key, value)
        else:
            super().__setitem__(key, value)


class KillingSaver(InMemorySaver):
    """Keeps what was written before the process ended. LangGraph's copies of it share all data."""

    def __init__(self, fate: Fate) -> None:
        super().__init__()
        self.fate, self.blobs = fate, KillingBlobs()
        self.blobs.fate = fate

    def get_tuple(self, *args: Any, **kwargs: Any) -> Any:
        """Return a checkpoint. Raises Killed after the process has ended: it waits for nothing more."""
        self.fate.read()
        return super().get_tuple(*args, **kwargs)

    def put(self, *args: Any, **kwargs: Any) -> Any:
        return self.fate.write(super().put, *args, **kwargs)

    def put_writes(self, *args: Any, **kwargs: Any) -> Any:
        return self.fate.write(super().put_writes, *args, **kwargs)
