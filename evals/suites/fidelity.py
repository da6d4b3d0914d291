"""Simulated tools beside the real ones, call by call: BFCL's recorded calls, each in the state it was recorded in."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from gecko_graph.state import JsonObject
from gecko_graph.values.digest import digest

from ..bfcl.contracted import CLASSES, class_toolkit
from ..bfcl.differential import LONGEST, Start, Values, compare_random
from ..bfcl.fidelity import compared, is_kept_out, recorded_calls, simulated
from ..bfcl.mutants import Seen, find_mutants, random_calls
from ..harness.datasets import read_jsonl
from ..harness.figures import Table, share
from ..harness.options import Options
from ..harness.suite import Case, EvalError, Expectation, Record, Suite, Summary, by_group

FILES = ("bfcl_multiturn_calls.jsonl.gz", "bfcl_multiturn_recorded_calls.jsonl.gz")
TASKS = "bfcl_multiturn_tasks.jsonl.gz"
KEPT_OUT, WRITTEN_WITH, RANDOM, MUTANTS = "kept out", "written with", "random", "mutants"
TITLES = {KEPT_OUT: "tasks kept out", WRITTEN_WITH: "tasks written with", RANDOM: "random calls"}
MUTANT_CALLS = 3000
"""Random calls of a class that look for its mutants."""
WANTED, WANTED_ERRORS = 0.99, 0.98


class Fidelity(Suite):
    """BFCL's recorded calls by contract beside the real classes, call by call: outcome, result and state.

    A case is a recorded task: its ground truth, or what a real model called. Each call is answered in a `World` in the
    state that it was recorded in. "Kept out" are tasks that were not looked at while the contracts were written.

    With `--random` a case is a sequence of random calls on a real class, beside its contracts in the same states.
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
        """Add other calls, the classes, and how much is listed."""
        add = parser.add_argument
        add("--calls", type=Path, metavar="FILE", help="other recorded calls of the same form, as JSON lines (.gz)")
        add("--random", type=int, default=0, metavar="N", help="about N random calls in place of recorded ones")
        add("--mutants", action="store_true", help="make the contracts wrong in one place at a time: is it found?")
        add("--class", dest="classes", action="append", metavar="NAME", help="only calls of this class; repeatable")
        add("--differences", type=int, default=10, metavar="N", help="differing calls to list, none kept out (10)")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._classes = options.own.classes or list(CLASSES)
        if unknown := set(self._classes) - set(CLASSES):
            raise EvalError(f"--class {min(unknown)}: expected one of {', '.join(CLASSES)}")

    def cases(self) -> Iterator[Case]:
        """Yield a case per task and who called; or per random sequence."""
        if self.options.own.mutants:
            yield from (Case(name, name, group=MUTANTS) for name in self._classes)
            return
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
        self._values, starts = self._known_values(), self._starts(self._classes)
        for number in range(max(1, 2 * self.options.own.random // (LONGEST * len(starts)))):
            for name, some in starts.items():
                id_ = f"{self.options.seed}:{name}:{number}"
                yield Case(id_, Random(id_).choice(some), group=RANDOM)

    def _known_values(self) -> Values:
        return Values.of(one for task in self._recorded() for one in recorded_calls(task))

    def _starts(self, names: Sequence[str]) -> dict[str, list[Start]]:
        starts: dict[str, list[Start]] = {name: [] for name in names}
        for task in read_jsonl(self.options.dataset(TASKS)):
            for name in set(task["involved_classes"]) & set(starts):
                starts[name].append(Start(name, task["id"], task["initial_config"].get(name, {})))
        return starts

    def _mutants(self, kind: str) -> JsonObject:
        """Return a class's wrong contracts, each with whether recorded calls and random ones find it."""
        recorded: dict[str, Seen] = {}
        for task in self._recorded():
            hidden = JsonObject()
            for one in recorded_calls(task):
                if one.kind == kind:
                    seen = Seen(one, hidden)
                    recorded.setdefault(digest([one.name, one.args, one.before.get(kind), hidden]), seen)
                    hidden = simulated(class_toolkit(kind), one, hidden).hidden
        drawn = random_calls(
            self._starts([kind])[kind],
            seed=f"{self.options.seed}:{kind}",
            values=self._known_values(),
            most=MUTANT_CALLS,
        )
        return {"mutants": find_mutants(kind, list(recorded.values()), drawn), "calls": [], "leaks": 0}

    def run_case(self, case: Case) -> JsonObject:
        """Answer its calls."""
        if case.group == MUTANTS:
            return self._mutants(case.data)
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

    def tell(self, record: Record) -> str:
        """Return how many of its calls are the same."""
        return f"{sum(call['same'] for call in record.values['calls'])} of {len(record.values['calls'])} calls the same"

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return agreement by class, by rung and by method, and the differing calls."""
        if self.options.own.mutants:
            return mutants_summary(records, self.options.own.differences)
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
        done, most = [record for record in records if record.done], self.options.own.differences
        if self.options.own.random:
            yield from minimal_examples(shown, most)
            ended = sum(record.values["ended"] for record in done)
            yield f"{ended} sequences ended in a state that is no JSON: a folder that holds itself"
            return
        differing = Counter(call["difference"] for call in shown if call["difference"])
        yield from (f"{n} times: {text}" for text, n in differing.most_common(most))
        if leaks := sum(record.values["leaks"] for record in done):
            yield f"{leaks} recorded tweets held what other tasks had put into a shared default: taken out"


def broken_documents(calls: Sequence[JsonObject]) -> Iterator[str]:
    """Yield what the comparison leaves open: calls that break their documents, and exceptions."""
    wide = [call for call in calls if call["wide"] or call["rung"] == "validator"]
    taken = sum(not call["fails"] for call in wide)
    yield f"{len(wide)} calls break their documents (a rehearsal's validator refuses them); the real tools take {taken}"
    raised = sum(call["raised"] for call in calls)
    yield f"{raised} of the real errors are exceptions, for which any error will do"


def mutants_summary(records: Sequence[Record], most: int) -> Summary:
    """Return how many wrong contracts are found, by class, and those that are not."""
    table = Table("Contracts wrong in one place", ["class", "found", "by recorded calls", "by random calls"])
    rows = [{"class": record.id, **row} for record in records if record.done for row in record.values["mutants"]]
    for name in [*dict.fromkeys(row["class"] for row in rows), "all"]:
        some = [row for row in rows if name in (row["class"], "all")]
        counts = [sum(map(_found, some)), *(sum(row[word] for row in some) for word in ("recorded", "random"))]
        table.add(name, *(share(count, len(some), tools="simulated") for count in counts))
    lost = [f"{row['class']}: {row['tool']}: {row['mutant']}" for row in rows if not _found(row)]
    return Summary([table], notes=[f"{len(lost)} are not found", *lost[:most]])


def _found(row: JsonObject) -> bool:
    return bool(row["recorded"] or row["random"])


def minimal_examples(calls: Sequence[JsonObject], most: int) -> Iterator[str]:
    """Yield for each tool and way of differing the shortest example, with how often it was found."""
    groups: dict[tuple[Any, ...], list[JsonObject]] = {}
    for call in calls:
        if not call["same"]:
            key = tuple(call[one] for one in ("tool", "outcome", "result", "state", "rung"))
            groups.setdefault(key, []).append(call)
    for some in sorted(groups.values(), key=len, reverse=True)[:most]:
        least = min(some, key=lambda call: (len(call["calls"]), len(str(call["calls"]))))
        yield f"{len(some)} times: after {'; '.join(least['calls'][:-1]) or 'nothing'}: {least['difference']}"


def by_class(title: str, calls: Sequence[JsonObject]) -> Table:
    """Return agreement by class, and how well "fails" is foreseen."""
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
    """Return agreement by rung or by method."""
    table = Table(title, [key, "class", "calls", "of them errors", "all the same", "outcome", "result", "state"])
    for kind, word in sorted({(call["class"], call[key]) for call in calls}):
        some = [call for call in calls if (call["class"], call[key]) == (kind, word)]
        words = [_share(some, one) for one in ("same", "outcome", "result", "state")]
        table.add(word, kind, len(some), sum(call["fails"] for call in some), *words)
    return table


def expected(calls: Sequence[JsonObject]) -> Iterator[Expectation]:
    """Yield what must hold of the calls of tasks kept out, class by class."""
    for name in CLASSES:
        some = [call for call in calls if call["class"] == name]
        failed = [call for call in some if call["fails"]]
        for word, of, wanted in (("calls", some, WANTED), ("real errors", failed, WANTED_ERRORS)):
            if of:
                text = f"{name}: at least {wanted:.0%} of the {word} of tasks kept out come to the same"
                yield Expectation(text, sum(call["same"] for call in of) >= wanted * len(of))


def _share(calls: Sequence[JsonObject], key: str) -> Any:
    rungs = Counter(call["rung"] for call in calls)
    return share(sum(bool(call[key]) for call in calls), len(calls), tools="simulated", rungs=rungs)


SUITE = Fidelity
