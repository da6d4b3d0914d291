"""Trainers and probes of a user's own: a command with `{data}`, `{model}`, `{out}` in it, or a function of these."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeAlias, cast

from ..errors import GeckoError
from ..masking import mask

Maker: TypeAlias = str | Callable[[Path, str, Path], object]
"""A command, or a function of data, model and where the result goes."""

_SHOWN = 1_500
"""Last characters of a failed command's messages."""


def check_maker(what: str, maker: Maker) -> None:
    """Raise GeckoError where a command does not say where data and result stand."""
    if isinstance(maker, str) and (missing := [place for place in ("{data}", "{out}") if place not in maker]):
        raise GeckoError(f"{what}: the command {maker!r} lacks {', '.join(missing)}")


def describe_maker(maker: Maker) -> str:
    """Return what tells one trainer from another."""
    return maker if isinstance(maker, str) else getattr(maker, "__qualname__", type(maker).__qualname__)


def run_maker(what: str, maker: Maker, data: Path, model: str, out: Path) -> None:
    """Have a file or folder made; it is there whole or not at all.

    Raises:
        GeckoError: The command or function fails, or writes nothing.
    """
    new = out.with_name(f"{out.name}.new")
    for path in (new, out):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if isinstance(maker, str):
        _run(what, maker, {"{data}": str(data), "{model}": model, "{out}": str(new)})
    else:
        try:
            maker(data, model, new)
        except OSError as error:  # which is not of our own files
            raise GeckoError(f"{what}: {type(error).__name__}: {error}; the same command goes on") from error
    if not new.exists() or (new.is_dir() and not any(new.iterdir())):
        raise GeckoError(f"{what}: it has written nothing to {{out}} ({new})")
    new.replace(out)


def _run(what: str, command: str, places: dict[str, str]) -> None:
    words = shlex.split(command)
    for place, value in places.items():
        words = [word.replace(place, value) for word in words]
    try:
        with subprocess.Popen(words, stderr=subprocess.PIPE) as running:
            said = _pass_on(cast("IO[bytes]", running.stderr))
    except OSError as error:
        raise GeckoError(f"{what}: {words[0]}: {error.strerror}") from None
    if running.returncode:
        ended = f"{what}: {shlex.join(words)} ended with {running.returncode}; the same command goes on"
        raise GeckoError(f"{ended}\n{mask(said.strip())}")


def _pass_on(stream: IO[bytes]) -> str:
    """Show what a command tells while it runs, which may be hours, and return the last of it."""
    last = b""
    while chunk := stream.read1(1 << 16):  # type: ignore[attr-defined]
        last = (last + chunk)[-_SHOWN:]
        sys.stderr.write(chunk.decode("utf-8", "replace"))
        sys.stderr.flush()
    return last.decode("utf-8", "replace")
