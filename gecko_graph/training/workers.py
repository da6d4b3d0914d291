"""Chunks of work for several processes, answered in their order; one that dies loses nothing but what killed it."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import islice
from multiprocessing import get_all_start_methods, get_context
from threading import Thread
from typing import Any, Generic, TypeVar

Part = TypeVar("Part")
Done = TypeVar("Done")

AHEAD = 32
"""Chunks a process that are given to the pool at once."""

_work: Callable[[list[Any]], Any]


def _begin(work: Callable[[list[Any]], Any]) -> None:
    global _work
    _work = work
    gc.freeze()  # what is shared with the first process is neither searched nor copied
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends the others
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process once its parent was killed: nobody would wait for it."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _do(chunk: list[Any]) -> Any:
    return _work(chunk)


class Workers(Generic[Part, Done]):
    """Processes that do one kind of work; with one, or where the system cannot fork, the work is done here.

    Args:
        work: From a chunk to what it comes to.
        give_up: The same for a chunk of one whose work has killed a process.
        count: How many processes.
    """

    def __init__(self, work: Callable[[list[Part]], Done], give_up: Callable[[list[Part]], Done], count: int) -> None:
        self._work, self._give_up = work, give_up
        self._count = count if "fork" in get_all_start_methods() else 1

    def run(self, chunks: Iterable[list[Part]]) -> Iterator[Done]:
        """Yield what each chunk comes to, in order."""
        if self._count == 1:
            yield from map(self._work, chunks)
            return
        left, waiting, pool = iter(chunks), deque[tuple[list[Part], Future[Done]]](), self._open(self._count)
        try:
            while True:
                waiting += ((chunk, _submit(pool, chunk)) for chunk in islice(left, AHEAD * self._count - len(waiting)))
                if not waiting:
                    return
                chunk, future = waiting.popleft()
                try:
                    yield future.result()
                    continue
                except BrokenProcessPool:
                    pool.shutdown(wait=False)
                yield from self._do_alone(chunk)
                pool = self._open(self._count)
                waiting = deque((one, _submit(pool, one) if _is_lost(made) else made) for one, made in waiting)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _open(self, count: int) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(count, mp_context=get_context("fork"), initializer=_begin, initargs=(self._work,))

    def _do_alone(self, chunk: list[Part]) -> Iterator[Done]:
        """Yield what a chunk comes to in a process of its own, part by part where that dies."""
        with suppress(BrokenProcessPool), self._open(1) as pool:
            yield _submit(pool, chunk).result()
            return
        if len(chunk) == 1:
            yield self._give_up(chunk)
            return
        for part in chunk:
            yield from self._do_alone([part])


def _submit(pool: ProcessPoolExecutor, chunk: list[Any]) -> Future[Any]:
    """Return the work on a chunk; where the pool has died since, one that says so."""
    try:
        return pool.submit(_do, chunk)
    except BrokenProcessPool as error:
        future = Future[Any]()
        future.set_exception(error)
        return future


def _is_lost(future: Future[Any]) -> bool:
    """Return whether work has to be done again, as its pool has died."""
    return not future.done() or isinstance(future.exception(), BrokenProcessPool)
