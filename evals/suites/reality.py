"""`reality`: an agent that acts on a real service with faults, killed at a random point: is all done, and done once?"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence

from gecko_graph.state import JsonObject

from ..harness.figures import Table, mean_of, rate
from ..harness.suite import Case, Expectation, Record, Suite, Summary, by_group
from ..reality.orders import WRITES, Draw, run

KEYED, KEYLESS = "idempotency keys", "no idempotency keys"


def itemgetter_of(key: str) -> Callable[[Record], bool]:
    """Return a test for whether a value of a record is true."""
    return lambda record: bool(record.values[key])


class Reality(Suite):
    """Seeded runs of the agent against the order service.

    Three writes, of which the last needs an identifier that the first is given. The service fails by plan (500s and
    lost answers before and after the write, time-outs, 429s, slow and wrong answers), the process is killed at a
    random write to its saver, the saver may be slow, the agent may be a node of another graph. With idempotency keys
    no call is asked about; without, every call in doubt is asked about, and answered from the service's own log.
    """

    name = "reality"
    asks = False
    tools = "real"
    planner = None
    at_once = 2
    examples = ("", "--runs 20")

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add how many runs are made."""
        parser.add_argument("--runs", type=int, default=200, metavar="N", help="seeded runs (200)")

    def cases(self) -> Iterator[Case]:
        """Yield one case per seed."""
        for seed in range(self.options.own.runs):
            draw = Draw.of(seed)
            facts = {"embedded": draw.embedded, "rate": draw.rate, "slow": draw.slow_s > 0}
            yield Case(f"seed {seed}", draw, group=KEYED if draw.idempotent else KEYLESS, facts=facts)

    def run_case(self, case: Case) -> JsonObject:
        """Run the task to its end."""
        return run(case.data)

    def passed(self, record: Record) -> bool:
        """Return whether the database, and the agent's state if no answer was unusable, are the undisturbed run's."""
        values = record.values
        return bool(values["equal"] and (values["state"] or not values["usable"]) and values["writes"] == WRITES)

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return runs by kind of tool."""
        done = [record for record in records if record.done]
        heads = ["tools", "database as undisturbed", "agent's state as database", "asked a run", "rehearsals a run"]
        table = Table("Killed and disturbed runs", heads)
        for name, some in by_group(done).items():
            shares = [rate(some, itemgetter_of(key)) for key in ("equal", "state")]
            means = [mean_of([each.values[key] for each in some], tools="real") for key in ("asked", "rehearsals")]
            table.add(name, *shares, *means)
        same = all(map(self.passed, done))
        keyed = [record for record in done if record.group == KEYED]
        return Summary(
            [table],
            [
                Expectation("every run ends as the undisturbed one: nothing lost, nothing twice", same),
                Expectation(
                    "with idempotency keys no call is asked about", not any(each.values["asked"] for each in keyed)
                ),
            ],
        )


SUITE = Reality
