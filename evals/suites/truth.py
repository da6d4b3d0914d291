"""Recorded turns and replies of a strong model, read again: what marks and questions come to, without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from gecko_graph.state import JsonObject

from ..harness.figures import Case, Record, Table
from ..harness.suite import Expectation, Suite, Summary
from ..truth.marks import TURNS, mark_tables

PARTS: Mapping[str, Callable[[Path], tuple[list[Table], list[Expectation]]]] = {"marks": mark_tables}
"""By name a function from the folder of the data to the part's tables and to what must hold."""


class Truth(Suite):
    """Is what a person approves true? Marks on recorded turns. A case is a part (--only PART,...)."""

    name = "truth"
    asks = False
    planner = None
    tools = "simulated"

    def cases(self) -> Iterator[Case]:
        """Yield a case for each part."""
        yield from (Case(name) for name in PARTS)

    def run_case(self, case: Case) -> JsonObject:
        """Look whether the part's data is there; the figures are counted in `summarise`."""
        self.options.dataset(TURNS)
        return {}

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return each part's tables and expectations."""
        folder = self.options.dataset(TURNS).parent
        found = [PARTS[record.id](folder) for record in records if record.done]
        return Summary([each for tables, _ in found for each in tables], [each for _, some in found for each in some])


SUITE = Truth
