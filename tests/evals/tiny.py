"""A suite of the tests' own: numbers, of which some fail, some are slow, and some are said to be wrong."""

from __future__ import annotations

import asyncio

from evals.figures import Bars, Lines, Table, mean, rate
from evals.suite import Case, Expectation, Suite, Summary, by_group


class Tiny(Suite):
    """Numbers, and whether they are small.

    A second paragraph for --help.
    """

    name = "tiny"
    tools = "simulated"
    planner = "ground-truth"
    examples = ("--limit 3",)
    asides = ("shown",)
    failures = 0.1

    @classmethod
    def add_options(cls, parser):
        parser.add_argument("--cases", type=int, default=12, help="how many")
        parser.add_argument("--fail", type=int, nargs="*", default=[], help="numbers that fail")
        parser.add_argument("--pause", type=float, default=0.0, help="seconds a case")
        parser.add_argument("--small", type=int, default=100, help="what is small")
        parser.add_argument("--shown", type=int, default=5, help="what is listed")

    def cases(self):
        for number in range(self.options.own.cases):
            group = "even" if number % 2 == 0 else "odd"
            yield Case(f"{group}_{number}", number, group=group, facts={"number": number})

    async def run_case(self, case):
        await asyncio.sleep(self.options.own.pause)
        with (self.options.out / "ran.txt").open("a") as file:
            file.write(f"{case.id}\n")
        if case.data in self.options.own.fail:
            raise ValueError(f"{case.data} is <b>not</b> liked")
        return {
            "small": case.data < self.options.own.small,
            "square": case.data**2,
            "rungs": {"contract": 3, "schema": 1},
            "usage": {"judge": {"calls": 1, "input_tokens": 10, "output_tokens": 2, "cost": 0.01}},
        }

    def summarise(self, records):
        table = Table("Small numbers", ["group", "small", "square", "cases"], note="A <note>.")
        for group, some in by_group(records).items():
            small = rate(some, lambda record: record.values["small"])
            table.add(group, small, mean(some, lambda record: record.values["square"]), len(some))
        small = rate(records, lambda record: record.values["small"])
        square = mean(records, lambda record: record.values["square"])
        figures = [
            table,
            Bars("Small", categories=["all"], series={"ours": [small]}),
            Lines("Growth", {"square": [(1, square), (2, square)]}, x="number", y="square", log=True),
        ]
        return Summary(figures, [Expectation("three of four are small", small.value >= 0.75)], ["a note & more"])
