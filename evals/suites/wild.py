"""`wild`: what users bring, and nobody here has written: is it read whole, and is what is lawful accepted?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gecko_graph.state import JsonObject

from ..harness.figures import Case, Record
from ..harness.suite import Suite, Summary, by_group
from ..wild import data, documents
from ..wild.part import Part

PARTS: Sequence[Part] = (documents.PART, *data.PARTS)
"""The kinds of input; a new one is a `Part` of a module in `evals/wild`."""


class Wild(Suite):
    """Wild: documents and data of others, as published: what is read, what is left open, what is accepted.

    A case is a document or a file; its group is the kind. What is not read or not accepted is listed with its place.
    """

    name = "wild"
    asks = False
    tools = "none"
    examples = ("--only documents", "--only '*okta*'")

    def cases(self) -> Iterator[Case]:
        """Yield the cases of all parts."""
        for part in PARTS:
            yield from part.cases(self.options)

    def run_case(self, case: Case) -> JsonObject:
        """Run a case as its part does."""
        return next(part for part in PARTS if part.name == case.group).run(case)

    def tell(self, record: Record) -> str:
        """Return a record in one line."""
        counts = {key: value for key, value in record.values.items() if isinstance(value, int)}
        return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in counts.items())

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return the parts' summaries, one after the other."""
        groups = by_group(records)
        found = [part.summarise(groups[part.name]) for part in PARTS if part.name in groups]
        return Summary(
            [table for one in found for table in one.figures],
            [each for one in found for each in one.expectations],
            [note for one in found for note in one.notes],
        )


SUITE = Wild
