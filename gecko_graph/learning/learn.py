"""`learn_contracts`: from rows of real calls to a file of contracts, with the evidence for each rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..real.learned import fill_contracts
from ..state import JsonObject
from ..tools import Toolkit, ToolSpec
from ..tools.openapi.credentials import Server
from ..values.documents import format_document
from ..values.mapping import Map, Work
from ..values.observation import BadRows, Observation
from ..world.world import check_setup
from .by_document import add_document_evidence
from .conditions import documented_in
from .miner import mine
from .readers import read_file
from .replay import Contradiction, find_contradictions, without_explained
from .sample import Sampler, find_opposites
from .shows import unread_before

BATCH = 500
MOST_ALIKE = 4
"""Most other tools whose refusals of the same kind are used for a tool."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Learned:
    """The result of learning.

    Args:
        contracts: Tool to contract, as in a file of contracts; including a tool's written parts.
        bad: Rows that could not be used.
        unknown: Tool to the parts that its rows have not shown.
        contradicted: Branches of written contracts that rows contradict.
        notes: Notes on the rows: contradictions among them, sampling.
        proposals: Tool to proposals on its contract: drift and refusals that agents met, contradictions by rows.
        sample: The rows that were used.
    """

    contracts: JsonObject
    bad: BadRows
    unknown: dict[str, list[str]] = field(default_factory=dict)
    contradicted: list[Contradiction] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    proposals: dict[str, list[JsonObject]] = field(default_factory=dict)
    sample: Sampler | None = field(default=None, repr=False, compare=False)

    def apply(self, toolkit: Toolkit) -> Toolkit:
        """Return the toolkit with the learned contracts; written parts are kept."""
        return toolkit.with_contracts({"contracts": fill_contracts(toolkit, self.contracts)})

    def propose(self, contradicted: Iterable[Contradiction]) -> None:
        """Add contradictions of written contracts, also as proposals."""
        for one in contradicted:
            self.contradicted.append(one)
            said: JsonObject = {"part": one.part, "says": one.branch, "for": one.count, "status": "proposed"}
            self.proposals.setdefault(one.tool, []).append(said)

    def count_rules(self) -> dict[str, int]:
        """Return the number of established, proposed and refuted rules."""
        clauses: Iterable[Any] = (each for one in self.contracts.values() for each in one.get("requires", ()))
        return dict(Counter(str(clause["evidence"]["status"]) for clause in clauses if "evidence" in clause))

    def write(self, path: str | Path) -> None:
        """Write a file of contracts for `Toolkit.with_contracts`, as YAML or JSON by its name. Raises OSError."""
        document = {"contracts": self.contracts, **({"proposals": self.proposals} if self.proposals else {})}
        Path(path).write_text(format_document(document, Path(path).suffix or ".yaml"), encoding="utf-8")


@dataclass
class ReadRows(Work[tuple[int, Any], Sampler]):
    """Work that samples numbered observations, or a file of them."""

    toolkit: Toolkit
    server: Server | None = None

    def begin(self) -> Callable[[tuple[int, Any]], Sampler]:
        return self._read

    def _read(self, item: tuple[int, Any]) -> Sampler:
        number, given = item
        sampler = Sampler(self.toolkit)
        is_file = isinstance(given, str | Path)
        sampler.add(read_file(given, sampler.bad, self.toolkit, server=self.server) if is_file else given, number)
        sampler.toolkit = _NONE  # not needed by the caller
        return sampler


_NONE = Toolkit([])


def _batches(rows: Iterable[Observation | str | Path]) -> Iterator[tuple[int, Any]]:
    """Yield files one by one, and observations in batches, with the number of the first."""
    number, some = 1, list[Any]()
    for each in rows:
        if isinstance(each, str | Path):
            yield 1, each
            continue
        some.append(each)
        if len(some) == BATCH:
            yield number, some
            number, some = number + BATCH, []
    if some:
        yield number, some


def _find_documented(toolkit: Toolkit) -> dict[str, list[Any]]:
    schemas = [schema for tool in toolkit for schema in (tool.parameters, tool.result)]
    documented: dict[str, list[Any]] = {}
    for name, value in dict.fromkeys(each for schema in schemas for each in documented_in(schema)):
        documented.setdefault(name, []).append(value)
    return documented


def learn_contracts(
    toolkit: Toolkit,
    rows: Iterable[Observation | str | Path],
    *,
    server: Server | None = None,
    map: Map = map,
    bad: BadRows | None = None,
    progress: Progress | None = None,
) -> Learned:
    """Learn contracts from real calls; the result does not depend on the order of rows.

    Args:
        toolkit: The tools, as documented. Written parts of contracts are kept, and compared with the rows.
        rows: The observations, or files of them for `read_file`.
        server: As for `read_file`.
        map: Runs the reading (`gecko_graph.values.mapping`).
        bad: Counts rows that cannot be used; it may contain earlier counts.
        progress: Called for each tool with its name, its number and the number of tools.

    Raises:
        ToolkitError: The toolkit is not a Toolkit, or has no tools.
        GeckoError: A row is not an Observation.
    """
    check_setup(toolkit, None)
    sampler = Sampler(toolkit, BadRows() if bad is None else bad)
    for read in map(ReadRows(toolkit, server), _batches(rows)):
        sampler.merge(read)
    learned = Learned({}, sampler.bad, proposals=sampler.proposals(), sample=sampler)
    names, rows_of = sampler.tools(), lru_cache(maxsize=MOST_ALIKE)(sampler.rows)
    documented = _find_documented(toolkit)
    for number, name in enumerate(names, 1):
        if progress:
            progress(name, number, len(names))
        tool, some = toolkit[name], rows_of(name)
        if odd := find_opposites(row for _, row in some):
            learned.notes.append(f"{name}: {len(odd)} calls were both answered and refused in one state: {odd[0]}")
        learned.propose(find_contradictions(tool, (row for _, row in some)))
        alike = ((toolkit[other], rows_of(other)) for other in sampler.refused_alike(name)[:MOST_ALIKE])
        made, unknown = mine(tool, some, documented, alike)
        own = tool.contract.data.get("requires", ()) if tool.contract else ()
        made |= {"requires": without_explained(tool, made.get("requires", []), own, (row for _, row in some))}
        made, unknown = add_document_evidence(tool, toolkit, made, some, unknown)
        if filled := fill_contracts(toolkit, {name: made}):
            learned.contracts.update(filled)
            learned.unknown[name] = unknown
        learned.notes.extend(_missing_reads(toolkit, tool, [row for _, row in some], unknown))
    learned.contracts.update(_observing(toolkit, learned.contracts))
    learned.notes.extend(_tell_sample(toolkit, sampler))
    return learned


def _tell_sample(toolkit: Toolkit, sampler: Sampler) -> Iterator[str]:
    if unsaid := [name for name in sampler.tools() if toolkit[name].effect is None]:
        yield f"unknown whether they only read: give {', '.join(unsaid)} an `effect`, read or write"
    if sampler.left_out > 0:
        yield f"{sampler.left_out:,} rows repeat others, or are beyond the sample of each branch"


def _observing(toolkit: Toolkit, known: JsonObject) -> JsonObject:
    """Return the contracts of reads that have only `observes`."""
    left = {tool.name: tool.contract for tool in toolkit.observing if tool.name not in known}
    return {name: {**one.data, "requires": []} for name, one in left.items() if one and {*one.data} == {"observes"}}


def _missing_reads(
    toolkit: Toolkit, tool: ToolSpec, rows: Sequence[Observation], unknown: Sequence[str]
) -> Iterator[str]:
    """Yield which reads might explain refusals of a write, if its rows do not know what these show."""
    is_open = not tool.reads and any("without a known reason" in each for each in unknown)
    if reads := ", ".join(unread_before(toolkit, rows)) if is_open else "":
        yield f"{tool.name}: nothing explains some refusals: more could be learned if each call came after {reads}"
