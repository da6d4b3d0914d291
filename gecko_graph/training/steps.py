"""Long work that can be stopped: a journal beside the output, and steps whose files stand beside a manifest."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar

from ..errors import GeckoError
from ..values.digest import digest
from .rows import Unwritten, check_target, read_lines


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
        """Add what one part came to, as JSON text without a line break; the system has it then."""
        with self._told():
            self._stream.write(f"{text}\n".encode())
            self._stream.flush()

    def drop(self) -> None:
        """Remove the journal."""
        self._file.unlink(missing_ok=True)


Part = TypeVar("Part")

Counts = Mapping[str, Any]
"""What a step tells of what it has done: names to numbers."""


def once(
    folder: Path,
    name: str,
    outputs: Sequence[str],
    inputs: Mapping[str, Any],
    work: Callable[[Journal], Counts],
    *,
    anew: bool = True,
) -> Counts:
    """Do a step, unless its files are there and were made of the same inputs; return what it counted.

    Args:
        folder: Where its files are, beside `NAME.manifest.json`, which is written last.
        name: The step's.
        outputs: Names of the files, or of the folder, that it writes; its journal is beside the first.
        inputs: What they are made of: paths, whose content counts and not their place, and plain values.
        work: Called with a journal where something is to be done; what was stopped left there what it had done.
        anew: Whether it may be done where it was done of other inputs.

    Raises:
        GeckoError: The step has not written a file; its files cannot be written, or are of other inputs.
    """
    manifest, part, known = folder / f"{name}.manifest.json", folder / f"{outputs[0]}.part", dict[str, Any]()
    of = digest({key: identify(each) if isinstance(each, Path) else each for key, each in inputs.items()})
    with suppress(OSError, ValueError, TypeError):
        known |= json.loads(manifest.read_text(encoding="utf-8"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if known.get("of") != of or known.get("files") != {each: identify(folder / each) for each in outputs}:
            if not anew and known.get("of") not in (None, of):
                raise GeckoError(f"{folder}: its {name} are of other tools, number, seed or model: give another folder")
            manifest.unlink(missing_ok=True)
            with Journal(folder / outputs[0], of) as journal:
                counts = work(journal)
            files = {each: identify(folder / each) for each in outputs}
            for each in (key for key, found in files.items() if found is None):
                raise GeckoError(f"{name}: {folder / each} was not written")
            known = {"v": 1, "of": of, "files": files, "counts": counts}
            write_text(manifest, json.dumps(known, indent=1) + "\n")
        part.unlink(missing_ok=True)  # last: what was paid for is never in neither
    except OSError as error:
        raise Unwritten(f"{folder}: cannot be written: {error.strerror or error}; the same command goes on") from None
    return dict(known["counts"])


def go_on(
    journal: Journal, parts: Iterable[Part], do: Callable[[Iterator[Part]], Iterable[Mapping[str, Any]]]
) -> Iterator[Any]:
    """Yield what each part of some work comes to: what the journal has of it, then what `do` makes of the other parts.

    `do` yields one object a part, in their order; the journal has it before it is yielded here.
    """
    done = 0
    for entry in journal.read():
        done += 1
        yield entry
    yield from (keep(journal, made) for made in do(islice(parts, done, None)))


def keep(journal: Journal, entry: Mapping[str, Any]) -> Any:
    """Add an entry to a journal; return it as it is read again: half a surrogate pair, which no file holds, is `?`."""
    text = json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace").decode()
    journal.write(text)
    return json.loads(text)


def identify(path: Path) -> str | None:
    """Return a digest of a file's content, or of the names and sizes of a folder's files; None where there is none."""
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.is_file())
        return digest([[each.relative_to(path).as_posix(), each.stat().st_size] for each in files]) if files else None
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_text(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    new = file.with_name(file.name + ".new")
    new.write_text(text, encoding="utf-8")
    new.replace(file)


def read_rows(file: Path) -> Iterator[Any]:
    """Yield the rows of a file that a step has written."""
    return (line.read() for line in read_lines(file))
