"""`reality`: an agent that acts, in every setting, ended anywhere, answered twice: is all done, and done once?"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence

from gecko_graph.state import JsonObject

from ..harness.figures import Table, mean_of
from ..harness.suite import Case, Expectation, Record, Suite, Summary, by_group
from ..reality.draws import Draw
from ..reality.postgres import start_postgres
from ..reality.runs import run_apart

BAD = ("doubled", "lost", "false_done", "unnamed")
"""What must be 0 in every run: calls made too often, calls missing, a false `done`, doubts that name no call."""
STORY = "story"


def is_settled(record: Record) -> bool:
    """Return whether a run ended, and did nothing that it must not."""
    return record.values["ended"] != "unsettled" and not any(record.values[key] for key in BAD)


class Reality(Suite):
    """Seeded runs of an agent against a bank that keeps its own log.

    The agent is alone, a node, two deep, in a tool, or LangChain's under `GeckoMiddleware`; tools are Python, HTTP or
    MCP. Processes are killed, cancelled or run out of time before, in and after writes of the saver and of the bank;
    answers and the message are sent again, by two processes at once, with ids and without; requests fail. A person
    answers doubts from the bank's log. --story N makes one run and tells it.
    """

    name = "reality"
    asks = False
    tools = "real"
    planner = None
    at_once = 2
    examples = ("", "--runs 100", "--story 17")

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add how many runs are made, or which one is told."""
        parser.add_argument("--runs", type=int, default=600, metavar="N", help="seeded runs (600)")
        parser.add_argument("--story", type=int, metavar="N", help="make the run of this seed alone, and tell it")

    def cases(self) -> Iterator[Case]:
        """Yield one case per seed."""
        own = self.options.own
        for seed in range(own.runs) if own.story is None else [own.story]:
            draw = Draw.of(seed)
            facts = {"two": "two processes at once" if draw.two else "one process at a time"}
            facts |= {key: getattr(draw, key) for key in ("saver", "tools", "review", "plan", "end", "message")}
            yield Case(f"seed {seed}", draw, group=draw.setting, facts=facts)

    def run_case(self, case: Case) -> JsonObject:
        """Make the run."""
        return run_apart(case.data.seed, start_postgres() if case.data.saver == "postgres" else None)

    def passed(self, record: Record) -> bool:
        """Return whether the run is settled."""
        return is_settled(record)

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return runs by setting, and by each other choice."""
        done = [record for record in records if record.done]
        tables = [self.table("Runs by setting", by_group(done), done)]
        more = {name: some for key in done[0].facts for name, some in by_group(done, key=key).items()} if done else {}
        tables.append(self.table("Runs by what was drawn", more, []))
        counts = {key: sum(bool(record.values[key]) for record in done) for key in BAD}
        texts = (
            "no call is made twice",
            "no call is lost",
            "no run says done that is not",
            "each doubt names its call",
        )
        holds = [Expectation(text, not counts[key]) for text, key in zip(texts, BAD, strict=True)]
        ended = all(record.values["ended"] != "unsettled" for record in done)
        notes = [record.values[STORY] for record in done] if self.options.own.story is not None else []
        if any(record.facts["saver"] == "postgres" for record in done) and start_postgres() is None:
            notes.append("No Postgres can be started here: those runs were made on SQLite.")
        return Summary(tables, [*holds, Expectation("each run ends", ended)], notes)

    def table(self, title: str, groups: object, all_of_them: Sequence[Record]) -> Table:
        """Return how many runs of each group went wrong, and how."""
        heads = [
            "runs of",
            "runs",
            *(key.replace("_", " ") for key in BAD),
            "unsettled",
            "asked a run",
            "processes a run",
        ]
        table = Table(title, heads)
        for name, some in [*dict(groups).items(), *([("all", all_of_them)] if all_of_them else [])]:  # type: ignore[call-overload]
            values = [record.values for record in some]
            wrong = [sum(bool(each[key]) for each in values) for key in BAD]
            open_ = sum(each["ended"] == "unsettled" for each in values)
            asked = mean_of([each["reviews"] + each["doubts"] for each in values], tools="real")
            processes = mean_of([each["processes"] for each in values], tools="real")
            table.add(name, len(some), *wrong, open_, asked, processes)
        return table


SUITE = Reality
