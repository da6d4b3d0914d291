"""What a run of single-turn tasks came to: official scores, what rehearsal changed, what the score files hold."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gecko_graph.state import Json

from ..harness.figures import Bars, Cell, Figure, Measured, Table, rate, share
from ..harness.options import Options
from ..harness.suite import Expectation, Record, Summary, by_group
from .single_checker import Checker
from .single_results import OURS, folder_name, write_results

UNANSWERABLE: Mapping[str, str] = {
    "live_simple_106-63-0": "requires arguments for which no value is right",
    "live_simple_112-68-0": "requires arguments for which no value is right",
    "live_multiple_862-181-3": "wants an argument that its tool does not have",
    "live_multiple_964-207-0": "wants an argument that its tool does not have, and requires another",
}
"""Tasks of which the official evaluator takes no answer at all, and why."""

SHOWN = 60
"""Rows of a list that is only there to be read."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Our verdicts beside those in the official score files."""

    ours: int
    official: int
    total: int
    different: Sequence[str]


def summary_of(records: Sequence[Record], *, options: Options, checker: Checker) -> Summary:
    """Return tables, plot and expectations."""
    done = [record for record in records if record.done]
    kind = options.planner.kind
    agreed = agreement(done, options=options, checker=checker)
    figures: list[Figure] = [categories(records), bars(records), *by_model(records), *judges(done), *errors(done)]
    figures += [lost(done)] if any(_is_lost(record) for record in done) else []
    expected = [
        Expectation(
            f"the official evaluator finds the same results in the files valid: {agreed.official} of {agreed.total}, "
            f"ours {agreed.ours}" + "".join(f"; {each}" for each in agreed.different[:5]),
            agreed.ours == agreed.official and not agreed.different,
        )
    ]
    expected += _of_truth(done) if kind == "ground-truth" else _of_recorded(done)
    return Summary(figures, expected, list(notes(records, options)))


def is_valid(record: Record) -> bool:
    """Return True if the official evaluator takes the rehearsed plan."""
    return bool(record.values["valid"])


def was_valid(record: Record) -> bool:
    """Return True if the evaluator takes what was planned as it stood."""
    return bool(record.values["planned"])


def _as_planned(records: Sequence[Record]) -> Measured | None:
    done = [record for record in records if record.done and "planned" in record.values]
    return share(sum(map(was_valid, done)), len(records), tools="none") if done else None


def _at_first(records: Sequence[Record]) -> Measured | None:
    if not any("first" in record.values for record in records):
        return None
    return rate(records, lambda record: bool(record.values.get("first", record.values["valid"])))


def categories(records: Sequence[Record]) -> Table:
    """Return official validity by category."""
    table = Table(
        "BFCL single-turn: valid by the official evaluator",
        ["category", "rehearsed", "first attempt", "as planned", "with refused calls", "judged by a model"],
        note="First attempt: its plan, before any feedback; empty where no task was tried again. As planned: "
        "the words that were written down, scored without a rehearsal. With refused calls: answers of which the "
        "validator refused a call. Judged by a model: else without a judge, and the only attempt's plan is the answer.",
    )
    for name, some in [*by_group(records).items(), ("all", records)]:
        done = [record for record in some if record.done]
        broken = sum(bool(record.values["refused"]) for record in done)
        judged = sum(record.values["judged"] == "model" for record in done)
        table.add(name, rate(some, is_valid), _at_first(some), _as_planned(some), broken, judged)
    return table


def bars(records: Sequence[Record]) -> Bars:
    """Return the same as a plot."""
    groups = by_group(records)
    series = {"rehearsed": [rate(some, is_valid) for some in groups.values()]}
    planned = [_as_planned(some) for some in groups.values()]
    return Bars("Valid by category", list(groups), {**series, **({"as planned": planned} if any(planned) else {})})


def by_model(records: Sequence[Record]) -> Iterator[Table]:
    """Yield, with recorded calls, the same by model, and whether the verdict is the one that was recorded."""
    if not records or "model" not in records[0].facts:
        return
    table = Table(
        "By recorded model",
        ["model", "rehearsed", "as planned", "verdict as recorded", "made valid", "made invalid"],
        note="Made valid, made invalid: answers on which the verdict as planned and as rehearsed differs.",
    )
    for name, some in [*by_group(records, key="model").items(), ("all", records)]:
        done = [record for record in some if record.done]
        same = _count(done, _is_as_recorded)
        made, lost = _count(done, lambda each: is_valid(each) > was_valid(each)), _count(done, _is_lost)
        table.add(name, rate(some, is_valid), _as_planned(some), share(same, len(done), tools="none"), made, lost)
    yield table


def judges(done: Sequence[Record]) -> Iterator[Table]:
    """Yield, where a judge was used, its verdicts and how much of them is officially valid."""
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in done:
        groups[record.values["judged"], record.values.get("verdict", "-")].append(record)
    if {who for who, _ in groups} <= {"nobody"}:
        return
    table = Table("What the judge said", ["judged by", "verdict", "answers", "officially valid"])
    for (who, word), some in sorted(groups.items()):
        table.add(who, word, len(some), rate(some, is_valid))
    yield table


def errors(done: Sequence[Record]) -> Iterator[Table]:
    """Yield what the official evaluator calls wrong."""
    counts = Counter(record.values["error_type"] for record in done if not is_valid(record))
    if not counts:
        return
    planned = Counter(record.values.get("planned_error", "") for record in done)
    table = Table("What is wrong, in the official evaluator's words", ["error", "rehearsed", "as planned"])
    for name in sorted({*counts, *planned} - {""}, key=lambda name: (-counts[name], name)):
        table.add(name, counts[name], planned[name])
    yield table


def lost(done: Sequence[Record]) -> Table:
    """Yield answers that were valid as planned and are not as rehearsed, with the complaint that did it."""
    groups: dict[tuple[str, str], int] = Counter()
    for record in filter(_is_lost, done):
        why = next(iter(record.values["refused"]), "no call was refused")
        groups[str(record.facts.get("task", record.id)), why] += 1
    table = Table(
        "Officially valid answers that rehearsal lost",
        ["task", "answers", "the call was refused for"],
        note="The benchmark takes the answer, and the tool's own schema forbids it: a value that its enum does not "
        "list, null, another type."
        + (f" {len(groups) - SHOWN} more are in the journal." if len(groups) > SHOWN else ""),
    )
    for (task, why), count in list(groups.items())[:SHOWN]:
        row: tuple[Cell, ...] = (task, count, why)
        table.add(*row)
    return table


def agreement(done: Sequence[Record], *, options: Options, checker: Checker) -> Agreement:
    """Write all results in the official format, let the official evaluator score the files, and compare."""
    folder = options.out / "official"
    ours = official = total = 0
    different: list[str] = []
    for model, some in _by_name(done, options).items():
        results: dict[str, dict[str, Json]] = defaultdict(dict)
        wrong: dict[str, set[str]] = defaultdict(set)
        for record in some:
            task = str(record.facts.get("task", record.id))
            results[record.group][task] = record.values["result"]
            if not is_valid(record):
                wrong[record.group].add(task)
        write_results(folder / "result", model, results)
        scored = checker.score(model, list(results), results=folder / "result", scores=folder / "score")
        for category, score in scored.items():
            ours += len(results[category]) - len(wrong[category])
            official += score.correct
            total += score.total
            different += [f"{model} {task}" for task in sorted(score.invalid ^ wrong[category])]
    return Agreement(ours, official, total, different)


def _by_name(done: Sequence[Record], options: Options) -> dict[str, list[Record]]:
    planner = "" if options.planner.kind == "recorded" else str(options.planner)
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in done:
        groups[folder_name(OURS, planner, str(record.facts.get("model", "")))].append(record)
    return groups


def notes(records: Sequence[Record], options: Options) -> Iterator[str]:
    """Yield what the tables do not show."""
    done = [record for record in records if record.done]
    yield f"result and score files in the official format: {options.out / 'official'}"
    if _count(done, lambda record: record.values["judged"] == "nobody"):
        yield (
            "where no judge was used, no model was given for checklist and judge: the verdict is failed, there is no "
            "retry, and the attempt's plan is scored as it is"
        )
    if without := _count(done, lambda record: bool(record.values.get("without_tools"))):
        yield f"{without} tasks have no tools at all: nothing was asked, and no call is the right answer"
    for record in done:
        if record.id in UNANSWERABLE and not was_valid_if_known(record):
            yield f"{record.id}: the official evaluator takes no answer, for it {UNANSWERABLE[record.id]}"
    if missing := len(records) - len(done):
        yield f"{missing} cases that are not done count as misses, and stand in no result file"


def was_valid_if_known(record: Record) -> bool:
    """Return True if the words were valid as planned, False too where they were not written down."""
    return bool(record.values.get("planned"))


def _of_truth(done: Sequence[Record]) -> list[Expectation]:
    wrong = [record.id for record in done if not was_valid(record) and record.id not in UNANSWERABLE] if done else []
    missed = [
        record.id for record in done if was_valid(record) and not is_valid(record) and not record.values["refused"]
    ]
    return [
        Expectation("every right answer, of tasks that have one, is officially valid" + _named(wrong), not wrong),
        Expectation(
            "and is so after the rehearsal, where the tool's own schema allows it" + _named(missed), not missed
        ),
    ]


def _of_recorded(done: Sequence[Record]) -> list[Expectation]:
    known = [record for record in done if record.facts.get("recorded") is not None and "planned" in record.values]
    if not known:
        return []
    same = _count(known, _is_as_recorded)
    text = f"the verdict on recorded calls is the one that was recorded: {same} of {len(known)}"
    return [Expectation(text, same == len(known))]


def _is_as_recorded(record: Record) -> bool:
    return was_valid(record) == record.facts.get("recorded")


def _is_lost(record: Record) -> bool:
    return bool(record.values.get("planned")) and not is_valid(record)


def _count(records: Sequence[Record], of: Callable[[Record], bool]) -> int:
    return sum(map(of, records))


def _named(ids: Sequence[str]) -> str:
    return f" (not: {', '.join(ids[:5])}, {len(ids)} in all)" if ids else ""
