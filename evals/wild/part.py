"""A part of the suite `wild`: its cases, how one is run, and what all of them come to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gecko_graph.state import JsonObject

from ..harness.figures import Case, Record
from ..harness.options import Options
from ..harness.suite import Summary


class Part(NamedTuple):
    """One kind of input.

    Args:
        name: Its word: the group of its cases.
        cases: Yields its cases.
        run: Runs one.
        summarise: Returns tables, expectations and notes from its records.
    """

    name: str
    cases: Callable[[Options], Iterator[Case]]
    run: Callable[[Case], JsonObject]
    summarise: Callable[[Sequence[Record]], Summary]
