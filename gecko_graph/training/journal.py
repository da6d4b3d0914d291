"""The journal of long work: what each part of it came to, beside the output until all is done."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from .rows import Unwritten, check_target


class Journal:
    """The file beside the output that holds what is done, one JSON object a line, until all is.

    Args:
        output: The file that is written in the end.
        setting: Digest of what the work depends on: a journal of another one is begun anew.
    """

    def __init__(self, output: str | Path, setting: str) -> None:
        self._output = Path(output)
        self._file = Path(f"{output}.part")
        self._head = json.dumps({"setting": setting}).encode() + b"\n"
        self._stream: IO[bytes]

    def __enter__(self) -> Journal:
        check_target(self._output)
        with self._told():
            self._stream = self._file.open("a+b")
            self._cut()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._stream.close()

    def _cut(self) -> None:
        """Drop a line that was not written to its end; all of it, where it is of another setting."""
        self._stream.seek(0)
        is_same = self._stream.readline() == self._head
        end = len(self._head) + sum(len(line) for line in self._stream if line.endswith(b"\n")) if is_same else 0
        self._stream.truncate(end)
        if not end:
            self._stream.write(self._head)
            self._stream.flush()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Unwritten(f"{self._file}: cannot be written: {error.strerror}; the same command goes on") from None

    def lines(self) -> Iterator[str]:
        """Yield what is done, a line of JSON each."""
        self._stream.seek(len(self._head))
        yield from (line.decode().rstrip("\n") for line in self._stream)
        self._stream.seek(0, os.SEEK_END)

    def read(self) -> Iterator[Any]:
        """Yield what is done."""
        return map(json.loads, self.lines())

    def write(self, text: str) -> None:
        """Add what one part came to, as JSON text without a line break."""
        with self._told():
            self._stream.write(f"{text}\n".encode())

    def flush(self) -> None:
        """Give the system what is written."""
        with self._told():
            self._stream.flush()

    def drop(self) -> None:
        """Remove the journal."""
        self._file.unlink(missing_ok=True)
