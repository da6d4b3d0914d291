"""Parallel work behind one interface, `map(work, items)` with ordered results: serial, threads, processes, Ray.

Python's own `map` is one implementation. Functions with a `map=` argument start no processes themselves.
"""

from __future__ import annotations

import os
import pickle
import signal
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import chain, islice, product
from multiprocessing import connection, get_context
from queue import SimpleQueue
from threading import RLock, Thread
from typing import Any, Generic, TypeAlias, TypeVar

from ..errors import GeckoError, install

Item = TypeVar("Item")
Result = TypeVar("Result")
Map: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""Maps work and items to the items' results, in order."""

QUEUED, AHEAD = 2, 16
"""Items queued at a worker; most items per worker that are running or finished out of order."""
STILLBORN, _SHOWN = 20, 200
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
    return lambda work, items: _run(lambda packed: _Process(packed), work, items, count)


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


class Died(Exception):
    """A worker died, possibly before it began."""

    def __init__(self, *, has_begun: bool = True) -> None:
        super().__init__()
        self.has_begun = has_begun


class _Done:
    """Work in another process: maps pickled items to pickled results."""

    def __init__(self, packed: bytes) -> None:
        self._packed, self._work = packed, None

    def begin(self) -> None:
        """Begin the work; an exception is raised again by each item."""
        with suppress(Exception):
            self._read()

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
    """An item or a part of one, with its position."""

    at: int
    part: int
    item: Any
    is_again: bool = False


class _Process:
    """A process that does its jobs in order."""

    def __init__(self, packed: bytes) -> None:
        context = get_context("spawn")
        self.queue, self._has_begun = deque[_Job](), False
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(packed, other), daemon=True)
        self._process.start()
        other.close()

    def give(self, item: Any) -> None:
        try:
            self._pipe.send_bytes(pickle.dumps(item))
        except OSError:
            return  # the process died; `take` reports it

    def take(self) -> Any:
        """Return the first result. Raises Died."""
        try:
            return pickle.loads(self._pipe.recv_bytes())
        except (EOFError, OSError):
            self._process.join(5)
            if not self._has_begun and (self._process.exitcode or 0) > 0:
                raise GeckoError(_CANNOT_BEGIN) from None
            raise Died(has_begun=self._has_begun) from None

    def _can_take(self) -> bool:
        with suppress(EOFError, OSError):
            if not self._has_begun:
                self._pipe.recv_bytes()
                self._has_begun = True
                return False
        return True

    @staticmethod
    def wait(workers: Sequence[_Process]) -> list[_Process]:
        """Return the workers whose first job is done, or that died."""
        known = {worker._pipe: worker for worker in workers}
        return [known[pipe] for pipe in connection.wait([*known]) if known[pipe]._can_take()]  # type: ignore[index]

    def dismiss(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _serve(packed: bytes, pipe: connection.Connection) -> None:
    """Do items until the first process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends the others
    items, done = SimpleQueue[bytes](), _Done(packed)

    def read() -> None:  # reads continuously, else both processes might wait for each other
        try:
            while True:
                items.put(pipe.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)

    Thread(target=read, daemon=True).start()
    done.begin()
    with suppress(OSError):  # the first process has ended
        pipe.send_bytes(b"begun")
        while True:
            pipe.send_bytes(done.do(items.get()))


class _Actor:
    """A Ray actor that does its jobs in order."""

    def __init__(self, ray: Any, kind: Any, packed: bytes) -> None:
        self.queue, self._ray, self._has_begun = deque[_Job](), ray, False
        self._actor = kind.remote(packed)
        self._refs = deque[Any]([self._actor.begin.remote()])

    def give(self, item: Any) -> None:
        self._refs.append(self._actor.do.remote(pickle.dumps(item)))

    def take(self) -> Any:
        """Return the first result. Raises Died."""
        try:
            return pickle.loads(self._ray.get(self._refs.popleft()))
        except self._ray.exceptions.RayError:
            raise Died(has_begun=self._has_begun) from None

    def _can_take(self) -> bool:
        with suppress(self._ray.exceptions.RayError):
            if not self._has_begun:
                self._ray.get(self._refs[0])
                self._refs.popleft()
                self._has_begun = True
                return False
        return True

    @staticmethod
    def wait(workers: Sequence[_Actor]) -> list[_Actor]:
        """Return the workers whose first job is done, or that died."""
        known = {worker._refs[0]: worker for worker in workers}
        return [known[ref] for ref in workers[0]._ray.wait([*known])[0] if known[ref]._can_take()]

    def dismiss(self) -> None:
        self._ray.kill(self._actor)


class _Order:
    """Results by position, until their turn."""

    def __init__(self, work: Any) -> None:
        self._work, self._parts, self._done = work, dict[int, int](), dict[tuple[int, int], Any]()
        self.turn = 0

    def put(self, job: _Job, result: Any) -> None:
        self._done[job.at, job.part] = result

    def died(self, job: _Job) -> list[_Job]:
        """Return the jobs to repeat after a worker died: the parts of its item; after the second time none."""
        if not job.is_again:
            parts = self._work.split(job.item)
            self._parts[job.at] = len(parts)
            return [_Job(job.at, number, part, is_again=True) for number, part in enumerate(parts)]
        try:
            self.put(job, self._work.lost(job.item))
        except GeckoError as error:
            self.put(job, _Raised(error))
        return []

    def ready(self) -> Iterator[Any]:
        """Yield the results whose turn it is; raise the exceptions of the work."""
        while all((self.turn, part) in self._done for part in range(self._parts.get(self.turn, 1))):
            found = [self._done.pop((self.turn, part)) for part in range(self._parts.pop(self.turn, 1))]
            self.turn += 1
            for each in found:
                if isinstance(each, _Raised):
                    raise each.error
            yield found[0] if len(found) == 1 else [*chain.from_iterable(found)]


def _run(start: Callable[[bytes], Any], work: Any, items: Iterable[Any], count: int) -> Iterator[Any]:
    """Yield the results of workers in order; the number of running jobs is bounded."""
    packed, order, jobs = _pack(work), _Order(work), _Jobs(items)
    workers = list[Any]()
    try:
        workers += (start(packed) for _ in range(count))
        while True:
            _give(workers, jobs, most=order.turn + AHEAD * count)
            if not (busy := [worker for worker in workers if worker.queue]):
                return
            for worker in busy[0].wait(busy):
                job = worker.queue.popleft()
                try:
                    order.put(job, worker.take())
                except Died as died:
                    worker.dismiss()
                    jobs.put_back(order.died(job) if died.has_begun else [job], worker.queue, died.has_begun)
                    workers[workers.index(worker)] = start(packed)
            yield from order.ready()
    finally:
        for worker in workers:
            worker.dismiss()


def _give(workers: Sequence[Any], jobs: _Jobs, *, most: int) -> None:
    """Fill the workers' queues; a repeated job runs alone: its result is lost if the job after it kills the worker."""
    for number, worker in product(range(QUEUED), workers):
        is_open = len(worker.queue) == number and not any(each.is_again for each in worker.queue)
        if is_open and (job := jobs.next(most=most, alone=not number)):
            worker.queue.append(job)
            worker.give(job.item)


class _Jobs:
    """The remaining jobs; repeated ones come first."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._again, self._left, self._given, self._stillborn = deque[_Job](), enumerate(items), 0, 0

    def next(self, *, most: int, alone: bool) -> _Job | None:
        """Return a job; None if there is none, `most` items were given out, or a repeated one would not be `alone`."""
        if self._again:
            return self._again.popleft() if alone or not self._again[0].is_again else None
        found = next(self._left, None) if self._given < most else None
        self._given += 1 if found else 0
        return _Job(found[0], 0, found[1]) if found else None

    def put_back(self, first: Iterable[_Job], others: Iterable[_Job], has_begun: bool) -> None:
        """Put back the jobs of a dead worker. Raises GeckoError if workers repeatedly die before they begin."""
        self._stillborn = 0 if has_begun else self._stillborn + 1
        if self._stillborn > STILLBORN:
            raise GeckoError(_CANNOT_BEGIN)
        self._again += [*first, *others]


def _pack(work: object) -> bytes:
    """Pickle the work. Raises GeckoError if a part cannot be pickled."""
    try:
        return pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise GeckoError(f"{type(work).__name__}: it cannot be sent to another process: {error}") from error
