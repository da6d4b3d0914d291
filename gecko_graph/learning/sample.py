"""Sample rows by branch: bounded in size, and independent of their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import nsmallest

from ..errors import GeckoError
from ..schemas.complaints import find_complaints
from ..state import JsonObject
from ..tools import Toolkit
from ..values.digest import digest, find_non_json, pack, unpack
from ..values.observation import BadRows, Observation, kind_of

PER_BRANCH, BRANCHES = 400, 60
LESSONS, SAYS, PARTS = 10_000, 300, ("requires", "effects", "returns")
OTHER = "…"
_mark = lru_cache(maxsize=10_000)(digest)


@dataclass(slots=True)
class Sampler:
    """Rows by tool and branch: those with the smallest digests of each, packed.

    Args:
        toolkit: The tools; rows of unknown tools, or with invalid arguments, count as bad.
    """

    toolkit: Toolkit
    bad: BadRows = field(default_factory=BadRows)
    seen: int = 0
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    lessons: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    closed: set[tuple[str, str, str]] = field(default_factory=set)
    _rows: dict[tuple[str, str], dict[int, bytes]] = field(default_factory=dict)

    def add(self, rows: Iterable[Observation], first: int = 1) -> None:
        for number, row in enumerate(rows, first):
            if not isinstance(row, Observation):
                raise GeckoError(f"row {number}: expected an Observation, got {type(row).__name__}: see read_file")
            self.seen += 1
            if cause := self._fault(row):
                self.bad.add(cause, row.source or f"row {number}")
                continue
            branch = self._branch(row.tool, "" if row.status == "ok" else kind_of(row.result, row.args))
            self.counts[row.tool][branch] += 1
            self._take_lessons(row)
            self._keep((row.tool, branch), int(row.digest[:16], 16), pack(row.to_row(masked=False)))

    def merge(self, other: Sampler) -> None:
        """Add another sample of the same tools; the result is the sample of all rows."""
        self.seen += other.seen
        self.bad.merge(other.bad)
        self.lessons.update(other.lessons)
        self.closed |= other.closed
        for tool, counts in other.counts.items():
            for kind, count in counts.items():
                branch = self._branch(tool, kind)
                self.counts[tool][branch] += count
                for mark, packed in other._smallest((tool, kind)):
                    self._keep((tool, branch), mark, packed)

    def _take_lessons(self, row: Observation) -> None:
        """Count the agents' proposals on a tool's contract; those that a call has closed are excluded."""
        for each in (one for one in row.lessons if isinstance(one, dict) and one.get("part") in PARTS):
            key = (row.tool, str(each["part"]), str(each.get("says"))[:SAYS])
            if key in self.lessons or len(self.lessons) < LESSONS:
                self.lessons[key] += 1
                self.closed |= {key} if each.get("status") == "closed" else set()

    def proposals(self) -> dict[str, list[JsonObject]]:
        """Return tool to the agents' open proposals, the most frequent first."""
        found: dict[str, list[JsonObject]] = {}
        for key, count in sorted(self.lessons.items(), key=lambda pair: (pair[0][0], -pair[1], pair[0])):
            if key not in self.closed:
                tool, part, says = key
                found.setdefault(tool, []).append({"part": part, "says": says, "for": count, "status": "proposed"})
        return found

    def _branch(self, tool: str, kind: str) -> str:
        """Return a kind, or `OTHER` if it is not among the first by digest, regardless of their order."""
        counts = self.counts.setdefault(tool, Counter())
        if kind in counts or not kind:
            return kind
        counts[kind] = 0
        if len(own := counts.keys() - {"", OTHER}) > BRANCHES:
            last = max(own, key=_mark)
            counts[OTHER] += counts.pop(last)
            for mark, packed in self._rows.pop((tool, last), {}).items():
                self._keep((tool, OTHER), mark, packed)
        return kind if kind in counts else OTHER

    def _fault(self, row: Observation) -> str:
        tool = self.toolkit.get(row.tool)
        if tool is None:
            return "its tool is not among these"
        if find_non_json(row.to_row(masked=False)):
            return "no JSON that can be stored"
        if find_complaints(tool, row.args):
            return "its arguments break the tool's document"
        return ""

    def _keep(self, key: tuple[str, str], mark: int, packed: bytes) -> None:
        rows = self._rows.setdefault(key, {})
        rows.setdefault(mark, packed)  # equal calls in equal states count once
        if len(rows) > 2 * PER_BRANCH:
            self._rows[key] = dict(self._smallest(key))

    def _smallest(self, key: tuple[str, str]) -> list[tuple[int, bytes]]:
        return nsmallest(PER_BRANCH, self._rows.get(key, {}).items())

    def tools(self) -> list[str]:
        return [name for name in self.toolkit.names if name in self.counts]

    def refused_alike(self, tool: str) -> list[str]:
        own = self.counts[tool].keys() - {"", OTHER}
        return [name for name in self.tools() if name != tool and own & self.counts[name].keys()]

    def rows(self, tool: str) -> list[tuple[str, Observation]]:
        """Return a tool's sample, with the branch of each row, in the order of their digests."""
        kept = [(branch, self._smallest((name, branch))) for name, branch in self._rows if name == tool]
        found = sorted((mark, branch, packed) for branch, rows in kept for mark, packed in rows)
        return [(branch, Observation.from_row(unpack(packed))) for _, branch, packed in found]

    @property
    def left_out(self) -> int:
        """Number of rows that are duplicates, or beyond the sample's bounds."""
        return self.seen - self.bad.counts.total() - sum(min(len(rows), PER_BRANCH) for rows in self._rows.values())


def find_opposites(rows: Iterable[Observation]) -> list[str]:
    """Return the sources of rows that answer a call which others refuse in the same state: a clock, another version."""
    found: dict[str, list[Observation]] = {}
    for row in (each for each in rows if each.before is not None):
        found.setdefault(row.question, []).append(row)
    both = (some for some in found.values() if len({row.status for row in some}) > 1)
    return [", ".join(sorted({row.source or row.digest[:12] for row in some})) for some in both]
