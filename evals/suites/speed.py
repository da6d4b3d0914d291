"""`speed`: what a rehearsal costs, and how that grows with the work."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gecko_graph.state import JsonObject

from ..costing import against, costs, server, shop, world_calls
from ..harness.figures import Case, Form, Measured, Record, Table, mean_of, median_of
from ..harness.statistics import exponent
from ..harness.suite import Expectation, Suite, Summary, by_group

OUTPUT_METHODS = ("model", "contract", "contract, checks")
TARGETS = {"model": 20, "contract, checks": 9}
"""Model calls of the case, as designed."""

STEEPEST = 1.25
"""An exponent above this is more than the work: growth of our own that must not be."""

LONG = (500, 1.15)
"""From how many calls on an attempt is long, and the steepest growth of one."""

GROWTH: Mapping[str, tuple[str, Mapping[str, Form]]] = {
    "steps": (
        "tool calls in one attempt",
        {"seconds": "seconds", "own": "seconds", "model_seconds": "seconds", "memory": "bytes", "bytes": "bytes"},
    ),
    "state": (
        "kB of task state",
        {"seconds": "seconds", "memory": "bytes", "bytes": "bytes", "tokens": "number"},
    ),
    "at once": ("tasks at once", {"seconds": "seconds", "memory": "bytes"}),
    "at once, stated model": ("tasks at once", {"seconds": "seconds"}),
}
"""Group to its horizontal axis and what is measured there."""

WORDS = {
    "seconds": "processor time",
    "own": "processor time without prompts and the model's calls",
    "model_seconds": "processor time of prompts and the model's calls alone",
    "memory": "peak memory",
    "bytes": "bytes checkpointed",
    "tokens": "prompt tokens",
}


class Speed(Suite):
    """What a rehearsal costs, and how that grows: model calls and tokens by role, own time, memory, bytes checkpointed.

    The case is the paper's demonstration: seven tool calls in two attempts. Prompt tokens are characters / 4. Costs are
    measured against a model that answers at once and against one that takes 400 ms and 10 ms a token (--quick: a
    twentieth of that). The tables name the exponent of each growth with steps, state and tasks at once.
    """

    name = "speed"
    asks = False
    tools = "simulated"
    planner = None
    at_once = 1
    examples = ("", "--quick", "--only 'steps*'", "--only 'shop*'", "--against ../main --only 'against*'")

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add the size, and the other checkout to measure in turn."""
        parser.add_argument("--quick", action="store_true", help="small sizes, for a look in seconds")
        text = "also measure another checkout of this repository, in turn with this one"
        parser.add_argument("--against", metavar="FOLDER", help=text)

    def cases(self) -> Iterator[Case]:
        """Yield a case per measurement; those of one group differ in size."""
        quick = self.options.own.quick
        upto = 2 if quick else None
        for size in costs.SIZES_KB[:upto]:
            for way in OUTPUT_METHODS:
                facts = {"size": size, "way": way}
                yield _case("calls", f"{size} kB, {way}", partial(costs.calls_and_tokens, size, way), facts)
        calls = 20 if quick else 100
        yield _case("own time", "ms", partial(costs.own_time, calls=calls), {"size": calls})
        grow: Mapping[str, tuple[Sequence[int], Callable[[int], JsonObject]]] = {
            "steps": (costs.STEPS, costs.by_steps),
            "state": (costs.SIZES_KB, costs.by_state),
            "at once": (costs.AT_ONCE, costs.by_tasks),
            "at once, stated model": (costs.AT_ONCE, partial(_stated, scale=0.05 if quick else 1.0)),
        }
        for group, (sizes, measure) in grow.items():
            for size in sizes[: 3 if quick else None]:
                yield _case(group, str(size), partial(measure, size), {"size": size})
        for statement in costs.IMPORTS:
            repeats = 1 if quick else 5
            yield _case("import", statement, partial(costs.import_time, statement, repeats=repeats), {"size": 0})
        yield from world_cases(self.options.data / world_calls.DATABASE, quick=quick)
        yield from (_case("shop", task, partial(shop.measure, task), {"task": task}) for task in shop.tasks())
        load = partial(server.measure, sessions=50, requests=400) if quick else server.measure
        yield _case("server", "load", load, {"size": 0})
        if self.options.own.against:
            other = against.checked_folder(self.options.own.against)
            yield from compared(other, self.options.data, calls=calls, quick=quick)

    def run_case(self, case: Case) -> JsonObject:
        """Measure."""
        measure: Callable[[], JsonObject] = case.data
        return measure()

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return tables of the case and of growth."""
        groups = by_group(record for record in records if record.done)
        figures: list[Table] = []
        expectations: list[Expectation] = []
        if some := groups.get("calls"):
            figures.append(calls_table(some))
            expectations += met(some)
        figures += [table(groups[name]) for name, table in TABLES.items() if name in groups]
        for group in GROWTH:
            if some := groups.get(group):
                figures.append(growth_table(group, some))
        if some := groups.get("steps"):
            expectations += bounded(some)
        expectations += world_calls.met(groups.get("world call", []))
        expectations += shop.met(groups.get("shop", []))
        expectations += server.met(groups.get("server", []))
        if some := groups.get("against"):
            figures += against.tables(some)
            expectations += against.met(some)
        return Summary(figures, expectations)


def _case(group: str, name: str, measure: Callable[[], JsonObject], facts: JsonObject) -> Case:
    return Case(f"{group}: {name}", measure, group=group, facts=facts)


def world_cases(database: Path, *, quick: bool) -> Iterator[Case]:
    """Yield single calls in a World: on files of some sizes, and on the database where that is there."""
    count = 30 if quick else 1000
    worlds: dict[str, Callable[[], Any]] = {f"{size} kB": partial(world_calls.on_files, size) for size in (10, 1000)}
    if database.is_file():
        worlds["4.9 MB"] = partial(world_calls.on_database, database)
    for name, create in worlds.items():
        yield _case("world call", name, partial(world_calls.measure, create, count=count), {"size": 0})


def compared(folder: Path, data: Path, *, calls: int, quick: bool) -> Iterator[Case]:
    """Yield the cases that measure another checkout as well."""
    turns: dict[str, Any] = {"turns": 1} if quick else {}
    own = partial(against.own_time, folder, calls=calls, **turns)
    yield _case("against", "own time", own, {"size": calls})
    yield _case("against", "own time, ms", partial(own, measure="ms"), {"size": calls})
    yield _case("against", "a further real call", partial(against.real_call, folder, **turns), {"size": calls})
    for name in against.ROWS:
        if "4.9 MB" not in name or (data / world_calls.DATABASE).is_file():
            yield _case("against", name, partial(against.beside, folder, name, data=data, **turns), {"size": 0})


def _stated(tasks: int, *, scale: float) -> JsonObject:
    return costs.critical_path(scale=scale, tasks=tasks)


def one(value: float, form: Form = "number") -> Measured:
    """Return a single measurement: it has no interval."""
    return mean_of([value], tools="simulated", form=form)


def calls_table(records: Sequence[Record]) -> Table:
    """Return model calls and tokens by role."""
    heads = ["kB of state", "simulated by", "verdict", "model calls", "prompt tokens", "by role: calls, tokens a call"]
    table = Table("Model calls and tokens of the case", heads)
    for record in records:
        values = record.values
        each = [f"{role} {calls}, {tokens // max(calls, 1)}" for role, (calls, tokens) in values["roles"].items()]
        roles = "; ".join(each)
        size, way = record.facts["size"], record.facts["way"]
        table.add(int(size), str(way), values["verdict"], int(values["calls"]), int(values["tokens_in"]), roles)
    return table


def own_table(records: Sequence[Record]) -> Table:
    """Return our processor time per tool call."""
    table = Table("Processor time a tool call", ["", "ms a call", "ms with empty nodes", "ratio"])
    for record in records:
        cells = [median_of(record.values[key], tools="simulated") for key in ("ms", "ms_empty", "ratio")]
        table.add(f"{record.facts['size']} calls", *cells)
    return table


def import_table(records: Sequence[Record]) -> Table:
    """Return seconds to import."""
    table = Table("Import, in a new process", ["statement", "seconds"])
    for record in records:
        table.add(record.id.partition(": ")[2], median_of(record.values["seconds"], form="seconds"))
    return table


TABLES: Mapping[str, Callable[[Sequence[Record]], Table]] = {
    "own time": own_table,
    "world call": world_calls.table,
    "shop": shop.table,
    "server": server.table,
    "import": import_table,
}


def with_own(record: Record) -> dict[str, Any]:
    """Return a record's values, with what is left of the time without the model's calls."""
    values = dict(record.values)
    if "model_seconds" in values:
        values["own"] = max(values["seconds"] - values["model_seconds"], 1e-9)
    return values


def growth_table(group: str, records: Sequence[Record]) -> Table:
    """Return what was measured at each size."""
    x, forms = GROWTH[group]
    more: dict[str, Form] = {"a_second": "number", "waiting": "seconds", "ratio": "number"}
    keys = {key: form for key, form in {**forms, **more}.items() if key in with_own(records[0])}
    heads = {**WORDS, "a_second": "tasks a second", "waiting": "replies that wait", "ratio": "beside them"}
    if group == "at once, stated model":
        heads["seconds"] = "seconds"
    steep = [f"{heads[key]}: {slope(points_of(records, key))}" for key in forms if key in keys]
    note = f"It grows with x to the power of ... {'; '.join(steep)}."
    table = Table(f"Growth with {x}: {group}", [x, *(heads[key] for key in keys)], note=note)
    for record in records:
        values = with_own(record)
        table.add(int(record.facts["size"]), *(one(values[key], form) for key, form in keys.items()))
    return table


def points_of(records: Sequence[Record], key: str) -> list[tuple[float, float]]:
    """Return sizes and what was measured there."""
    return [(float(record.facts["size"]), float(with_own(record)[key])) for record in records]


def slope(points: Sequence[tuple[float, float]]) -> str:
    """Return an exponent in words: by least squares on logarithms, with its 95 % interval."""
    found = exponent(points)
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def met(records: Sequence[Record]) -> Iterator[Expectation]:
    """Expect that the case is accepted, with the designed number of model calls."""
    yield Expectation("the case is accepted", all(record.values["verdict"] == "accepted" for record in records))
    for way, calls in TARGETS.items():
        some = [record.values["calls"] for record in records if record.facts["way"] == way]
        yield Expectation(f"{calls} model calls, simulated by {way}", all(each == calls for each in some))


def bounded(records: Sequence[Record]) -> Iterator[Expectation]:
    """Expect that our own time and bytes grow with the steps, not with their square."""
    if len(records) < 4:
        return
    for key in ("own", "memory", "bytes"):
        found = exponent(points_of(records, key)).value
        yield Expectation(f"{WORDS[key]} grows with the steps to the power of {STEEPEST} or less", found <= STEEPEST)
    long = [point for point in points_of(records, "own") if point[0] >= LONG[0]]
    if len(long) > 2:
        found, text = exponent(long).value, f"{WORDS['own']} grows from {LONG[0]} calls on to the power of {LONG[1]}"
        yield Expectation(f"{text} or less", found <= LONG[1])


SUITE = Speed
