"""The evidence behind a rehearsal's words: recorded turns and replies of a strong model, evaluated without a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gecko_graph.state import JsonObject

from ..harness.figures import Case, Record
from ..harness.suite import Suite, Summary
from ..truth import judging, marks

PARTS: Sequence[judging.Part] = (*judging.PARTS, *marks.PARTS)


class Truth(Suite):
    """The validator's questions, and the marks of verdicts.

    From 125 rehearsed turns and 1,313 replies of a strong model in every role. A case is a part (--only PART).
    """

    name = "truth"
    asks = False
    planner = None
    examples = ("", "--only validator")

    def cases(self) -> Iterator[Case]:
        """Yield a case per part."""
        yield from (Case(part.name, part) for part in PARTS)

    def run_case(self, case: Case) -> JsonObject:
        """Measure a part."""
        part: judging.Part = case.data
        return part.measure(self.options.data)

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return the parts' tables, expectations and notes."""
        done = [
            (part, record.values) for part in PARTS for record in records if record.id == part.name and record.values
        ]
        return Summary(
            [table for part, values in done for table in part.tables(values)],
            expectations=[each for part, values in done for each in part.expectations(values)],
            notes=[note for part, values in done for note in part.notes(values)],
        )


SUITE = Truth
