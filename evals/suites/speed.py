"""`speed`: the cost of a rehearsal, and how it grows with the work."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from gecko_graph.state import JsonObject

from ..harness.figures import Case, Form, Record, Table, mean_of
from ..harness.statistics import exponent
from ..harness.suite import Expectation, Suite, Summary, by_group
from ..speed import costs, server, shop

OUTPUT_METHODS = ("model", "contract", "contract, checks")
TARGETS = {"model": 20, "contract, checks": 9}
"""Designed number of model calls of the case."""

STEEPEST = 1.25
"""The largest exponent that counts as linear growth."""

LONG = (500, 1.15)
"""From how many calls an attempt is long, and the largest exponent for long ones."""

GROWTH: Mapping[str, tuple[str, Form]] = {
    "seconds": ("processor time", "seconds"),
    "own": ("processor time without prompts and the model's calls", "seconds"),
    "memory": ("peak memory", "bytes"),
    "bytes": ("bytes checkpointed", "bytes"),
}
"""The quantities that grow with the tool calls of an attempt."""


class Speed(Suite):
    """The cost of a rehearsal and its growth: model calls and tokens by role, own time, memory, bytes checkpointed.

    The case is the paper's demonstration: seven tool calls in two attempts. Prompt tokens are characters / 4. "steps":
    attempts of growing length, with the exponent of each growth; "shop": the agent compared with LangChain's; "server":
    the cost of a request.
    """

    name = "speed"
    asks = False
    tools = "simulated"
    planner = None
    at_once = 1
    examples = ("", "--quick", "--only 'steps*'", "--only 'shop*'")

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--quick", action="store_true", help="small sizes, for a look in seconds")

    def cases(self) -> Iterator[Case]:
        quick = self.options.own.quick
        for size in costs.SIZES_KB[: 2 if quick else None]:
            for way in OUTPUT_METHODS:
                facts = {"size": size, "way": way}
                yield _case("calls", f"{size} kB, {way}", partial(costs.calls_and_tokens, size, way), facts)
        for steps in costs.STEPS[: 3 if quick else None]:
            yield _case("steps", str(steps), partial(costs.by_steps, steps), {"size": steps})
        yield from (_case("shop", task, partial(shop.measure, task), {"task": task}) for task in shop.tasks())
        yield _case(
            "server", "load", partial(server.measure, **({"sessions": 50, "requests": 400} if quick else {})), {}
        )

    def run_case(self, case: Case) -> JsonObject:
        measure: Callable[[], JsonObject] = case.data
        return measure()

    def summarise(self, records: Sequence[Record]) -> Summary:
        groups = by_group(record for record in records if record.done)
        figures: list[Table] = []
        expectations: list[Expectation] = []
        for name, (tell, expect) in PARTS.items():
            if some := groups.get(name):
                figures.append(tell(some))
                expectations += expect(some)
        return Summary(figures, expectations)


def _case(group: str, name: str, measure: Callable[[], JsonObject], facts: JsonObject) -> Case:
    return Case(f"{group}: {name}", measure, group=group, facts=facts)


def calls_table(records: Sequence[Record]) -> Table:
    heads = ["kB of state", "simulated by", "verdict", "model calls", "prompt tokens", "by role: calls, tokens a call"]
    table = Table("Model calls and tokens of the case", heads)
    for record in records:
        values = record.values
        each = [f"{role} {calls}, {tokens // max(calls, 1)}" for role, (calls, tokens) in values["roles"].items()]
        roles = "; ".join(each)
        size, way = record.facts["size"], record.facts["way"]
        table.add(int(size), str(way), values["verdict"], int(values["calls"]), int(values["tokens_in"]), roles)
    return table


def met(records: Sequence[Record]) -> Iterator[Expectation]:
    yield Expectation("the case is accepted", all(record.values["verdict"] == "accepted" for record in records))
    for way, calls in TARGETS.items():
        some = [record.values["calls"] for record in records if record.facts["way"] == way]
        yield Expectation(f"{calls} model calls, simulated by {way}", all(each == calls for each in some))


def growth_table(records: Sequence[Record]) -> Table:
    steep = (f"{words}: {slope(points_of(records, key))}" for key, (words, _) in GROWTH.items())
    note = f"It grows with the calls to the power of ... {'; '.join(steep)}."
    table = Table("Growth with tool calls in one attempt", ["calls", *(words for words, _ in GROWTH.values())], note)
    for record in records:
        cells = (mean_of([_value(record, key)], tools="simulated", form=form) for key, (_, form) in GROWTH.items())
        table.add(int(record.facts["size"]), *cells)
    return table


def _value(record: Record, key: str) -> float:
    values: Mapping[str, Any] = record.values
    return max(values["seconds"] - values["model_seconds"], 1e-9) if key == "own" else float(values[key])


def points_of(records: Sequence[Record], key: str) -> list[tuple[float, float]]:
    return [(float(record.facts["size"]), _value(record, key)) for record in records]


def slope(points: Sequence[tuple[float, float]]) -> str:
    """Format an exponent of least squares on logarithms, with its 95 % interval."""
    found = exponent(points)
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def bounded(records: Sequence[Record]) -> Iterator[Expectation]:
    """Expect that own time, memory and bytes grow linearly with the steps, not with their square."""
    if len(records) < 4:
        return
    for key in ("own", "memory", "bytes"):
        found, words = exponent(points_of(records, key)).value, GROWTH[key][0]
        yield Expectation(f"{words} grows with the steps to the power of {STEEPEST} or less", found <= STEEPEST)
    long = [point for point in points_of(records, "own") if point[0] >= LONG[0]]
    if len(long) > 2:
        found, text = (
            exponent(long).value,
            f"{GROWTH['own'][0]} grows from {LONG[0]} calls on to the power of {LONG[1]}",
        )
        yield Expectation(f"{text} or less", found <= LONG[1])


Tell = Callable[[Sequence[Record]], Table]
Expect = Callable[[Sequence[Record]], Iterator[Expectation]]
PARTS: Mapping[str, tuple[Tell, Expect]] = {
    "calls": (calls_table, met),
    "steps": (growth_table, bounded),
    "shop": (shop.table, shop.met),
    "server": (server.table, server.met),
}
"""The table and expectations of each group."""

SUITE = Speed
