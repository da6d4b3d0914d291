"""Running a suite's cases: which ones, several at once, each kept in the journal as soon as it is over."""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import inspect
import json
import time
import traceback
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import cast

from gecko_graph.masking import mask
from gecko_graph.state import JsonObject

from .datasets import ROOT
from .journal import Journal
from .patience import Trouble, watch
from .progress import Progress
from .record import REFUSALS
from .suite import Case, EvalError, Record, Status, Suite

REASON_CHARS = 500


@dataclass(frozen=True, slots=True)
class Selection:
    """The cases to run, in the suite's order, and how many there were to choose from."""

    cases: Sequence[Case]
    of: int


def select(cases: Iterable[Case], *, only: Sequence[str] = (), limit: int | None = None, seed: int = 0) -> Selection:
    """Choose cases.

    Args:
        cases: All there are; read once, and with a limit no more of them are kept than chosen.
        only: Patterns (`simple_*`) of ids or groups; empty for all.
        limit: So many units, drawn by the seed: a smaller limit's cases are among a larger one's.
        seed: Of the draw.

    Raises:
        EvalError: No case fits `only`.
        ValueError: Two cases have one id.
    """
    total, fitting = 0, 0
    drawn = _Draw(limit, seed)
    seen: set[str] = set()
    for total, case in enumerate(cases, 1):  # noqa: B007 - the count is returned
        if case.id in seen:
            raise ValueError(f"two cases have the id {case.id!r}")
        seen.add(case.id)
        if not only or any(fnmatchcase(case.id, each) or fnmatchcase(case.group, each) for each in only):
            fitting += 1
            drawn.add(fitting, case)
    if only and not fitting:
        shown = ", ".join(sorted(seen)[:3])
        raise EvalError(
            f"no case fits --only {' '.join(only)}: patterns are of ids ({shown}, ...) or groups; try --list"
        )
    return Selection(drawn.cases(), total)


class _Draw:
    """The units of lowest rank, where the seed ranks them."""

    def __init__(self, limit: int | None, seed: int) -> None:
        self._limit, self._seed = limit, seed
        self._kept: dict[str, list[tuple[int, Case]]] = {}
        self._worst: list[tuple[int, str]] = []

    def add(self, number: int, case: Case) -> None:
        unit = case.unit or case.id
        if unit not in self._kept and self._limit is not None:
            rank = int.from_bytes(hashlib.sha256(f"{self._seed}:{unit}".encode()).digest()[:8])
            if len(self._worst) >= self._limit and (not self._worst or rank > -self._worst[0][0]):
                return
            heapq.heappush(self._worst, (-rank, unit))
            if len(self._worst) > self._limit:
                del self._kept[heapq.heappop(self._worst)[1]]
        self._kept.setdefault(unit, []).append((number, case))

    def cases(self) -> list[Case]:
        numbered = sorted((each for some in self._kept.values() for each in some), key=lambda each: each[0])
        return [case for _, case in numbered]


def to_run(cases: Iterable[Case], finished: dict[str, Record], *, retry_failed: bool) -> list[Case]:
    """Return the cases that the journal does not settle: missing, not reached and, if wanted, failed."""
    settled: set[Status] = {"done"} if retry_failed else {"done", "failed"}
    return [case for case in cases if case.id not in finished or finished[case.id].status not in settled]


async def run_cases(
    suite: Suite, cases: Sequence[Case], *, at_once: int, journal: Journal, progress: Progress
) -> dict[str, Record]:
    """Run cases, so many at once; each record is in the journal before the next case begins.

    Raises:
        EvalError: A user's mistake that no case can survive: a model's endpoint that denies every question.
    """
    session = _Session(suite, journal, progress)
    waiting, mistake = iter(cases), None
    with ThreadPoolExecutor(at_once, thread_name_prefix="case") as threads:
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(at_once, len(cases))):
                    group.create_task(session.work(waiting, threads))
        except* EvalError as mistakes:
            mistake = mistakes.exceptions[0]  # raised here it would be in a group again, in Python 3.11.2
    if mistake is not None:
        raise mistake
    return session.records


class _Session:
    """What the workers share."""

    def __init__(self, suite: Suite, journal: Journal, progress: Progress) -> None:
        self._suite, self._journal, self._progress = suite, journal, progress
        self._is_async = inspect.iscoroutinefunction(suite.run_case)
        self._reached = False
        self.records: dict[str, Record] = {}

    async def work(self, waiting: Iterator[Case], threads: ThreadPoolExecutor) -> None:
        for case in waiting:
            self._progress.begin(case)
            record = await self._run(case, threads)
            self._journal.add(record)
            self.records[case.id] = record
            self._progress.end(record)

    async def _run(self, case: Case, threads: ThreadPoolExecutor) -> Record:
        start = time.perf_counter()
        values: JsonObject = {}
        reason = ""
        with watch() as trouble:
            try:
                values = checked(await self._values(case, threads))
            except EvalError:
                raise
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the boundary: a case that fails is counted
                reason = failure(error)
        seconds = round(time.perf_counter() - start, 6)
        if not self._reached:
            _check_endpoint(trouble)
        tools = case.tools or self._suite.tools
        if lost := "; ".join(dict.fromkeys(trouble.given_up)) or trouble.denied:
            return Record(case.id, case.group, case.facts, "unreached", lost, seconds, tools, {})
        self._reached = self._reached or trouble.answered > 0
        if values and trouble.refused:
            values[REFUSALS] = list(dict.fromkeys(trouble.refused))
        status: Status = "failed" if reason else "done"
        return Record(case.id, case.group, case.facts, status, reason, seconds, tools, values)

    async def _values(self, case: Case, threads: ThreadPoolExecutor) -> JsonObject:
        if self._is_async:
            return await cast("Awaitable[JsonObject]", self._suite.run_case(case))
        run = partial(copy_context().run, self._suite.run_case, case)
        ran = await asyncio.get_running_loop().run_in_executor(threads, run)
        return await ran if isinstance(ran, Awaitable) else ran


def _check_endpoint(trouble: Trouble) -> None:
    """Stop a run at its first case where the endpoint wants nothing of it.

    Raises:
        EvalError: It denies every question, or refused all of the case's and answered none.
    """
    if trouble.denied:
        raise EvalError(f"the model's endpoint denies every question ({trouble.denied}): see --model and --base-url")
    if trouble.refused and not trouble.answered:
        raise EvalError(
            f"the model's endpoint refuses every question ({trouble.refused[0]}): see whether it knows the model, "
            "and calls of tools"
        )


def checked(values: JsonObject) -> JsonObject:
    """Return the values of a case as the journal will give them back.

    Raises:
        TypeError: It is not an object of plain JSON.
        ValueError: It holds NaN or an infinity.
    """
    if not isinstance(values, dict):
        raise TypeError(f"run_case returned {type(values).__name__}, not a dict")
    made: JsonObject = json.loads(json.dumps(values, allow_nan=False))
    return made


def failure(error: BaseException) -> str:
    """Format an exception in one line, with the place in this project where it was raised."""
    text = " ".join(mask(str(error)).split())[:REASON_CHARS]
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_ours(frame.filename)]
    where = f" ({Path(ours[-1].filename).relative_to(ROOT)}:{ours[-1].lineno})" if ours else ""
    return f"{type(error).__name__}: {text}{where}" if text else f"{type(error).__name__}{where}"


def _is_ours(filename: str) -> bool:
    path = Path(filename)
    return path.is_relative_to(ROOT) and not {"site-packages", "lib"} & set(path.parts) and path != Path(__file__)
