"""Parallel work behind one interface, `map(work, items)` with ordered results: serial, threads, processes, Ray.

Python's own `map` is one implementation. Functions with a `map=` argument start no processes themselves.
"""

from __future__ import annotations

import os
import pickle
import signal
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import chain, islice, product
from multiprocessing import active_children, get_context, parent_process
from threading import RLock, Thread
from typing import Any, Generic, TypeAlias, TypeVar

from ..errors import GeckoError, install

Item = TypeVar("Item")
Result = TypeVar("Result")
Map: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""Maps work and items to the items' results, in order."""

QUEUED, AHEAD = 2, 16
"""Items queued at a worker; most items per worker that are running or finished out of order."""
_SHOWN = 200
_OPEN = object()
_CANNOT_BEGIN = (
    """workers die before they begin: see what they print; processes() belongs below `if __name__ == "__main__":`"""
)
_BEGINNING = RLock()


class Work(ABC, Generic[Item, Result]):
    """The work on each item. It is sent to other processes, so its attributes must be picklable."""

    @abstractmethod
    def begin(self) -> Callable[[Item], Result]:
        """Build the worker's objects (toolkit, world, models), and return the function for one item."""

    def __call__(self, item: Item) -> Result:
        """Process an item; the first one in a process begins the work."""
        return self.begun()(item)

    def begun(self) -> Callable[[Item], Result]:
        """Return the function for one item; the work begins once per process."""
        with _BEGINNING:
            do: Callable[[Item], Result] = self.__dict__.get("_do") or self.__dict__.setdefault("_do", self.begin())
        return do

    def __getstate__(self) -> dict[str, Any]:
        return {key: each for key, each in self.__dict__.items() if key != "_do"}

    def split(self, item: Item) -> list[Item]:
        """Return the parts of an item whose worker died, to repeat one by one; their list results are concatenated."""
        return [item]

    def lost(self, item: Item) -> Result:
        """Return the result for an item whose worker died twice. Raises GeckoError with the item."""
        raise GeckoError(f"its worker died twice: {repr(item)[:_SHOWN]}")


def threads(count: int) -> Map:
    """Return a `map` with so many threads: for work that waits for models."""

    def run(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        left, pool = iter(items), ThreadPoolExecutor(count, thread_name_prefix="gecko-graph")
        try:
            waiting = deque(pool.submit(work, each) for each in islice(left, count))
            while waiting:
                yield waiting.popleft().result()
                waiting += (pool.submit(work, each) for each in islice(left, count - len(waiting)))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    return run


def processes(count: int) -> Map:
    """Return a `map` with so many processes; call it below `if __name__ == "__main__":`.

    Processes are spawned. An item whose process died is repeated once, then `Work.lost` decides.
    """
    return lambda work, items: _run(_Process, work, items, count)


def on_ray(address: str | None = None, count: int | None = None, **options: Any) -> Map:
    """Return a `map` with actors on a Ray cluster (extra `ray`).

    An item whose actor or node died is repeated once, then `Work.lost` decides.

    Args:
        address: The cluster's address; `auto` finds one, None starts one on this machine, unless the program runs in
            one.
        count: Number of actors; by default the number of processors minus one.
        options: Options of each actor, such as Ray's `num_cpus`, `memory`, `resources`, `runtime_env`.

    Raises:
        GeckoError: Ray is not installed, or the cluster does not answer.
    """
    try:
        ray = import_module("ray")
        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False)
    except ImportError:
        raise GeckoError(f"ray is not installed: {install('ray')}") from None
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise GeckoError(f"--ray {address}: {error}") from None
    number = count or max(1, int(ray.cluster_resources().get("CPU", 1)) - 1)
    actor = ray.remote(_Done).options(**options)
    return lambda work, items: _run(lambda packed: _Actor(ray, actor, packed), work, items, number)


class _Done:
    """Work in another process: maps pickled items to pickled results."""

    def __init__(self, packed: bytes) -> None:
        self._packed, self._work = packed, None

    def begin(self) -> int:
        """Begin the work, and return the process id; an exception is raised again by each item."""
        with suppress(Exception):
            self._read()
        return os.getpid()

    def _read(self) -> Any:
        if self._work is None:
            self._work = pickle.loads(self._packed)
        return self._work.begun() if isinstance(self._work, Work) else self._work

    def do(self, item: bytes) -> bytes:
        try:
            return pickle.dumps(self._read()(pickle.loads(item)))
        except Exception as error:  # noqa: BLE001 - raised in the first process
            return _pack_error(error)


def _pack_error(error: Exception) -> bytes:
    try:
        packed = pickle.dumps(_Raised(error))
        pickle.loads(packed)
    except Exception:  # noqa: BLE001 - some errors cannot be pickled, or not unpickled
        return pickle.dumps(_Raised(GeckoError(f"{type(error).__name__}: {error}")))
    return packed


@dataclass
class _Raised:
    error: Exception


@dataclass(eq=False)
class _Job:
    """An item or a part of one; `line` are the jobs of the item."""

    item: Any
    line: list[_Job]
    is_again: bool = False
    result: Any = _OPEN


class _Worker(ABC):
    """Another process, which does its jobs in order."""

    most_stillborn: int
    """Workers that may die in succession before they have begun."""
    died: type[Exception]
    begun: Future[int]

    def __init__(self) -> None:
        self.queue = deque[tuple[_Job, Future[bytes]]]()

    def give(self, job: _Job) -> None:
        self.queue.append((job, self.submit(pickle.dumps(job.item))))

    @property
    def has_begun(self) -> bool:
        return self.begun.done() and self.begun.exception() is None

    @abstractmethod
    def submit(self, item: bytes) -> Future[bytes]: ...

    @abstractmethod
    def dismiss(self) -> None: ...


class _Process(_Worker):
    most_stillborn, died = 3, BrokenProcessPool

    def __init__(self, packed: bytes) -> None:
        super().__init__()
        self._pool = ProcessPoolExecutor(1, get_context("spawn"), _start, (packed,))
        self.begun = self._pool.submit(_begin)

    def submit(self, item: bytes) -> Future[bytes]:
        try:
            return self._pool.submit(_do, item)
        except BrokenProcessPool as died:
            broken = Future[bytes]()
            broken.set_exception(died)
            return broken

    def dismiss(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in active_children() if self.has_begun else ():
            if process.pid == self.begun.result():
                process.kill()  # its job may take minutes


_here: _Done
"""The work of this process."""


def _start(packed: bytes) -> None:
    global _here
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends the others
    Thread(target=_end_with_parent, daemon=True).start()
    _here = _Done(packed)


def _end_with_parent() -> None:
    if parent := parent_process():
        parent.join()
        os._exit(0)


def _begin() -> int:
    return _here.begin()


def _do(item: bytes) -> bytes:
    return _here.do(item)


class _Actor(_Worker):
    most_stillborn = 20

    def __init__(self, ray: Any, kind: Any, packed: bytes) -> None:
        super().__init__()
        self.died, self._ray, self._actor = ray.exceptions.RayError, ray, kind.remote(packed)
        self.begun = self._actor.begin.remote().future()

    def submit(self, item: bytes) -> Future[bytes]:
        sent: Future[bytes] = self._actor.do.remote(item).future()
        return sent

    def dismiss(self) -> None:
        self._ray.kill(self._actor)


def _run(start: Callable[[bytes], _Worker], work: Any, items: Iterable[Any], count: int) -> Iterator[Any]:
    """Yield the results of workers in order; the number of running jobs is bounded."""
    packed, jobs, workers = _pack(work), _Jobs(work, items, most=AHEAD * count), list[_Worker]()
    try:
        workers += (start(packed) for _ in range(count))
        while True:
            for number, worker in product(range(QUEUED), workers):
                if len(worker.queue) == number and (job := jobs.next()):
                    worker.give(job)
            if not (busy := {worker.queue[0][1]: worker for worker in workers if worker.queue}):
                return
            for done in wait(busy, return_when=FIRST_COMPLETED).done:
                worker, (job, _) = busy[done], busy[done].queue.popleft()
                try:
                    job.result = pickle.loads(done.result())
                except worker.died:
                    jobs.put_back(job, worker)
                    worker.dismiss()
                    workers[workers.index(worker)] = start(packed)
            yield from jobs.ready()
    finally:
        for worker in workers:
            worker.dismiss()


class _Jobs:
    """The jobs of all items; repeated ones come first, results in order."""

    def __init__(self, work: Any, items: Iterable[Any], *, most: int) -> None:
        self._work, self._left, self._most = work, iter(items), most
        self._lines, self._again, self._stillborn = deque[list[_Job]](), deque[_Job](), 0

    def next(self) -> _Job | None:
        """Return a job; None if there is none, or the results of `most` items are waited for."""
        if self._again:
            return self._again.popleft()
        for item in islice(self._left, 1 if len(self._lines) < self._most else 0):
            line = list[_Job]()
            line.append(_Job(item, line))
            self._lines.append(line)
            return line[0]
        return None

    def put_back(self, job: _Job, worker: _Worker) -> None:
        """Put back the jobs of a dead worker. Raises GeckoError if workers repeatedly die before they begin."""
        self._stillborn = 0 if worker.has_begun else self._stillborn + 1
        if self._stillborn > worker.most_stillborn:
            raise GeckoError(_CANNOT_BEGIN)
        self._again += [*(self._repeat(job) if worker.has_begun else [job]), *(each for each, _ in worker.queue)]

    def _repeat(self, job: _Job) -> list[_Job]:
        """Return the parts of an item as jobs; none if the worker has died twice."""
        if not job.is_again:
            job.line[:] = [_Job(part, job.line, is_again=True) for part in self._work.split(job.item)]
            return [*job.line]
        try:
            job.result = self._work.lost(job.item)
        except GeckoError as error:
            job.result = _Raised(error)
        return []

    def ready(self) -> Iterator[Any]:
        """Yield the results whose turn it is; raise the exceptions of the work."""
        while self._lines and all(job.result is not _OPEN for job in self._lines[0]):
            found = [job.result for job in self._lines.popleft()]
            for each in found:
                if isinstance(each, _Raised):
                    raise each.error
            yield found[0] if len(found) == 1 else [*chain.from_iterable(found)]


def _pack(work: object) -> bytes:
    """Pickle the work. Raises GeckoError if a part cannot be pickled."""
    try:
        return pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise GeckoError(f"{type(work).__name__}: it cannot be sent to another process: {error}") from error
