"""Verify the rows of a data set by rules, a world and a model, in shards; a stopped run can be resumed."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import GeckoError
from ..models.factory import Models, ModelsLike
from ..state import JsonObject
from ..tools import Toolkit
from ..values.digest import digest
from ..values.mapping import Map, Work
from ..values.rows import FileRow, find_files, read_lines
from .checks import Checker, Code, SampleVerdict
from .files import Row, identify, read_rows
from .formats import FORMATS
from .judging import Item, Judge
from .samples import Bad, Sample, continues, goal_key
from .shapes import ROW_ERRORS, read_row, reason_of
from .shards import Shards, forget, read_manifest

CHUNK, ASKED, LONGEST = 64, 16, 200
"""Rows that are given to a worker at once, of which a model is asked at once, and at most of one conversation."""
SHARD = 5_000
"""Rows of a shard if the output is one file."""
EXAMPLES = 3
_TRUE = ("true", "1", "1.0", "yes", "right", "correct", "valid", "keep")


@dataclass(slots=True)
class Summary:
    """The result for a data set.

    Args:
        counts: Number of rows by verdict.
        by: Number of rows by decider.
        reasons: For each code its number, and the first examples: row id, JSON Pointer, message.
        bad: Unreadable rows.
        rows: The rows with verdicts, if there is no output file.
        written: Number of rows in the output.
        truth: Number of rows with known truth, by (label is right, verdict).
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
        """The share of wrong labels that were dropped or replaced."""
        return self._share(right=False, statuses=("drop", "fix"))

    @property
    def specificity(self) -> float | None:
        """The share of right labels that were neither dropped nor replaced."""
        return self._share(right=True, statuses=("keep", "open"))

    def _share(self, *, right: bool, statuses: tuple[str, ...]) -> float | None:
        all_ = sum(count for (is_right, _), count in self.truth.items() if is_right is right)
        return sum(self.truth[right, status] for status in statuses) / all_ if all_ else None

    def add(self, id_: str, verdict: SampleVerdict) -> None:
        self.counts[verdict["status"]] += 1
        self.by[verdict["by"]] += 1
        if "truth" in verdict:
            self.truth[verdict["truth"], verdict["status"]] += 1
        for each in verdict["reasons"]:
            self._add_reason(each["code"], 1, [(id_, each["path"], each["message"])])

    def _add_reason(self, code: Code, count: int, examples: Iterable[tuple[str, str, str]]) -> None:
        known, first = self.reasons.get(code, (0, []))
        self.reasons[code] = (known + count, [*first, *examples][:EXAMPLES])

    def to_json(self) -> JsonObject:
        """Return the counts of a shard as JSON."""
        truth = [[*key, count] for key, count in self.truth.items()]
        return {"rows": self.written, "verdicts": self.counts, "by": self.by, "reasons": self.reasons,
                "bad": self.bad, "truth": truth}  # fmt: skip

    def take(self, shards: Iterable[JsonObject]) -> Summary:
        """Add the counts of shards; return self."""
        for counts in shards:
            self.written += counts["rows"]
            self.counts.update(counts["verdicts"])
            self.by.update(counts["by"])
            self.bad += (Bad(*each) for each in counts["bad"])
            self.truth.update({(is_right, status): count for is_right, status, count in counts["truth"]})
            for code, (count, examples) in counts["reasons"].items():
                self._add_reason(code, count, (tuple(each) for each in examples))
        return self


class Chunk(NamedTuple):
    """Consecutive lines that are checked together; `at` is the first one's number among all lines, from 1."""

    at: int
    name: str
    where: str
    lines: list[FileRow]


@dataclass
class Verify(Work[Chunk, list[Item]]):
    """The work: chunks of lines to items."""

    toolkit: Toolkit | None
    models: Models | None
    answers: str | Path | None
    truth: str | None

    def begin(self) -> Callable[[Chunk], list[Item]]:
        """Build the checker and the judge."""
        checker = Checker(self.toolkit, sources=self.models is not None)
        judge = Judge(self.models, checker) if self.models is not None else None
        answers = _read_answers(self.answers)

        def do(chunk: Chunk) -> list[Item]:
            items = self._check(chunk, checker, answers)
            return judge.decide(items) if judge else items

        return do

    def split(self, item: Chunk) -> list[Chunk]:
        return [item._replace(at=item.at + at, lines=[line]) for at, line in enumerate(item.lines)]

    def lost(self, item: Chunk) -> list[Item]:
        """Return a line that has killed two worker processes as unusable."""
        return [each._replace(bad=["the process that checked it died, twice"]) for each in _items(item)]

    def _check(self, chunk: Chunk, checker: Checker, answers: Mapping[str, Any]) -> list[Item]:
        items = _items(chunk)
        pairs = zip(chunk.lines, items, strict=True)
        read = [(item, *pair) for line, item in pairs for pair in self._read(chunk.name, line, answers, item.bad)]
        for item, sample, known in read:
            later = [other for _, other, _ in read if continues(other, sample)] if "goal" in sample else []
            verdict = checker.check(sample, later)
            if known is not None:
                verdict["truth"] = str(known).casefold() in _TRUE
            try:
                text = json.dumps({**sample, "verdict": verdict}, ensure_ascii=False)
                text.encode()
                item.rows.append((sample["id"], verdict, text))
            except ROW_ERRORS as error:
                item.bad.append(reason_of(error))
        return items

    def _read(self, name: str, line: FileRow, answers: Mapping[str, Any], bad: list[str]) -> list[tuple[Sample, Any]]:
        """Return a line's samples with their known truth; the reason of an unusable line is appended to `bad`."""
        try:
            row, where = line.read(), f"{name}:{line.number}"
            samples = read_row(row, name=where, source=where, answers=answers)
            return [(sample, row.get(self.truth)) for sample in samples]
        except ROW_ERRORS as error:
            bad.append(reason_of(error))
            return []


def _items(chunk: Chunk) -> list[Item]:
    return [Item(chunk.at + at, f"{chunk.where}{line.number}", [], []) for at, line in enumerate(chunk.lines)]


def _chunks(files: Iterable[tuple[str, str, Iterable[FileRow]]], most: int, size: int) -> Iterator[Chunk]:
    """Yield lines in chunks of so many at most, in one shard; rows in a row that have one goal stay together."""
    at = 1
    for name, where, lines in files:
        for key, group in groupby(lines, _goal_key):
            while chunk := list(islice(group, LONGEST if key else min(most, size - (at - 1) % size))):
                yield Chunk(at, name, where, chunk)
                at += len(chunk)


def _goal_key(line: FileRow) -> str:
    if not isinstance(line.content, bytes) or b'"goal"' in line.content:
        with suppress(*ROW_ERRORS):
            return goal_key(line.read())
    return ""


def verify_samples(  # noqa: PLR0913 - every one is a choice of its own, by keyword
    source: str | Path | Iterable[Mapping[str, Any]],
    output: str | Path | None = None,
    *,
    toolkit: Toolkit | None = None,
    model: ModelsLike = None,
    map: Map = map,
    shards: int | None = None,
    answers: str | Path | None = None,
    to: str | None = None,
    truth: str | None = None,
    tell: Callable[[int], None] = lambda _: None,
) -> Summary:
    """Give each sample of a data set a verdict with reasons: keep, drop, fix or open.

    Args:
        source: Rows, or a file of rows (JSON lines, `.gz`, JSON, Parquet), a folder or a glob of such files.
        output: The file of rows with their `verdict`; the same call resumes a stopped run. Without it the rows are
            returned.
        toolkit: Tools whose contracts or functions execute the calls of samples with a state.
        model: The model of `label_judge`, and of a rehearsal's roles for fixes; `Models` by role.
        map: The `map` that runs the work: `processes(n)`, `threads(n)`, `on_ray()` (`gecko_graph.values.mapping`).
        shards: Write so many files and a manifest to the folder `output`.
        answers: The file of answers for rows of BFCL.
        to: Output format: `openai`, `trl`, `dpo`, `sharegpt` or `nemo-gym`, with trainable rows only.
        truth: A column with the true label.
        tell: Called with the number of finished lines.

    Raises:
        GeckoError: Nothing in the source can be read, or the output cannot be written.
    """
    files = find_files(source) if isinstance(source, str | Path) else []
    lines = [(file.name, f"{file}:", read_lines(file)) for file in files]
    if not isinstance(source, str | Path):
        lines = [("row", "row ", (FileRow(at, dict(row)) for at, row in enumerate(source, 1)))]
    size = SHARD if shards is None else max(1, -(-sum(1 for file in files for _ in read_lines(file)) // shards))
    chunks = _chunks(lines, CHUNK if model is None else ASKED, size)
    work = Verify(toolkit, None if model is None else Models.of(model), answers, truth)
    form = FORMATS[to] if to else None
    if output is None:
        shard = _Shard(lambda _: set(), form)
        made = shard.take(map(work, chunks), tell)
        shard.summary.rows = [json.loads(row) if isinstance(row, str) else dict(row) for row in made]
        shard.summary.written = len(shard.summary.rows)
        return _require_rows(shard.summary, source)
    marks = [[file.name, identify(file)] for file in files] or time.time_ns()  # rows in memory: unique
    about = [model if isinstance(model, str) else type(model).__name__, answers and identify(Path(answers))]
    setting = digest([marks, truth, to, shards, toolkit and toolkit.to_openapi(), about])
    if shards and (known := read_manifest(Path(output), setting)) is not None:
        return Summary().take(known)
    with Shards(output, setting, shards) as done:
        work = replace(work, models=work.models and work.models.caching(done.replies))
        left = (chunk for chunk in chunks if (chunk.at - 1) // size not in done.done)
        for at, some in groupby(map(work, left), lambda items: (items[0].at - 1) // size):
            shard = _Shard(done.known, form)
            done.write(at, shard.take(some, tell), shard.count, shard.ids)
        summary = Summary().take(done.done[at] for at in sorted(done.done))
        if summary.counts:
            done.save()
    forget(Path(output))
    return _require_rows(summary, source)


def _require_rows(summary: Summary, source: Any) -> Summary:
    """Return the summary. Raises GeckoError if no row could be read."""
    if not summary.counts:
        why = "; ".join(f"{each.where}: {each.reason}" for each in summary.bad[:EXAMPLES]) or "no rows"
        name = Path(source).name if isinstance(source, str | Path) else "row"
        raise GeckoError(f"{name}: nothing could be read: {why}")
    return summary


class _Shard:
    """The rows of one shard, counted while they are written; rows with a duplicate id are left out."""

    def __init__(self, known: Callable[[list[str]], set[str]], form: Callable[[Any], Iterator[Row]] | None) -> None:
        self._known, self._form, self.summary, self.ids = known, form, Summary(), dict[str, None]()

    def take(self, results: Iterable[list[Item]], tell: Callable[[int], None]) -> Iterator[Row]:
        found = ((items, self._known([id_ for item in items for id_, _, _ in item.rows])) for items in results)
        for item, known in ((item, known) for items, known in found for item in items):
            self.summary.bad += (Bad(item.where, reason) for reason in item.bad)
            for id_, verdict, text in item.rows:
                if id_ in self.ids or id_ in known:
                    self.summary.bad.append(Bad(item.where, f"duplicate id {id_}"))
                    continue
                self.ids[id_] = None
                self.summary.add(id_, verdict)
                yield from self._form(json.loads(text)) if self._form else (text,)
            tell(item.at)

    def count(self, written: int) -> JsonObject:
        self.summary.written = written
        return self.summary.to_json()


def _read_answers(file: str | Path | None) -> dict[str, Any]:
    try:
        return {} if file is None else {str(row["id"]): row["ground_truth"] for row in read_rows(Path(file))}
    except ROW_ERRORS:
        raise GeckoError(f"{file}: expected BFCL's answers: rows of id and ground_truth") from None
