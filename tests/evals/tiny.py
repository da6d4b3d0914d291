"""Suites of the tests' own: numbers of which some fail, and questions to a model."""

from __future__ import annotations

from evals.harness.figures import Case, Table, mean, rate
from evals.harness.suite import Expectation, Suite, Summary, by_group


class Tiny(Suite):
    """Numbers, and whether they are small.

    A second paragraph for --help.
    """

    name = "tiny"
    tools = "simulated"
    planner = "ground-truth"
    planners = ("ground-truth", "recorded")
    examples = ("--limit 3",)
    failures = 0.1

    @classmethod
    def add_options(cls, parser):
        parser.add_argument("--cases", type=int, default=12, help="how many")
        parser.add_argument("--fail", type=int, nargs="*", default=[], help="numbers that fail")
        parser.add_argument("--small", type=int, default=100, help="what is small")
        parser.add_argument("--file", help="a data set to look for")

    def cases(self):
        if self.options.own.file:
            self.options.dataset(self.options.own.file)
        for number in range(self.options.own.cases):
            group = "even" if number % 2 == 0 else "odd"
            yield Case(f"{group}_{number}", number, group=group, facts={"number": number})

    async def run_case(self, case):
        with (self.options.out / "ran.txt").open("a") as file:
            file.write(f"{case.id}\n")
        if case.data in self.options.own.fail:
            raise ValueError(f"{case.data} is <b>not</b> liked")
        return {"small": case.data < self.options.own.small, "square": case.data**2}

    def summarise(self, records):
        table = Table("Small numbers", ["group", "small", "square", "cases"], note="A <note>.")
        for group, some in by_group(records).items():
            small = rate(some, lambda record: record.values["small"])
            table.add(group, small, mean(some, lambda record: record.values["square"]), len(some))
        small = rate(records, lambda record: record.values["small"])
        return Summary([table], [Expectation("three of four are small", small.value >= 0.75)], ["a note & more"])


class Talk(Suite):
    """Questions to a model."""

    name = "talk"
    at_once = 4

    def cases(self):
        return [Case(f"question_{number}", number) for number in range(8)]

    async def run_case(self, case):
        said = await self.options.speakers()["judge"].ainvoke(f"question {case.data}")
        return {"said": said.text}

    def summarise(self, records):
        table = Table("Answers", ["", "answered"])
        table.add("all", rate(records, lambda record: record.values["said"] == "yes"))
        return Summary([table])
