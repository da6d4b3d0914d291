"""Verifying the rows of a data set by rules, by a world, by a model; what is done is kept, a stopped run goes on."""

from __future__ import annotations

import gc
import json
import os
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby, islice
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Generic, TypeVar

from ..errors import GeckoError
from ..models.factory import Models, ModelsLike
from ..state import JsonObject
from ..tools import Toolkit
from ..values.digest import digest
from .checks import Checker, Code, Verdict
from .formats import FORMATS
from .judging import Item, Judge, was_asked
from .rows import Line, Row, read_lines, write_rows
from .samples import Bad, Sample, continues, goal_key
from .shapes import ROW_ERRORS, read_row, reason_of
from .steps import Journal, identify, read_rows

Part = TypeVar("Part")
Done = TypeVar("Done")

CHUNK, LONGEST = 8, 200
"""Rows that a process is given at once, and at most where one conversation has more."""
AHEAD = 32
"""Chunks a process that are given to the pool at once."""
EXAMPLES = 3
_TRUE = ("true", "1", "1.0", "yes", "right", "correct", "valid", "keep")

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


@dataclass(slots=True)
class Summary:
    """What was found in a data set.

    Args:
        counts: Verdict to how many rows have it.
        by: Who decided to how many rows.
        reasons: Code to how often it was given, and its first examples: the row's id, JSON path, message.
        bad: Rows that could not be read.
        rows: The rows with their verdicts, where these went to no file.
        written: How many rows the output has.
        truth: Of rows of which the truth is known: right or wrong, and the verdict, to how many.
    """

    counts: Counter[str] = field(default_factory=Counter)
    by: Counter[str] = field(default_factory=Counter)
    reasons: dict[Code, tuple[int, list[tuple[str, str, str]]]] = field(default_factory=dict)
    bad: list[Bad] = field(default_factory=list)
    rows: list[JsonObject] = field(default_factory=list)
    written: int = 0
    truth: Counter[tuple[bool, str]] = field(default_factory=Counter)

    @property
    def sensitivity(self) -> float | None:
        """The share of the wrong labels that were dropped or replaced."""
        return self._share(right=False, statuses=("drop", "fix"))

    @property
    def specificity(self) -> float | None:
        """The share of the right labels that were neither dropped nor replaced."""
        return self._share(right=True, statuses=("keep", "open"))

    def _share(self, *, right: bool, statuses: tuple[str, ...]) -> float | None:
        all_ = sum(count for (is_right, _), count in self.truth.items() if is_right is right)
        return sum(self.truth[right, status] for status in statuses) / all_ if all_ else None

    def add(self, id_: str, verdict: Verdict) -> None:
        """Count one row."""
        self.counts[verdict["status"]] += 1
        self.by[verdict["by"]] += 1
        if "truth" in verdict:
            self.truth[verdict["truth"], verdict["status"]] += 1
        for each in verdict["reasons"]:
            count, examples = self.reasons.get(each["code"], (0, []))
            examples += [(id_, each["path"], each["message"])] if len(examples) < EXAMPLES else []
            self.reasons[each["code"]] = (count + 1, examples)


@dataclass(slots=True)
class _Work:
    """The work of one process: lines to items."""

    checker: Checker
    name: str
    answers: Mapping[str, Any]
    truth: str | None

    def __call__(self, lines: list[Line]) -> list[Item]:
        items = [Item(line.number, [], []) for line in lines]
        read = [(item, *pair) for line, item in zip(lines, items, strict=True) for pair in self._read(line, item.bad)]
        for item, sample, known in read:
            later = [other for _, other, _ in read if continues(other, sample)] if "goal" in sample else []
            verdict = self.checker.check(sample, later)
            if known is not None:
                verdict["truth"] = str(known).casefold() in _TRUE
            try:
                text = json.dumps({**sample, "verdict": verdict}, ensure_ascii=False)
                text.encode()
                item.rows.append((sample["id"], verdict, text))
            except ROW_ERRORS as error:
                item.bad.append(reason_of(error))
        return items

    def _read(self, line: Line, bad: list[str]) -> list[tuple[Sample, Any]]:
        """Return a line's samples, each with what is known of its truth; why there are none goes to `bad`."""
        try:
            row, where = line.read(), f"{self.name}:{line.number}"
            samples = read_row(row, name=where, source=where, answers=self.answers)
            return [(sample, row.get(self.truth)) for sample in samples]
        except ROW_ERRORS as error:
            bad.append(reason_of(error))
            return []

    def give_up(self, lines: list[Line]) -> list[Item]:
        """Return the items of lines that have killed a process."""
        return [Item(line.number, [], ["the process that checked it died, twice"]) for line in lines]


def _chunk(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Yield lines in chunks; rows that stand together and have one goal stay together."""
    for key, group in groupby(lines, _goal_key):
        while chunk := list(islice(group, LONGEST if key else CHUNK)):
            yield chunk


def _goal_key(line: Line) -> str:
    with suppress(*ROW_ERRORS):
        return goal_key(line.read()) if not isinstance(line.content, bytes) or b'"goal"' in line.content else ""
    return ""


def verify_samples(  # noqa: PLR0913 - every one is a choice of its own, by keyword
    source: str | Path | Iterable[Mapping[str, Any]],
    output: str | Path | None = None,
    *,
    toolkit: Toolkit | None = None,
    model: ModelsLike = None,
    workers: int = 1,
    answers: str | Path | None = None,
    to: str | None = None,
    truth: str | None = None,
    tell: Callable[[int], None] = lambda _: None,
) -> Summary:
    """Give each sample of a data set a verdict with reasons: keep, drop, fix or open.

    Args:
        source: A file of rows (JSON lines, `.gz`, JSON, Parquet), or the rows.
        output: The rows with their `verdict`; the same call goes on where it was stopped. Without one they
            are returned.
        toolkit: Tools whose contracts or functions make the calls of samples that have a state.
        model: The model of `label_judge`, and of a rehearsal's roles for fixes; `Models` by role.
        workers: Processes at once.
        answers: Of BFCL's rows, the file of answers.
        to: Another row shape: `openai`, `trl`, `dpo`, `sharegpt` or `nemo-gym`; only rows to train on are written.
        truth: A column that says which rows are right.
        tell: Called with the number of lines that are done.

    Raises:
        GeckoError: The source cannot be read, or nothing in it; the output cannot be written.
    """
    if output is None:
        with TemporaryDirectory() as folder:
            given: Any = {"toolkit": toolkit, "model": model, "workers": workers, "answers": answers, "to": to}
            summary = verify_samples(source, Path(folder) / "rows.jsonl", truth=truth, tell=tell, **given)
            summary.rows = [*read_rows(Path(folder) / "rows.jsonl")]
            return summary
    name, where = (Path(source).name, f"{source}:") if isinstance(source, str | Path) else ("row", "row ")
    models = Models.of(model) if model is not None else None
    checker = Checker(toolkit, sources=models is not None)
    work = _Work(checker, name, _read_answers(answers), truth)
    judge = Judge(models, checker) if models is not None else None
    setting = digest(
        [
            *map(_identify, (source, answers)),
            truth,
            describe_tools(toolkit),
            model if isinstance(model, str) else type(model).__name__,
        ]
    )
    counted = _Counted(where)
    with Journal(output, setting) as journal:
        for line in journal.lines():
            item = counted.take(Item.of(line))
            if judge:
                judge.asked += sum(was_asked(verdict) for _, verdict, _ in item.rows)
        left = (row for row in _open(source) if row.number > counted.last)
        for items in Workers(work, work.give_up, workers).run(_chunk(left)):
            for item in judge.decide(items) if judge else items:
                journal.write(counted.take(item).to_line())
                tell(item.number)
        if not counted.known:
            journal.drop()
            raise GeckoError(f"{name}: nothing could be read: {counted.describe_bad()}")
        texts = (text for line in journal.lines() for text in line.split("\t")[1:])
        rows: Iterator[Row] = (made for text in texts for made in FORMATS[to](json.loads(text))) if to else texts
        counted.summary.written = write_rows(output, rows)
        journal.drop()
    return counted.summary


def _open(source: str | Path | Iterable[Mapping[str, Any]]) -> Iterator[Line]:
    if isinstance(source, str | Path):
        return read_lines(source)
    return (Line(at, dict(row)) for at, row in enumerate(source, 1))


@dataclass(slots=True)
class _Counted:
    """What a run has come to so far; `where` is what a line's number follows in messages."""

    where: str
    last: int = 0
    summary: Summary = field(default_factory=Summary)
    known: set[str] = field(default_factory=set)

    def take(self, item: Item) -> Item:
        """Count an item, and return it without the rows whose id another row has."""
        rows, bad, self.last = [], list(item.bad), item.number
        for row in item.rows:
            if row[0] in self.known:
                bad.append(f"the id {row[0]} a second time")
                continue
            self.known.add(row[0])
            self.summary.add(row[0], row[1])
            rows.append(row)
        self.summary.bad += [Bad(f"{self.where}{item.number}", reason) for reason in bad]
        return Item(item.number, rows, bad)

    def describe_bad(self) -> str:
        """Return why the first lines could not be read."""
        return "; ".join(f"{each.where}: {each.reason}" for each in self.summary.bad[:EXAMPLES]) or "there are no rows"


def _read_answers(file: str | Path | None) -> dict[str, Any]:
    try:
        return {} if file is None else {str(row["id"]): row["ground_truth"] for row in read_rows(Path(file))}
    except ROW_ERRORS:
        raise GeckoError(f"{file}: expected BFCL's answers: rows of id and ground_truth") from None


def _identify(given: Any) -> Any:
    """Return what tells a file from another, or from itself once it is changed; of rows nothing does."""
    if isinstance(given, str | Path):
        return identify(Path(given))
    return None if given is None else time.time_ns()


def describe_tools(toolkit: Toolkit | None) -> list[Any]:
    """Return what tells tools from others where they answer calls."""
    return [[each.name, each.parameters, each.contract and each.contract.data] for each in toolkit or ()]
