"""What a suite is: named cases, a function that runs one, and a summary of the records. The runner does the rest.

A short one is `evals/suites/wild.py`; a line in `SUITES` of `evals/__main__.py` makes it a command. A suite need not
care for choosing cases (`--only`, `--limit`, `--seed`), concurrency, progress, the file of cases, the replies of models
after a stop, failures (an exception in `run_case` makes a record with the status "failed", its reason and no values;
`rate` counts it as a miss), the report, and what each table must say: n, interval, planner, models, date, commit,
rungs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import Action, ArgumentParser
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from gecko_graph.models.usage import add_usage
from gecko_graph.state import JsonObject, Rehearsal, Usage

from .figures import Case, Record, Table, Tools
from .options import Options

REFUSALS = "refusals"
"""The key of a record's values with the reasons why a model's endpoint refused some of its questions."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A condition on the whole run; if it is not met, the exit code is 1."""

    text: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a run; notes say what was skipped, and explain differences."""

    figures: Sequence[Table]
    expectations: Sequence[Expectation] = ()
    notes: Sequence[str] = ()


class Suite(ABC):
    """A measurement, created once per run with its options.

    `__init__` may read small data and build what all cases share; it and `cases` raise EvalError for a user's mistake.

    Attributes:
        name: The name in the command.
        tools: The kind of tools that answer, unless a case has its own.
        planner: The default planner: `ground-truth`, or None for a suite without a planner.
        planners: The supported kinds of planner: `ground-truth`, `recorded`, `model`.
        examples: Example options for `--help`.
        asks: Whether models may be asked; if False there are no model options.
        asides: Names of own options that do not change a record, such as how many rows to list.
        failures: Share of cases that may fail before the exit code is 1.
        at_once: Default number of cases in parallel; None means 8 with a live model, else 1.
    """

    name: ClassVar[str]
    tools: ClassVar[Tools] = "none"
    planner: ClassVar[str | None] = None
    planners: ClassVar[Sequence[str]] = ("ground-truth", "recorded", "model")
    examples: ClassVar[Sequence[str]] = ()
    asks: ClassVar[bool] = True
    asides: ClassVar[Sequence[str]] = ()
    failures: ClassVar[float] = 0.0
    at_once: ClassVar[int | None] = None

    def __init__(self, options: Options) -> None:
        self.options = options

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add the suite's own options, which are read as `self.options.own.<name>`; by default none."""
        return

    @classmethod
    def own_options(cls) -> Sequence[Action]:
        parser = ArgumentParser(add_help=False)
        cls.add_options(parser)
        return list(parser._actions)

    @abstractmethod
    def cases(self) -> Iterable[Case]:
        """Yield all cases, lazily, in a fixed order."""

    @abstractmethod
    def run_case(self, case: Case) -> JsonObject | Awaitable[JsonObject]:
        """Run one case and return its result as plain JSON; an exception makes it a failed case."""

    @abstractmethod
    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return tables and expectations from the records, which are in the order of the cases."""

    def tell(self, record: Record) -> str:
        """Return one line on a record for the report's list of cases."""
        pairs = [(key, value) for key, value in record.values.items() if isinstance(value, str | int | float)]
        return ", ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in pairs)


def by_group(records: Iterable[Record], *, key: str = "") -> Mapping[str, list[Record]]:
    """Group records by their group, or by one of their facts, in order of appearance."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(str(record.facts[key]) if key else record.group, []).append(record)
    return groups


def with_all(records: Sequence[Record]) -> Iterator[tuple[str, Sequence[Record]]]:
    """Yield records by group, then all of them if there are several groups."""
    groups = by_group(records)
    yield from groups.items()
    if len(groups) > 1:
        yield "all", records


def rehearsed(*turns: Rehearsal) -> JsonObject:
    """Return the part of a record that describes a rehearsal's turns.

    Returns:
        `verdict` and `score` (of the last turn), `verdicts`, `attempts` (all), `tool_calls` (answered ones, of all
        attempts), `complaints`, `rungs` (answers by rung) and `usage` (by role).
    """
    attempts = [attempt for turn in turns for attempt in turn["attempts"]]
    steps = [step for attempt in attempts for step in attempt["steps"]]
    answered = [step["outcome"] for step in steps if "outcome" in step]
    last = turns[-1]["verdict"]
    return {
        "verdict": last["status"],
        "verdicts": [turn["verdict"]["status"] for turn in turns],
        "score": last["score"],
        "attempts": len(attempts),
        "tool_calls": len(answered),
        "complaints": sum(len(step.get("complaints", [])) for step in steps),
        "rungs": dict(Counter(outcome["rung"] for outcome in answered)),
        "usage": add_all(turn["usage"] for turn in turns),
    }


def add_all(usages: Iterable[Usage]) -> Usage:
    whole: Usage = {}
    for usage in usages:
        whole = add_usage(whole, usage)
    return whole
