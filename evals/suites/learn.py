"""Contracts that nobody wrote: learned from recorded calls of the eight classes, held beside calls of other tasks."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from time import monotonic
from typing import Any

from gecko_graph import Toolkit
from gecko_graph.learning.learn import learn_contracts
from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.state import JsonObject
from gecko_graph.values.observation import Observation, kind_of

from ..bfcl.chained import roll
from ..bfcl.contracted import CLASSES
from ..bfcl.differential import Values
from ..bfcl.fidelity import Recorded
from ..bfcl.learned import OUTSIDE, add_tallies, foreseen, tally
from ..bfcl.observed import is_held_out, journal, observe, plain_toolkit, random_calls, starts_of
from ..bfcl.wrong import WITHIN, Wrong, calls_until_seen, chosen
from ..harness.figures import Case, Record, Table, share
from ..harness.options import EvalError, Options, read_jsonl
from ..harness.suite import Expectation, Suite, Summary
from ..services import clinic, traffic
from ..services.judged import SERVICES, firings, kinds_table, measure, outcomes_table, run_million
from ..services.s3 import is_there

FILES = ("bfcl_multiturn_calls.jsonl.gz", "bfcl_multiturn_recorded_calls.jsonl.gz")
TASKS = "bfcl_multiturn_tasks.jsonl.gz"
LEARNED, MET, WRONG, CHAINED, CLINIC = "learned", "refusals met", "made wrong", "chained", "clinic"
TRAFFIC = "traffic"
MILLION, NO_MOTO = (
    "million",
    "s3 is left out: MOTO_PYTHON must name the Python of an environment with moto[s3] and boto3",
)
NEW = 450
"""New random calls a class that learned contracts are tried on."""

AFTER = (3, 10)
COUNTS = ("calls", "known", "right", "gaps", "gaps_right")
PARTS = {"effects": (0.90, 0.85), "requires": (0.35, 0.70)}
"""Share of what was made wrong that the journal and random calls must show."""


class Learn(Suite):
    """Contracts learned from recorded calls of the eight classes, without a model, a source or a written contract.

    A fifth of the tasks is held out. "learned": what the others' journal gives, alone and with random probes; each
    tried on the held-out tasks' calls and on new random ones. "refusals met": the first rows of each kind of refusal,
    three or ten. "made wrong": written contracts with one effect or requirement left out, and whether 100 real
    calls of the tool show it. "chained": the held-out tasks' calls one after another on the predicted state, with the
    learned contracts left in `contracts` in the run's folder, for `bfcl --tools contract --contracts`. "shop", "phone",
    "airline", "s3": services, tried on threads that were held out; "clinic": a service whose rules nobody states, its
    held-out writes made under guard; "traffic": rules of a document, after calls that `living` has recorded;
    "million": time and memory of generated rows.
    """

    name = "learn"
    tools = "simulated"
    examples = ("", "--class TradingBot", "--probes 1000 --wrong 50")
    asks = False

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add how much is probed, how much is made wrong, and the classes."""
        add = parser.add_argument
        add("--probes", type=int, default=4000, metavar="N", help="random calls a class to learn from (4000)")
        add("--wrong", type=int, default=200, metavar="N", help="contracts to make wrong in one place (200)")
        add("--threads", type=int, default=120, metavar="N", help="threads of a service to learn from (120)")
        add("--rows", type=int, default=1_000_000, metavar="N", help="generated rows of the part `million` (1000000)")
        add("--class", dest="classes", action="append", metavar="NAME", help="only this class; repeatable")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._classes = options.own.classes or list(CLASSES)
        if unknown := set(self._classes) - set(CLASSES):
            raise EvalError(f"--class {min(unknown)}: expected one of {', '.join(CLASSES)}")
        self._calls = cache(self._read_calls)
        self._random = cache(self._make_random)

    def cases(self) -> Iterator[Case]:
        """Yield a case per class and source, per class and count of refusals, per contract made wrong."""
        for kind in self._classes:
            yield from (Case(f"{kind}:{source}", (kind, source), group=LEARNED) for source in ("journal", "probes"))
            yield from (Case(f"{kind}:after {count}", (kind, count), group=MET) for count in AFTER)
            yield Case(f"{kind}:chained", (kind, "probes"), group=CHAINED)
        for one in chosen(self.options.own.wrong, self.options.seed):
            if one.kind in self._classes:
                yield Case(f"{one.kind}:{one.tool}:{one.part}:{one.place}", one, group=WRONG)
        if not self.options.own.classes:
            there = (name for name in SERVICES if name != "s3" or is_there())
            yield from (Case(name, None, group=name) for name in (*there, MILLION))
            weeks = clinic.WEEKS if clinic.is_there() else ()
            yield from (Case(f"{CLINIC}:{week}", week, group=CLINIC) for week in weeks)
            yield from (Case(f"{TRAFFIC}:{name}", name, group=TRAFFIC) for name in traffic.recorded())

    def _read_calls(self, kind: str) -> list[tuple[str, Recorded]]:
        tasks = (task for name in FILES for task in read_jsonl(self.options.dataset(name)))
        return list(journal(tasks, [kind]))

    def _make_random(self, kind: str, is_new: bool) -> list[Recorded]:
        """Return random calls to learn from, from the states of tasks not held out; or new ones from the others'."""
        calls = [one for task, one in self._calls(kind) if is_new or not is_held_out(task)]
        tasks = [task for task in read_jsonl(self.options.dataset(TASKS)) if is_held_out(task["id"]) == is_new]
        count = NEW if is_new else self.options.own.probes
        seed = f"{self.options.seed}:{'new' if is_new else 'probe'}:{kind}"
        return list(random_calls(kind, starts_of(tasks, kind), Values.of(calls), count=count, seed=seed))

    def run_case(self, case: Case) -> JsonObject:
        """Learn and judge, or look for what was made wrong."""
        if isinstance(case.data, Wrong):
            return self._made_wrong(case.data)
        if case.group in (CLINIC, TRAFFIC):
            return clinic.measure(case.data) if case.group == CLINIC else traffic.measure(case.data)
        if case.group == MILLION:
            return run_million(self.options.own.rows)
        if case.group in SERVICES:
            return measure(case.group, self.options, self.options.own.threads)
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
        tried = [observe(one) for calls in said.values() for one in calls]
        kinds = firings(plain_toolkit(kind), learned.contracts, tried)
        return {"rows": len(rows), "seconds": seconds, **tallies, "kinds": kinds}

    def _roll(self, kind: str, toolkit: Toolkit) -> JsonObject:
        """Return what becomes of each held-out task's calls of a class, one after another."""
        rows = [task for name in FILES for task in read_jsonl(self.options.dataset(name)) if is_held_out(task["id"])]
        played = {f"{number}:{task['id']}": [*journal([task], [kind])] for number, task in enumerate(rows)}
        return {name: roll(toolkit, [one for _, one in calls]) for name, calls in played.items() if calls}

    def _made_wrong(self, one: Wrong) -> JsonObject:
        tool = plain_toolkit(one.kind)[one.tool]
        own = [each for _, each in self._calls(one.kind) if each.name == one.tool]
        drawn = [each for each in self._random(one.kind, False) if each.name == one.tool]
        fitting = ([observe(each) for each in some if not find_complaints(tool, each.args)] for some in (own, drawn))
        journal_rows, random_rows = fitting
        seen = {"journal": calls_until_seen(one, journal_rows), "random": calls_until_seen(one, random_rows)}
        return {"part": one.part, **{name: dict(each) for name, each in seen.items()}}

    def tell(self, record: Record) -> str:
        """Return what came of it in a line."""
        values = record.values
        if "rolled" in values:
            one = add_tallies([{key: each[key] for key in COUNTS} for each in values["rolled"].values()])
            return f"{one['known']} of {one['calls']} known, {one['right']} right; {one['gaps']} with gaps"
        if "tasks" in values:
            one = values["tasks"]
            return f"{one['answered']} of {one['calls']} answered, {one['right']} right"
        if "outcomes" in values:
            one = values["outcomes"]
            return f"{one['answered']} of {one['calls']} answered, {one['lawful_refused']} lawful ones refused"
        return f"{values['part']}: seen after {values['journal']['after']}" if "part" in values else str(values)

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return the tables of the three measurements, and what must hold."""
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
        tables += [
            *_services(done, expected),
            _met([one for one in done if one.group == MET]),
            _made([one for one in done if one.group == WRONG]),
        ]
        chained = [one for one in done if one.group == CHAINED]
        if chained:
            tables += [_rolled(chained, expected)]
        tables += [_million(record, expected) for record in done if record.group == MILLION]
        if weeks := [record for record in done if record.group == CLINIC]:
            tables.append(clinic.summarise(weeks, expected))
        if some := [record for record in done if record.group == TRAFFIC]:
            tables.append(traffic.summarise(some, expected))
        left_out = [*([] if is_there() else [NO_MOTO]), *([] if clinic.is_there() else [clinic.NEEDED])]
        return Summary([table for table in tables if table.rows], expected, left_out)


def _rolled(records: Sequence[Record], expected: list[Expectation]) -> Table:
    """Return the chained calls by class, and the tasks of which every call is known; add what must hold."""
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
    """Return the tasks of which these counts make up all calls, and that have any."""
    return [
        each
        for each in tasks
        if any(one["calls"] for one in each) and all(sum(one[key] for key in keys) == one["calls"] for one in each)
    ]


def refusals_met(kind: str, rows: Sequence[Observation], held: Sequence[Recorded], count: int) -> JsonObject:
    """Return what is foreseen of held-out calls after so many different refusals of each kind."""
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


def _services(records: Sequence[Record], expected: list[Expectation]) -> Iterator[Table]:
    """Yield what was foreseen of the services, and all rules by kind; add what must hold."""
    found = {record.group: record.values["outcomes"] for record in records if record.group in SERVICES}
    yield outcomes_table(found, _share)
    for name, one in found.items():
        most = 0.005 * (one["calls"] - one["refusals"])
        expected.append(Expectation(f"{name}: at most 0.5 % of lawful calls refused", one["lawful_refused"] <= most))
    kinds = {"classes": [record.values["kinds"] for record in records if record.id.endswith(":probes")]}
    yield kinds_table(kinds | {one.group: one.values["kinds"] for one in records if one.group in SERVICES})


def _million(record: Record, expected: list[Expectation]) -> Table:
    one = record.values
    table = Table("Generated rows", ["rows", "seconds", "GiB", "said of it"])
    table.add(one["count"], f"{one['seconds']:.0f}", f"{one['gib']:.2f}", "; ".join(one["notes"]))
    expected.append(
        Expectation(
            "rows are learned from in 1 GiB, and what was left out is said", one["gib"] <= 1 and bool(one["notes"])
        )
    )
    return table


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


def _made(records: Sequence[Record]) -> Table:
    heads = ["left out", "calls", "contracts", "of them called", "seen within 10", f"seen within {WITHIN}"]
    table = Table("Written contracts made wrong in one place", heads)
    for part in PARTS:
        for source in ("journal", "random"):
            some = [record.values[source] for record in records if record.values["part"] == part]
            called = [one for one in some if one["calls"]]
            if some:
                seen = [one["after"] for one in called if one["after"]]
                shares = [_share(sum(after <= most for after in seen), len(called)) for most in (10, WITHIN)]
                table.add(part, source, len(some), len(called), *shares)
    return table


SUITE = Learn
