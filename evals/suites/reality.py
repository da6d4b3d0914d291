"""`reality`: an agent that acts, in every setting, interrupted anywhere, answered twice: is all done exactly once?"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence

from gecko_graph.state import JsonObject

from ..harness.figures import Case, Record, Table, mean_of
from ..harness.suite import Expectation, Suite, Summary, by_group
from ..reality.draws import Draw
from ..reality.postgres import start_postgres
from ..reality.runs import run_apart

BAD = {
    "doubled": "no call is made twice",
    "let_through": "no call is made that nobody wanted",
    "lost": "no call is lost",
    "barred": "no lawful call is refused for good",
    "false_done": "no run says done that is not",
    "unnamed": "each doubt names its call",
    "unsettled": "each run ends",
}
"""Faults that must be 0 in every run, each with the expectation."""
FACTS = ("extra", "edit", "ids", "busy", "saver", "tools", "review", "plan", "end", "message")


class Reality(Suite):
    """Seeded runs of an agent against a bank that keeps its own log.

    The agent is alone, a node, two levels deep, in a tool, or LangChain's under `GeckoMiddleware`; tools are Python,
    HTTP or MCP. Processes are killed, cancelled or timed out before, in and after writes of the saver and of the bank;
    answers and the message are sent again, by two processes at once, with ids and without; requests fail; the bank is
    busy; the ids of calls repeat. Some runs have a balance to keep, edits, summaries, a copied or pruned thread, a
    second request to undo, or two users behind one server (`reality.draws.EXTRAS`). A person decides on calls in doubt
    from the bank's log. --story N makes one run and prints its story.

    *doubled*, *let through*: calls made more often than wanted, calls that nobody wanted or that a rule, the contract
    or the schema refuses; *lost*, *barred*: wanted calls that were not made although the run says done, or although it
    says not done without a fault, a call left in doubt or another reason.
    """

    name = "reality"
    asks = False
    tools = "real"
    planner = None
    at_once = 2
    examples = ("", "--runs 100", "--story 17")

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--runs", type=int, default=600, metavar="N", help="seeded runs (600)")
        parser.add_argument("--story", type=int, metavar="SEED", help="make only this run, and print its story")

    def cases(self) -> Iterator[Case]:
        own = self.options.own
        for seed in range(own.runs) if own.story is None else [own.story]:
            draw = Draw.of(seed)
            facts = {key: f"{key}: {getattr(draw, key)}" for key in FACTS}
            facts["two"] = "two processes at once" if draw.two else "one process at a time"
            yield Case(f"seed {seed}", draw, group=draw.setting, facts=facts)

    def run_case(self, case: Case) -> JsonObject:
        values = run_apart(case.data.seed, start_postgres() if case.data.saver == "postgres" else None)
        return {**values, "unsettled": values["ended"] == "unsettled"}

    def summarise(self, records: Sequence[Record]) -> Summary:
        done = [record for record in records if record.done]
        tables = [table_of("Runs by setting", {**by_group(done), "all": done})]
        if self.options.own.story is not None:
            return Summary(tables, notes=[record.values["story"] for record in done])
        drawn = {name: some for key in ("two", *FACTS) for name, some in by_group(done, key=key).items()}
        tables.append(table_of("Runs by what was drawn", drawn))
        expected = [Expectation(text, not any(each.values[key] for each in done)) for key, text in BAD.items()]
        notes = [] if start_postgres() else ["No Postgres can be started here: those runs were made on SQLite."]
        return Summary(tables, expected, notes)


def table_of(title: str, groups: Mapping[str, Sequence[Record]]) -> Table:
    heads = ["runs of", "runs", *(key.replace("_", " ") for key in BAD), "questions a run", "processes a run"]
    table = Table(title, heads)
    for name, some in groups.items():
        wrong = [sum(bool(each.values[key]) for each in some) for key in BAD]
        asked = mean_of([each.values["review"] + each.values["doubt"] for each in some], tools="real")
        table.add(name, len(some), *wrong, asked, mean_of([each.values["processes"] for each in some], tools="real"))
    return table


SUITE = Reality
