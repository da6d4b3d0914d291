"""Contracts learned from recorded calls of the eight classes, compared with calls of other tasks."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from time import monotonic
from typing import Any

from gecko_graph import Toolkit
from gecko_graph.learning.learn import learn_contracts
from gecko_graph.state import JsonObject
from gecko_graph.values.observation import Observation, kind_of

from ..bfcl.contracted import CLASSES
from ..bfcl.differential import Values
from ..bfcl.fidelity import Recorded
from ..bfcl.learned import (
    OUTSIDE,
    add_tallies,
    foreseen,
    is_held_out,
    journal,
    observe,
    plain_toolkit,
    play_calls,
    random_calls,
    starts_of,
    tally,
)
from ..harness.figures import Case, Record, Table, share
from ..harness.options import EvalError, Options, read_jsonl
from ..harness.suite import Expectation, Suite, Summary
from .fidelity import FILES, TASKS

LEARNED, MET, CHAINED = "learned", "refusals met", "chained"
NEW = 450
"""New random calls per class on which learned contracts are tested."""

AFTER = (3, 10)
COUNTS = ("calls", "known", "right", "gaps", "gaps_right")


class Learn(Suite):
    """Contracts learned from recorded calls of the eight classes, without a model, source code or a written contract.

    A fifth of the tasks is held out. "learned": contracts from the other tasks' journal, without and with random
    probes, tested on the held-out tasks' calls and on new random ones. "refusals met": only the first three or ten rows
    of each kind of refusal are used. "chained": the held-out tasks' calls in sequence on the predicted state; the
    learned contracts are written to `contracts` in the run's folder, for `bfcl --tools contract --contracts`.
    """

    name = "learn"
    tools = "simulated"
    examples = ("", "--class TradingBot", "--probes 1000")
    asks = False

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--probes", type=int, default=4000, metavar="N", help="random calls per class to learn from (4000)")
        add("--class", dest="classes", action="append", metavar="NAME", help="only this class; repeatable")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._classes = options.own.classes or list(CLASSES)
        if unknown := set(self._classes) - set(CLASSES):
            raise EvalError(f"--class {min(unknown)}: expected one of {', '.join(CLASSES)}")
        self._calls = cache(self._read_calls)
        self._random = cache(self._make_random)

    def cases(self) -> Iterator[Case]:
        for kind in self._classes:
            yield from (Case(f"{kind}:{source}", (kind, source), group=LEARNED) for source in ("journal", "probes"))
            yield from (Case(f"{kind}:after {count}", (kind, count), group=MET) for count in AFTER)
            yield Case(f"{kind}:chained", (kind, "probes"), group=CHAINED)

    def _read_calls(self, kind: str) -> list[tuple[str, Recorded]]:
        tasks = (task for name in FILES for task in read_jsonl(self.options.dataset(name)))
        return list(journal(tasks, [kind]))

    def _make_random(self, kind: str, is_new: bool) -> list[Recorded]:
        """Return random calls to learn from, from states of tasks not held out; or new ones from the held-out tasks."""
        calls = [one for task, one in self._calls(kind) if is_new or not is_held_out(task)]
        tasks = [task for task in read_jsonl(self.options.dataset(TASKS)) if is_held_out(task["id"]) == is_new]
        count = NEW if is_new else self.options.own.probes
        seed = f"{self.options.seed}:{'new' if is_new else 'probe'}:{kind}"
        return list(random_calls(kind, starts_of(tasks, kind), Values.of(calls), count=count, seed=seed))

    def run_case(self, case: Case) -> JsonObject:
        kind, source = case.data
        rows = [observe(one, task) for task, one in self._calls(kind) if not is_held_out(task)]
        held = [one for task, one in self._calls(kind) if is_held_out(task)]
        if case.group == MET:
            return refusals_met(kind, rows, held, source)
        if source == "probes":
            rows += [observe(one, "probe") for one in self._random(kind, False)]
        begun = monotonic()
        learned = learn_contracts(plain_toolkit(kind), rows)
        seconds, toolkit = monotonic() - begun, learned.apply(plain_toolkit(kind))
        if case.group == CHAINED:
            (folder := self.options.out / "contracts").mkdir(parents=True, exist_ok=True)
            learned.write(folder / f"{kind}.yaml")
            return {"rolled": self._roll(kind, toolkit)}
        said = {"tasks": held, "random": self._random(kind, True)}
        tallies = {name: tally(foreseen(toolkit, one) for one in calls) for name, calls in said.items()}
        return {"rows": len(rows), "seconds": seconds, **tallies}

    def _roll(self, kind: str, toolkit: Toolkit) -> JsonObject:
        """Return the predictions for each held-out task's calls of a class, in sequence."""
        rows = [task for name in FILES for task in read_jsonl(self.options.dataset(name)) if is_held_out(task["id"])]
        played = {f"{number}:{task['id']}": [*journal([task], [kind])] for number, task in enumerate(rows)}
        return {name: play_calls(toolkit, [one for _, one in calls]) for name, calls in played.items() if calls}

    def summarise(self, records: Sequence[Record]) -> Summary:
        done = [record for record in records if record.done]
        tables: list[Table] = []
        expected: list[Expectation] = []
        for source, wanted in (("journal", (0.75, 0.985)), ("probes", (0.75, 0.995))):
            some = [record for record in done if record.id.endswith(f":{source}")]
            for calls in ("tasks", "random") if some else ():
                table, whole = _outcomes(f"Learned from {_called(source)}, tried on {calls}", some, calls)
                tables.append(table)
                if calls == "tasks":
                    expected += _wanted(source, whole, wanted)
        tables.append(_met([one for one in done if one.group == MET]))
        chained = [one for one in done if one.group == CHAINED]
        if chained:
            tables += [_rolled(chained, expected)]
        return Summary([table for table in tables if table.rows], expected)


def _rolled(records: Sequence[Record], expected: list[Expectation]) -> Table:
    """Return the chained calls by class, and the tasks of which every call is known; add the expectations."""
    table = Table("Chained, on the predicted state", ["class", "calls", "known", "right", "gaps", "gaps right"])
    tasks: dict[str, list[JsonObject]] = {}
    for record in records:
        for task, one in record.values["rolled"].items():
            tasks.setdefault(task, []).append(one)
    named = [(record.id.partition(":")[0], [*record.values["rolled"].values()]) for record in records]
    for name, some in [*named, ("all", [one for each in tasks.values() for one in each])]:
        whole = add_tallies([{key: one[key] for key in COUNTS} for one in some])
        known, right = _share(whole["known"], whole["calls"]), _share(whole["right"], whole["known"])
        table.add(name, whole["calls"], known, right, whole["gaps"], _share(whole["gaps_right"], whole["gaps"]))
    decided = _wholly(tasks.values(), "known", "gaps")
    same, entire = _wholly(decided, "right", "gaps_right"), _wholly(tasks.values(), "known")
    table.note = (
        f"Outcome and change of every call are known in {len(decided)} of {len(tasks)} tasks ({len(entire)} with all "
        f"results): {len(same)} end as with the real tools. A gap is a result that the schema rung fills."
    )
    sure, good = whole["known"] + whole["gaps"], whole["right"] + whole["gaps_right"]
    expected += [
        Expectation(
            "chained: outcome and change of at least half of the calls are known", sure >= 0.5 * whole["calls"]
        ),
        Expectation("chained: 98 % of these right", good >= 0.98 * sure),
        Expectation("at least 20 % of the tasks are decided", len(decided) >= 0.2 * len(tasks)),
        Expectation("98 % of the decided tasks as by the real tools", len(same) >= 0.98 * len(decided)),
    ]
    return table


def _wholly(tasks: Iterable[list[JsonObject]], *keys: str) -> list[list[JsonObject]]:
    """Return the tasks with calls of which these counts add up to all calls."""
    return [
        each
        for each in tasks
        if any(one["calls"] for one in each) and all(sum(one[key] for key in keys) == one["calls"] for one in each)
    ]


def refusals_met(kind: str, rows: Sequence[Observation], held: Sequence[Recorded], count: int) -> JsonObject:
    """Return the predictions for held-out calls after at most `count` different refusals of each kind."""
    seen: dict[tuple[str, str], set[str]] = {}
    kept: list[Observation] = []
    for row in rows:
        if row.status == "error":
            known = seen.setdefault((row.tool, kind_of(row.result, row.args)), set())
            if row.question not in known and len(known) >= count:
                continue
            known.add(row.question)
        kept.append(row)
    toolkit = learn_contracts(plain_toolkit(kind), kept).apply(plain_toolkit(kind))
    judged = [(one, foreseen(toolkit, one)) for one in held]
    inside = [(one, said) for one, said in judged if said["outcome"] != OUTSIDE]
    met = [said for one, said in inside if one.fails and len(seen.get(_kind(one), ())) >= count]
    lawful = [said for one, said in inside if not one.fails]
    made: JsonObject = {"after": count, "met": len(met), "lawful": len(lawful)}
    for name, some in (("foreseen", met), ("wrongly", lawful)):
        made |= {f"{name}_{word}": sum(said["outcome"] == word for said in some) for word in ("warned", "refused")}
    return made


def _kind(one: Recorded) -> tuple[str, str]:
    row = observe(one)
    return row.tool, kind_of(row.result, row.args)


def _called(source: str) -> str:
    return "the journal" if source == "journal" else "journal and probes"


def _share(part: int, whole: int) -> Any:
    return share(part, whole, tools="simulated", rungs={"contract": whole})


def _outcomes(title: str, records: Sequence[Record], calls: str) -> tuple[Table, JsonObject]:
    heads = ["class", "rows", "seconds", "calls", "of them refusals", "answered", "right", "warned", "of them lawful"]
    table = Table(title, [*heads, "lawful refused", "refusals allowed", "whole", "whole right"])
    whole = add_tallies([record.values[calls] for record in records])
    named = [(record.id.partition(":")[0], record.values[calls], record.values) for record in records]
    everything = {key: sum(record.values[key] for record in records) for key in ("rows", "seconds")}
    for name, one, about in [*named, ("all", whole, everything)]:
        shares = [_share(one["answered"], one["calls"]), _share(one["right"], one["answered"]), one["warned"]]
        wrong = [one["warned_lawful"], one["lawful_refused"], one["refusals_allowed"]]
        entire = [_share(one["whole"], one["calls"]), _share(one["whole_right"], one["whole"])]
        table.add(
            name, about["rows"], f"{about['seconds']:.1f}", one["calls"], one["refusals"], *shares, *wrong, *entire
        )
    return table, whole


def _wanted(source: str, whole: JsonObject, wanted: tuple[float, float]) -> Iterator[Expectation]:
    answered, right = wanted
    said = f"{_called(source)}, held-out tasks"
    yield Expectation(f"{said}: no lawful call is refused", whole["lawful_refused"] == 0)
    yield Expectation(f"{said}: at least {answered:.0%} answered", whole["answered"] >= answered * whole["calls"])
    yield Expectation(f"{said}: at least {right:.1%} of these right", whole["right"] >= right * whole["answered"])


def _met(records: Sequence[Record]) -> Table:
    heads = ["after", "refusals of kinds met", "refused", "warned", "lawful calls", "lawful refused", "lawful warned"]
    table = Table("Refusals met one by one", heads)
    for count in AFTER:
        some = [record.values for record in records if record.values["after"] == count]
        if some:
            one = {key: sum(values[key] for values in some) for key in some[0]}
            refused, warned = (_share(one[f"foreseen_{word}"], one["met"]) for word in ("refused", "warned"))
            wrongly = [_share(one[f"wrongly_{word}"], one["lawful"]) for word in ("refused", "warned")]
            table.add(count, one["met"], refused, warned, one["lawful"], *wrongly)
    return table


SUITE = Learn
