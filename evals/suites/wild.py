"""`wild`: documents that nobody here has written: are they read whole, and is what is lawful accepted?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gecko_graph.state import JsonObject

from ..harness.figures import Case, Record
from ..harness.suite import Suite, Summary
from ..wild import documents


class Wild(Suite):
    """Wild: documents of others, as published: what is read, what is left open, what is accepted.

    A case is a document. What is not read or not accepted is listed with its place.
    """

    name = "wild"
    asks = False
    tools = "none"
    examples = ("", "--only '*okta*'")

    def cases(self) -> Iterator[Case]:
        """Yield a case for each document."""
        yield from documents.cases(self.options)

    def run_case(self, case: Case) -> JsonObject:
        """Read a document, and judge its examples."""
        return documents.run(case)

    def tell(self, record: Record) -> str:
        """Return a record in one line."""
        counts = {key: value for key, value in record.values.items() if isinstance(value, int)}
        return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in counts.items())

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return a row for each document, and what was not accepted."""
        return documents.summarise(records)


SUITE = Wild
