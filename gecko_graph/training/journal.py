"""The journal of long work: what each part of it came to, beside the output until all is done."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from ..state import JsonObject
from .rows import Unwritten, check_target, write_rows


class Journal:
    """The file beside the output that holds what is done, one JSON object a line, until all is.

    Args:
        output: The file that is written in the end; without one nothing is kept.
        setting: Digest of what the work depends on: a journal of another one is begun anew.
    """

    def __init__(self, output: str | Path | None, setting: str) -> None:
        self._output = Path(output) if output is not None else None
        self._setting = setting
        self._file = self._output.with_name(self._output.name + ".part") if self._output else None
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> Journal:
        if self._output is not None and self._file is not None:
            check_target(self._output)
            try:
                self._stream = self._file.open("a+b")
                self._cut()
            except OSError as error:
                raise Unwritten(f"{self._file}: cannot be written: {error.strerror}") from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            with suppress(OSError):
                self._stream.close()

    def _cut(self) -> None:
        """Drop a line that was not written to its end; all of it, where it is of another setting."""
        stream = cast("IO[bytes]", self._stream)
        stream.seek(0)
        head, end = stream.readline(), 0
        if head == self._head:
            end = len(head)
            for line in stream:
                end += len(line) if line.endswith(b"\n") else 0
        stream.truncate(end)
        if not end:
            stream.write(self._head)
            stream.flush()

    @property
    def _head(self) -> bytes:
        return json.dumps({"setting": self._setting}).encode() + b"\n"

    def read(self) -> Iterator[JsonObject]:
        """Yield what is done."""
        if self._stream is None:
            return
        self._stream.seek(len(self._head))
        for line in self._stream:
            yield json.loads(line)
        self._stream.seek(0, os.SEEK_END)

    def write(self, text: str) -> None:
        """Add what one part came to, as JSON text without a line break."""
        if self._stream is None:
            return
        try:
            self._stream.write(f"{text}\n".encode())
        except OSError as error:
            raise Unwritten(f"{self._file}: cannot be written: {error.strerror}; the same command goes on") from None

    def flush(self) -> None:
        """Give the system what is written."""
        try:
            if self._stream is not None:
                self._stream.flush()
        except OSError as error:
            raise Unwritten(f"{self._file}: cannot be written: {error.strerror}; the same command goes on") from None

    def finish(self, convert: Callable[[JsonObject], Iterable[JsonObject]]) -> int:
        """Write the output whole, and remove the journal; returns how many rows were written."""
        count = 0
        if self._output is not None and self._file is not None:
            self.flush()
            count = write_rows(self._output, (row for entry in self._entries() for row in convert(entry)))
            self._file.unlink()
        return count

    def drop(self) -> None:
        """Remove the journal."""
        if self._file is not None:
            self._file.unlink()

    def _entries(self) -> Iterator[Any]:
        with cast("Path", self._file).open("rb") as stream:
            next(stream)
            yield from map(json.loads, stream)
