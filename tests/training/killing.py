"""Long work that is killed (SIGKILL) before the n-th thing it does, and gone on with."""

import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from gecko_graph.models.cache import ReplyCache
from gecko_graph.training.shards import Shards

WRITES = [(os, "replace"), (Path, "replace"), (Path, "unlink"), (ReplyCache, "update"), (Shards, "write")]


def content(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder, by its place."""
    files = [folder] if folder.is_file() else sorted(each for each in folder.rglob("*") if each.is_file())
    return {each.relative_to(folder).as_posix(): each.read_bytes() for each in files}


def is_killed(work: Callable[[], object], number: int, also: Iterable[tuple[Any, str]] = ()) -> bool:
    """Do work in a process that kills itself before the n-th write, or call of `also`; return whether it did."""
    if not (child := os.fork()):
        try:
            left = iter(range(number - 1))
            for owner, name in (*WRITES, *also):
                setattr(owner, name, _dying(getattr(owner, name), left))
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def _dying(function: Any, left: Any) -> Any:
    def wrapped(*args: Any, **more: Any) -> Any:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **more)

    return wrapped


def kill_and_go_on(
    folder: Path, work: Callable[[Path], object], numbers: Iterable[int], also: Iterable[tuple[Any, str]] = ()
) -> int:
    """Do work, killed before what it does at a number, then to its end; return the number that it never reaches."""
    work(folder / "whole")
    whole = content(folder / "whole")
    for number in numbers:
        out = folder / str(number)
        if not is_killed(lambda out=out: work(out), number, also):  # type: ignore[misc]
            return number
        work(out)
        assert content(out) == whole, number
    return 0
