"""Run a suite's cases: choose them, run several in parallel, save each as soon as it is finished."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import cast

from gecko_graph.masking import mask
from gecko_graph.models.cache import Unkept, of_item
from gecko_graph.state import JsonObject
from gecko_graph.values.mapping import Map, Work

from .figures import Case, Record, Status
from .options import ROOT, EvalError, Options
from .patience import Trouble, watch
from .suite import REFUSALS, Suite

REASON_CHARS = 500


@dataclass(frozen=True, slots=True)
class Selection:
    """The cases to run, in the suite's order, and how many there were to choose from."""

    cases: Sequence[Case]
    of: int


def select(cases: Iterable[Case], *, only: Sequence[str] = (), limit: int | None = None, seed: int = 0) -> Selection:
    """Choose cases: those whose id or group fits a pattern, then so many units, drawn by the seed.

    The cases of a smaller limit are among those of a larger one. Raises EvalError if no case matches.
    """
    every = list(cases)
    for name, count in Counter(case.id for case in every).most_common(1):
        if count > 1:
            raise ValueError(f"two cases have the id {name!r}")
    chosen = [case for case in every if not only or any(_fits(case, pattern) for pattern in only)]
    if only and not chosen:
        raise EvalError(f"no case matches --only {' '.join(only)}: patterns are for ids or groups; see --list")
    units = sorted({_unit(case) for case in chosen}, key=lambda unit: sha256(f"{seed}:{unit}".encode()).digest()[:8])
    drawn = set(units[:limit])
    return Selection([case for case in chosen if _unit(case) in drawn], len(every))


def _fits(case: Case, pattern: str) -> bool:
    return fnmatchcase(case.id, pattern) or fnmatchcase(case.group, pattern)


def _unit(case: Case) -> str:
    return case.unit or case.id


async def run_cases(
    suite: Suite, cases: Sequence[Case], *, at_once: int, keep: Callable[[Record], object]
) -> dict[str, Record]:
    """Run cases, `at_once` in parallel; each record is saved before its worker starts the next case."""
    session = _Session(suite, keep)
    waiting, mistake = iter(cases), None
    with ThreadPoolExecutor(at_once, thread_name_prefix="case") as threads:
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(at_once, len(cases))):
                    group.create_task(session.work(waiting, threads))
        except* EvalError as mistakes:
            mistake = mistakes.exceptions[0]  # raised here it would be wrapped in a group again, in Python 3.11.2
    if mistake is not None:
        raise mistake
    return session.records


@dataclass
class RunCase(Work[str, Record]):
    """The work of a `map`: runs the case of an id with a suite that each worker builds."""

    kind: type[Suite]
    options: Options

    def begin(self) -> Callable[[str], Record]:
        suite = self.kind(self.options)
        session, known = _Session(suite, lambda _: None), {case.id: case for case in suite.cases()}

        def run(name: str) -> Record:
            with ThreadPoolExecutor(1, thread_name_prefix="case") as threads:
                return asyncio.run(session.run(known[name], threads))

        return run

    def lost(self, item: str) -> Record:
        """Return the record of a case that killed two worker processes."""
        return Record(item, "", {}, "failed", "its process died twice", 0.0, "none", {})


def map_cases(suite: Suite, cases: Sequence[Case], how: Map, *, keep: Callable[[Record], object]) -> dict[str, Record]:
    """Run cases with a `map`; records are saved in the order of the cases. Raises as `run_cases` does."""
    records = {}
    for case, record in zip(cases, how(RunCase(type(suite), suite.options), (case.id for case in cases)), strict=True):
        records[case.id] = replace(record, group=case.group, facts=case.facts)
        keep(records[case.id])
    return records


class _Session:
    """State shared by the workers."""

    def __init__(self, suite: Suite, keep: Callable[[Record], object]) -> None:
        self._suite, self._keep = suite, keep
        self._is_async = inspect.iscoroutinefunction(suite.run_case)
        self._reached = False
        self.records: dict[str, Record] = {}

    async def work(self, waiting: Iterator[Case], threads: ThreadPoolExecutor) -> None:
        for case in waiting:
            record = await self.run(case, threads)
            self._keep(record)
            self.records[case.id] = record

    async def run(self, case: Case, threads: ThreadPoolExecutor) -> Record:
        start = time.perf_counter()
        values: JsonObject = {}
        reason = ""
        with watch() as trouble, of_item(case.id):
            try:
                values = checked(await self._values(case, threads))
            except EvalError:
                raise
            except Unkept as unkept:
                raise EvalError(str(unkept)) from None
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a case that fails in any way is counted
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
    """Raise EvalError if the endpoint denies every question, or has refused all questions of the first case."""
    if trouble.denied:
        raise EvalError(f"the model's endpoint denies every question ({trouble.denied}): see --model and --base-url")
    if trouble.refused and not trouble.answered:
        raise EvalError(f"the model's endpoint refuses every question ({trouble.refused[0]}): see --model")


def checked(values: JsonObject) -> JsonObject:
    """Return the values of a case after a round trip through JSON; raise if they are not plain JSON."""
    if not isinstance(values, dict):
        raise TypeError(f"run_case returned {type(values).__name__}, not a dict")
    made: JsonObject = json.loads(json.dumps(values, allow_nan=False))
    return made


def failure(error: BaseException) -> str:
    """Format an exception in one line, with the place in this project that raised it."""
    text = " ".join(mask(str(error)).split())[:REASON_CHARS]
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_ours(frame.filename)]
    where = f" ({Path(ours[-1].filename).relative_to(ROOT)}:{ours[-1].lineno})" if ours else ""
    return f"{type(error).__name__}: {text}{where}" if text else f"{type(error).__name__}{where}"


def _is_ours(filename: str) -> bool:
    path = Path(filename)
    return path.is_relative_to(ROOT) and not {"site-packages", "lib"} & set(path.parts) and path != Path(__file__)
