"""Simulated tools compared with the real ones: BFCL's recorded calls, each in the state it was recorded in."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from gecko_graph.state import JsonObject

from ..bfcl.contracted import CLASSES, class_toolkit
from ..bfcl.differential import LONGEST, Start, Values, compare_random
from ..bfcl.fidelity import compared, is_kept_out, recorded_calls, simulated
from ..harness.figures import Case, Record, Table, share
from ..harness.options import EvalError, Options, read_jsonl
from ..harness.suite import Expectation, Suite, Summary, by_group

FILES = ("bfcl_multiturn_calls.jsonl.gz", "bfcl_multiturn_recorded_calls.jsonl.gz")
TASKS = "bfcl_multiturn_tasks.jsonl.gz"
KEPT_OUT, WRITTEN_WITH, RANDOM = "kept out", "written with", "random"
TITLES = {KEPT_OUT: "tasks kept out", WRITTEN_WITH: "tasks written with", RANDOM: "random calls"}
WANTED, WANTED_ERRORS = 0.99, 0.98


class Fidelity(Suite):
    """BFCL's recorded calls by contract compared with the real classes, call by call: outcome, result and state.

    A case is a recorded task: its ground truth, or the calls of a real model. Each call is made in a `World` in the
    state that it was recorded in. "Kept out" are tasks that were not looked at while the contracts were written.

    With `--random` a case is a sequence of random calls on a real class, compared with its contracts in the same
    states.
    """

    name = "fidelity"
    tools = "simulated"
    examples = (
        "",
        "--class TradingBot --class TicketAPI --differences 20",
        "--calls my-calls.jsonl",
        "--random 10000 --seed 1",
    )
    asides = ("differences",)
    asks = False

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--calls", type=Path, metavar="FILE", help="other recorded calls of the same form, as JSON lines (.gz)")
        add("--random", type=int, default=0, metavar="N", help="about N random calls instead of recorded ones")
        add("--class", dest="classes", action="append", metavar="NAME", help="only calls of this class; repeatable")
        add("--differences", type=int, default=10, metavar="N", help="differing calls to list, none kept out (10)")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._classes = options.own.classes or list(CLASSES)
        if unknown := set(self._classes) - set(CLASSES):
            raise EvalError(f"--class {min(unknown)}: expected one of {', '.join(CLASSES)}")

    def cases(self) -> Iterator[Case]:
        if self.options.own.random:
            yield from self._sequences()
            return
        for task in self._recorded():
            who, group = task.get("model", "truth"), KEPT_OUT if is_kept_out(task["id"]) else WRITTEN_WITH
            yield Case(f"{who}:{task['id']}", task, group=group, unit=task["id"])

    def _recorded(self) -> Iterator[Any]:
        given = self.options.own.calls
        for file in [given] if given else [self.options.dataset(name) for name in FILES]:
            yield from (task for task in read_jsonl(file) if set(self._classes) & set(task["classes"]))

    def _sequences(self) -> Iterator[Case]:
        self._values = Values.of(one for task in self._recorded() for one in recorded_calls(task))
        starts: dict[str, list[Start]] = {name: [] for name in self._classes}
        for task in read_jsonl(self.options.dataset(TASKS)):
            for name in set(task["involved_classes"]) & set(starts):
                starts[name].append(Start(name, task["id"], task["initial_config"].get(name, {})))
        for number in range(max(1, 2 * self.options.own.random // (LONGEST * len(starts)))):
            for name, some in starts.items():
                id_ = f"{self.options.seed}:{name}:{number}"
                yield Case(id_, Random(id_).choice(some), group=RANDOM)

    def run_case(self, case: Case) -> JsonObject:
        if case.group == RANDOM:
            made, ended = compare_random(case.data, seed=case.id, values=self._values)
            return {"calls": made, "leaks": 0, "ended": ended, "rungs": dict(Counter(call["rung"] for call in made))}
        made, hidden, leaks = [], JsonObject(), 0
        for one in recorded_calls(case.data):
            if one.kind in self._classes:
                got = simulated(class_toolkit(one.kind), one, hidden)
                hidden, leaks = got.hidden, leaks + one.has_leaked
                made.append(compared(one, got))
        return {"calls": made, "leaks": leaks, "rungs": dict(Counter(call["rung"] for call in made))}

    def summarise(self, records: Sequence[Record]) -> Summary:
        groups = by_group([record for record in records if record.done])
        parts = {name: [call for record in some for call in record.values["calls"]] for name, some in groups.items()}
        every = [call for calls in parts.values() for call in calls]
        tables = [
            *(by_class(f"Simulated beside real: {TITLES[name]}", calls) for name, calls in sorted(parts.items())),
            by_key("By rung", "rung", every),
            by_key("By method", "tool", every),
        ]
        lines = [
            *broken_documents(every),
            *self._notes(records, [call for name in (WRITTEN_WITH, RANDOM) for call in parts.get(name, [])]),
        ]
        return Summary(tables, list(expected(parts.get(KEPT_OUT, []))), lines)

    def _notes(self, records: Sequence[Record], shown: Sequence[JsonObject]) -> Iterator[str]:
        done = [record for record in records if record.done]
        differing = Counter(call["difference"] for call in shown if call["difference"])
        yield from (f"{n} times: {text}" for text, n in differing.most_common(self.options.own.differences))
        if ended := sum(record.values.get("ended", 0) for record in done):
            yield f"{ended} sequences ended in a state that is no JSON: a folder that holds itself"
        if leaks := sum(record.values["leaks"] for record in done):
            yield f"{leaks} recorded tweets held what other tasks had put into a shared default: taken out"


def broken_documents(calls: Sequence[JsonObject]) -> Iterator[str]:
    """Yield notes on calls that break their documents, and on exceptions."""
    wide = [call for call in calls if call["wide"] or call["rung"] == "validator"]
    taken = sum(not call["fails"] for call in wide)
    yield f"{len(wide)} calls break their documents (a rehearsal's validator refuses them); the real tools take {taken}"
    raised = sum(call["raised"] for call in calls)
    yield f"{raised} of the real errors are exceptions, for which any error will do"


def by_class(title: str, calls: Sequence[JsonObject]) -> Table:
    """Return agreement by class, and how well failures are predicted."""
    heads = ["class", "calls", "of them errors", "all the same", "errors all the same", "outcome", "result", "state"]
    table = Table(title, [*heads, "'fails' precision", "'fails' recall"])
    groups = [(name, [call for call in calls if call["class"] == name]) for name in CLASSES]
    for name, some in [*groups, ("all", calls)]:
        if some:
            failed, foreseen = ([call for call in some if call[key]] for key in ("fails", "ours_fails"))
            words = [_share(some, key) for key in ("outcome", "result", "state")]
            both = [_share(foreseen, "fails"), _share(failed, "ours_fails")]
            table.add(name, len(some), len(failed), _share(some, "same"), _share(failed, "same"), *words, *both)
    return table


def by_key(title: str, key: str, calls: Sequence[JsonObject]) -> Table:
    table = Table(title, [key, "class", "calls", "of them errors", "all the same", "outcome", "result", "state"])
    for kind, word in sorted({(call["class"], call[key]) for call in calls}):
        some = [call for call in calls if (call["class"], call[key]) == (kind, word)]
        words = [_share(some, one) for one in ("same", "outcome", "result", "state")]
        table.add(word, kind, len(some), sum(call["fails"] for call in some), *words)
    return table


def expected(calls: Sequence[JsonObject]) -> Iterator[Expectation]:
    for name in CLASSES:
        some = [call for call in calls if call["class"] == name]
        failed = [call for call in some if call["fails"]]
        for word, of, wanted in (("calls", some, WANTED), ("real errors", failed, WANTED_ERRORS)):
            if of:
                text = f"{name}: at least {wanted:.0%} of the {word} of tasks kept out come to the same"
                yield Expectation(text, sum(call["same"] for call in of) >= wanted * len(of))


def _share(calls: Sequence[JsonObject], key: str) -> Any:
    rungs = dict(Counter(call["rung"] for call in calls))
    return share(sum(bool(call[key]) for call in calls), len(calls), tools="simulated", rungs=rungs)


SUITE = Fidelity
