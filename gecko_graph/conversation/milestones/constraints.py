"""Milestones and the constraints that they are made of (ToolSandbox, section 2.3 and appendix A.7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from typing_extensions import TypedDict

from ...state import JsonObject
from .measures import Measures, Tolerance, compare_tables, find_added, find_changed, is_same, subtract
from .tables import MESSAGE, Snapshot, Table

Kind: TypeAlias = Literal["snapshot", "addition", "removal", "update", "includes", "lacks", "guardrail"]

START = "start"
"""The reference of a constraint that compares with the conversation's first snapshot."""


@dataclass(frozen=True, slots=True)
class Fill:
    """Values of an earlier milestone's message that are put into this one's row.

    Args:
        read: From that message's row to values by name, one object for each way to write them.
        column: `content`, whose text has names in braces; or a column of calls, whose arguments have these names.
    """

    read: Callable[[JsonObject], Sequence[JsonObject]]
    column: str


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition on one table of a snapshot.

    Args:
        table: `message`, or a path in the task state.
        kind: The table's rows, or what was added, removed or changed since the reference; a guardrail: nothing was.
            `includes` and `lacks`: the rows are among those that are new or changed, gone or changed.
        rows: The rows that are wanted; only their columns are compared.
        measures: Name of the measure by column, `exact` where there is none.
        tolerance: How far numbers may be off, by column and name.
        reference: Id of the milestone that the table is compared with, or `START`.
        fill: Values of the reference's message to put into the row.
    """

    table: str
    kind: Kind = "snapshot"
    rows: tuple[JsonObject, ...] = ()
    measures: Measures = field(default_factory=dict)
    tolerance: Tolerance = field(default_factory=dict)
    reference: str | None = None
    fill: Fill | None = None

    def compare(self, now: Snapshot, then: Snapshot | None) -> float:
        """Return the similarity of a snapshot, from 0 to 1.

        `then` is the snapshot of the constraint's reference; None where none was matched to it.
        """
        table, before = now.get(self.table, ()), (then or {}).get(self.table, ())
        if self.kind == "guardrail":
            return float(then is None or is_same(table, before))
        found, among = self._select(table, before), self.kind in ("includes", "lacks")
        if found is None:
            return 0.0
        compared = (
            compare_tables(found, rows, self.measures, self.tolerance, among=among) for rows in self.wanted(then)
        )
        return max(compared, default=0.0)

    def _select(self, table: Table, before: Table) -> Table | None:
        match self.kind:
            case "addition":
                return find_added(table, before)
            case "removal":
                return find_added(before, table)
            case "update":
                return find_changed(table, before)
            case "includes":
                return subtract(table, before)
            case "lacks":
                return subtract(before, table)
        return table

    def wanted(self, then: Snapshot | None) -> Sequence[Sequence[JsonObject]]:
        """Return the wanted rows, once for each value of the reference that can be put into them."""
        if self.fill is None:
            return [self.rows]
        messages = (then or {}).get(MESSAGE, ())
        values = self.fill.read(messages[0]) if messages else ()
        return [[row] for value in values for row in _fill(self.rows[0], value, self.fill.column)]


def _fill(row: JsonObject, values: JsonObject, column: str) -> Sequence[JsonObject]:
    if column == "content":
        text = row["content"]
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", str(value))
        return [{**row, "content": text}]
    calls = row[column] if isinstance(row[column], list) else [row[column]]
    filled = (
        args for call in calls for args in ((call, {**call["args"], **values}), (call, {**values, **call["args"]}))
    )
    return [{**row, column: {**call, "args": args}} for call, args in filled]


@dataclass(frozen=True, slots=True)
class Milestone:
    """Constraints on one snapshot of a conversation.

    Args:
        id: Its name.
        constraints: What the snapshot must show; the similarity is their geometric mean.
        after: Ids of the milestones that must be reached before.
        last: It is compared with the last snapshot, which another one may share.
    """

    id: str
    constraints: tuple[Constraint, ...]
    after: tuple[str, ...] = ()
    last: bool = False

    @property
    def references(self) -> frozenset[str]:
        """Ids of the milestones that its constraints compare with."""
        named = {each.reference for each in self.constraints if each.reference is not None}
        return frozenset(named - {START})

    def compare(self, trajectory: Sequence[Snapshot], index: int, places: Mapping[str, int]) -> float:
        """Return the geometric mean of its constraints' similarities; a broken guardrail makes it 0.

        `index` is the snapshot to look at, `places` has those of the references.
        """
        product, count, now = 1.0, 0, trajectory[index]
        for constraint in self.constraints:
            place = 0 if constraint.reference == START else places.get(constraint.reference or "")
            then = None if place is None else trajectory[place]
            product *= constraint.compare(now, then)
            if product == 0:
                return 0.0
            count += constraint.kind != "guardrail"
        return product ** (1 / count) if count else product


class Reached(TypedDict):
    """A milestone with the snapshot that was matched to it; None where there is none."""

    id: str
    similarity: float
    snapshot: int | None
