"""`learn_contracts`: from rows of real calls to a file of contracts, with the evidence for each rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ..state import Json, JsonObject
from ..tools import Toolkit
from ..values.documents import format_document
from .miner import mine
from .observation import BadRows, Observation
from .sample import Sampler, contradictions

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned.

    Args:
        contracts: By tool, as a file of contracts has them.
        bad: Rows that could not be used.
        unknown: By tool, what its rows have not shown.
        notes: What a reader should know of the rows: contradictions, a sample in the place of all.
    """

    contracts: JsonObject
    bad: BadRows
    unknown: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def document(self) -> JsonObject:
        """The content of the file."""
        return {"contracts": self.contracts}

    def apply(self, toolkit: Toolkit) -> Toolkit:
        """Return the toolkit with the learned contracts; those that it has stay."""
        free = {name: one for name, one in self.contracts.items() if toolkit[name].contract is None}
        return toolkit.with_contracts({"contracts": free})

    def write(self, path: str | Path) -> None:
        """Write a file of contracts, as YAML or JSON by its name. Raises OSError."""
        document: Json = self.document
        Path(path).write_text(format_document(document, Path(path).suffix or ".yaml"), encoding="utf-8")


def learn_contracts(
    toolkit: Toolkit, rows: Iterable[Observation], *, bad: BadRows | None = None, progress: Progress | None = None
) -> Learned:
    """Learn contracts from real calls: the same rows give the same contracts.

    Args:
        toolkit: The tools, as they are documented.
        rows: The observations, in any order.
        bad: Where rows that cannot be used are counted; what read them may have begun it.
        progress: Called for each tool with its name, its number and how many there are.
    """
    sampler = Sampler(toolkit, bad or BadRows())
    sampler.add(rows)
    contracts: JsonObject = {}
    unknown: dict[str, list[str]] = {}
    notes: list[str] = []
    names = sampler.tools()
    for number, name in enumerate(names, 1):
        if progress:
            progress(name, number, len(names))
        some = sampler.rows(name)
        if odd := contradictions(row for _, row in some):
            notes.append(f"{name}: {len(odd)} calls were answered and refused in the same state: {odd[0][0].source}")
        mined = mine(toolkit[name], some)
        contracts[name], unknown[name] = mined.contract, mined.unknown
    if sampler.left_out > 0:
        notes.append(f"{sampler.left_out:,} rows repeat others, or are beyond the sample of each branch")
    return Learned(contracts, sampler.bad, unknown, notes)
