"""Milestones and their constraints (ToolSandbox, section 2.3 and appendix A.7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

from ...state import Json, JsonObject
from .measures import (
    CLAIM_SCORES,
    Measures,
    Tolerance,
    call,
    compare_tables,
    find_added,
    is_same,
    is_same_change,
    judge_answer,
    measure_cell,
    subtract,
)
from .tables import MESSAGE, REST, SEEN, WRITES, Snapshot, Table

Kind: TypeAlias = Literal["snapshot", "addition", "removal", "update", "includes", "lacks", "guardrail"]

THRESHOLD = 0.9
"""Least similarity of a reached milestone, by default."""
NOISE = 1e-9
START = "start"
"""Reference of a constraint that compares with the conversation's first snapshot."""


class Missed(TypedDict):
    """A part of a snapshot that differs from the wanted value; of a minefield, the forbidden value.

    `part` is `call` (no call of the tool), `argument`, a column of the message, `seen`, `unseen`, `rows` (their
    number), `column`, `guard` (a table changed) or `order`; `place` the tool, argument, column, or path in the task
    state.
    """

    part: str
    place: str
    wanted: Json
    found: Json
    similarity: float
    unsure: NotRequired[bool]
    """True for a claim that could not be decided."""
    reason: NotRequired[str]
    """Why a claim does not hold, according to a rule or `claim_judge`."""


class Reached(TypedDict):
    """A milestone or minefield with its matched snapshot; None if there is none.

    `missed` lists the reasons for a score below the threshold, in the snapshot `nearest`; for a minefield the hits.
    """

    id: str
    similarity: float
    snapshot: int | None
    threshold: float
    text: str
    nearest: NotRequired[int]
    missed: NotRequired[list[Missed]]


def is_reached(one: Reached) -> bool:
    """Return whether a milestone reaches its threshold."""
    return one["similarity"] >= one["threshold"] - NOISE


@dataclass(frozen=True, slots=True)
class Fill:
    """Values of an earlier milestone's message that are inserted into this one's row.

    Args:
        read: Returns values by name from that message's row, one object for each notation.
        column: `content`, whose text has the names in braces; or a column of calls, whose arguments have these names.
    """

    read: Callable[[JsonObject], Sequence[JsonObject]]
    column: str


def _listed(value: Json) -> list[JsonObject]:
    return value if isinstance(value, list) else [value]


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition on one table of a snapshot.

    Args:
        table: `message`, or a path in the task state.
        kind: The table's rows, or those added, removed or changed since the reference; a guardrail: no changes.
            `includes`: the rows are among new or changed ones; `lacks`: among removed or changed ones.
        rows: The wanted rows; only their columns are compared.
        measures: Column to name of the measure; `exact` by default.
        tolerance: Allowed deviation of numbers, by column and name.
        reference: Id of the milestone to compare the table with, or `START`.
        fill: Values of the reference's message to insert into the row.
        permits: Calls whose own changes a guardrail permits.
        frees: Tools; if one of their calls has changed the table, the guardrail is ignored.
    """

    table: str
    kind: Kind = "snapshot"
    rows: tuple[JsonObject, ...] = ()
    measures: Measures = field(default_factory=dict)
    tolerance: Tolerance = field(default_factory=dict)
    reference: str | None = None
    fill: Fill | None = None
    permits: tuple[JsonObject, ...] = ()
    frees: frozenset[str] = frozenset()

    def compare(self, now: Snapshot, then: Snapshot | None) -> float:
        """Return the similarity of a snapshot, from 0 to 1.

        `then` is the snapshot of the constraint's reference; None if none was matched to it.
        """
        table, before = now.get(self.table, ()), (then or {}).get(self.table, ())
        if self.kind == "guardrail":
            return float(then is None or is_same(table, before) or self._is_permitted(now, before))
        found, among = self._select(table, before), self.kind in ("includes", "lacks")
        if found is None:
            return 0.0
        compared = (
            compare_tables(found, rows, self.measures, self.tolerance, among=among) for rows in self.wanted(then)
        )
        return max(compared, default=0.0)

    def _is_asked(self, made: JsonObject) -> bool:
        rows = (each for row in self.rows for name in ("calls", "attempts") for each in _listed(row.get(name, [])))
        return call([made], [*(self.permits or rows)], self.tolerance.get("calls", {})) == 1.0

    def _is_permitted(self, now: Snapshot, before: Table) -> bool:
        writes = (each for each in now.get(WRITES, ()) if self.permits and self._is_asked(each))
        changes = (each["tables"].get(self.table, ((), ())) for each in writes)
        return any(is_same_change((before, now.get(self.table, ())), change) for change in changes)

    def explain(self, now: Snapshot, then: Snapshot | None) -> list[Missed]:
        """Return the differences of a snapshot, each part by its measure."""
        if self.compare(now, then) >= 1 - NOISE:
            return []
        table, before = now.get(self.table, ()), (then or {}).get(self.table, ())
        if self.kind == "guardrail":
            return explain_change(self.table, before, table)
        if then is None and self.reference is not None:
            return [_miss("order", self.reference, "before this one", None)]
        found, among = self._select(table, before), self.kind in ("includes", "lacks")
        best = max(self.wanted(then), key=lambda rows: self._count(found or (), rows), default=None)
        if best is None:
            return [_miss("order", str(self.reference), "to give the value", None)]
        if found is None:
            both: Json = {"added": subtract(table, before), "removed": subtract(before, table)}
            return [_miss("rows", _path(self.table), {self.kind: [*best]}, both)]
        if not found or len(found) < len(best) or (len(found) > len(best) and not among):
            return [_miss("rows", _path(self.table), [*best], [*found])]
        return [each for row in best for each in self._explain_row(row, max(found, key=partial(self._count_row, row)))]

    def _count(self, found: Table, rows: Sequence[JsonObject]) -> float:
        return sum(max((self._count_row(row, each) for each in found), default=0.0) for row in rows)

    def _count_row(self, wanted: JsonObject, row: JsonObject) -> float:
        return sum(self._measure(row, column, target) for column, target in wanted.items())

    def _measure(self, row: JsonObject, column: str, target: Json) -> float:
        return measure_cell(row[column], target, column, self.measures, self.tolerance) if column in row else 0.0

    def _explain_row(self, wanted: JsonObject, row: JsonObject) -> Iterator[Missed]:
        for column, target in wanted.items():
            if (similarity := self._measure(row, column, target)) >= 1 - NOISE:
                continue
            if column in ("calls", "attempts"):
                yield from _explain_call(row.get(column) or [], target, self.tolerance.get(column, {}))
            elif column == "claims" and column in row:
                yield from _explain_claims(row[column], target)
            elif self.table in (MESSAGE, SEEN):
                content = "mentions" if isinstance(target, list) else "content"
                part = {"texts": "seen", "content": content}.get(column, column)
                yield _miss(part, "", target, None if part == "seen" else row.get(column), similarity)
            else:
                yield _miss("column", f"{_path(self.table)}/{column}", target, row.get(column), similarity)

    def show(self, now: Snapshot, then: Snapshot | None) -> list[Missed]:
        """Return a minefield's forbidden parts, with the values found."""
        found = self._select(now.get(self.table, ()), (then or {}).get(self.table, ())) or ()
        if self.table != MESSAGE or not found:
            return [_miss("rows", _path(self.table), [*self.rows], [*found], 1.0)]
        row = {**found[0], "attempts": [each for each in found[0].get("attempts", ()) if self._is_asked(each)]}
        parts = [(column, target, row.get(column)) for column, target in self.rows[0].items()]
        return [_miss({"attempts": "call"}.get(part, part), "", target, cell, 1.0) for part, target, cell in parts]

    def _select(self, table: Table, before: Table) -> Table | None:
        match self.kind:
            case "addition":
                return find_added(table, before)
            case "removal":
                return find_added(before, table)
            case "update":
                return subtract(table, before) if len(table) == len(before) else None
            case "includes":
                return subtract(table, before)
            case "lacks":
                return subtract(before, table)
        return table

    def wanted(self, then: Snapshot | None) -> Sequence[Sequence[JsonObject]]:
        """Return the wanted rows, once for each value of the reference that can be inserted."""
        if self.fill is None:
            return [self.rows]
        messages = (then or {}).get(MESSAGE, ())
        values = self.fill.read(messages[0]) if messages else ()
        return [[row] for value in values for row in _fill(self.rows[0], value, self.fill.column)]


def _fill(row: JsonObject, values: JsonObject, column: str) -> Sequence[JsonObject]:
    if column == "content":
        return [{**row, "content": _fill_text(row["content"], values)}]
    if column == "claims":
        claims = [{kind: _fill_text(text, values) for kind, text in claim.items()} for claim in row["claims"]]
        return [{**row, "claims": claims}]
    calls = _listed(row[column])
    filled = (
        args for call in calls for args in ((call, {**call["args"], **values}), (call, {**values, **call["args"]}))
    )
    return [{**row, column: {**call, "args": args}} for call, args in filled]


def _fill_text(text: str, values: JsonObject) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


# differences of a snapshot -------------------------------------------------------------------------------------------


def _miss(part: str, place: str, wanted: Json, found: Json, similarity: float = 0.0) -> Missed:
    return {"part": part, "place": place, "wanted": wanted, "found": found, "similarity": similarity}


def _path(table: str) -> str:
    return table if table == SEEN else "/" + table.replace(".", "/")


def _name_calls(calls: Sequence[JsonObject]) -> str:
    return " or ".join(dict.fromkeys(str(each["name"]) for each in calls))


def _explain_call(made: Sequence[JsonObject], target: Json, tolerance: Mapping[str, float]) -> Iterator[Missed]:
    """Yield the differing arguments of the nearest call; or that there is no call of the tool."""
    wanted = _listed(target)
    pairs = [(mine, one) for one in wanted for mine in made if mine["name"] == one["name"]]
    if not pairs:
        asked: Json = [{"name": each["name"], "args": each["args"]} for each in wanted]
        yield _miss("call", _name_calls(wanted), asked, [each["name"] for each in made])
        return
    told = (list(_explain_arguments(mine["args"], one, tolerance)) for mine, one in pairs)
    yield from min(told, key=len)


def _explain_claims(answer: JsonObject, claims: Sequence[JsonObject]) -> Iterator[Missed]:
    """Yield the claims that do not hold, with the sentences that they were compared with."""
    for claim in claims:
        (kind, text), judged = *claim.items(), judge_answer(claim, answer)
        if judged.verdict != "holds":
            unsure = judged.verdict == "unsure"
            missed = _miss("claim", kind, text, judged.sentence, CLAIM_SCORES[judged.verdict])
            yield {**missed, "unsure": True} if unsure else {**missed, "reason": judged.reason}


def _explain_arguments(args: JsonObject, wanted: JsonObject, tolerance: Mapping[str, float]) -> Iterator[Missed]:
    for name, value in wanted["args"].items():
        part = {"name": wanted["name"], "args": {name: value}}
        if not call([{"name": wanted["name"], "args": args}], [part], tolerance):
            yield _miss("argument", f"{wanted['name']}.{name}", value, args.get(name))


def explain_change(table: str, before: Table, now: Table) -> list[Missed]:
    """Return the changes of a table that should be unchanged; of changed rows only the differing values."""
    gone, new = subtract(before, now), subtract(now, before)
    if len(gone) != len(new):
        return [_miss("guard", _path(table), gone, new)]
    above = "" if table.startswith(REST) else _path(table)
    return [
        _miss(
            "guard", "/".join(filter(None, [above, str(old.get("key", "")), column])), old.get(column), row.get(column)
        )
        for old, row in zip(gone, new, strict=True)
        for column in {**old, **row}
        if old.get(column) != row.get(column)
    ]


def distance(missed: Sequence[Missed]) -> tuple[int, float]:
    """Return a snapshot's distance: the number of parts of other identity, then the dissimilarity of the rest."""
    strange = sum(each["part"] in ("call", "sender", "recipient", "rows", "order") for each in missed)
    return strange, sum(1 - each["similarity"] for each in missed)


@dataclass(frozen=True, slots=True)
class Milestone:
    """Constraints on one snapshot of a conversation.

    Args:
        id: Its name.
        constraints: Conditions on the snapshot; the similarity is their geometric mean.
        after: Ids of the milestones that must be reached before.
        last: Whether it is matched to the last snapshot, which another one may share.
        threshold: Least similarity at which it is reached.
        text: The milestone as a sentence.
    """

    id: str
    constraints: tuple[Constraint, ...]
    after: tuple[str, ...] = ()
    last: bool = False
    threshold: float = THRESHOLD
    text: str = ""

    @property
    def references(self) -> frozenset[str]:
        """Ids of the milestones that its constraints compare with."""
        named = {each.reference for each in self.constraints if each.reference is not None}
        return frozenset(named - {START})

    @property
    def tools(self) -> frozenset[str]:
        """Names of the tools whose calls it requires."""
        rows = (row for each in self.constraints if each.table == MESSAGE for row in each.rows)
        return frozenset(str(call["name"]) for row in rows for call in _listed(row.get("calls") or []))

    def compare(self, trajectory: Sequence[Snapshot], index: int, places: Mapping[str, int]) -> float:
        """Return the geometric mean of its constraints' similarities; 0 for a broken guardrail.

        `index` is the snapshot to compare, `places` has those of the references.
        """
        product, count, now = 1.0, 0, trajectory[index]
        for constraint in self.constraints:
            product *= constraint.compare(now, _find_reference(constraint, trajectory, places))
            if product == 0:
                return 0.0
            count += constraint.kind != "guardrail"
        return product ** (1 / count) if count else product

    def explain(
        self, trajectory: Sequence[Snapshot], index: int, places: Mapping[str, int], *, bad: bool = False
    ) -> list[Missed]:
        """Return the differences of a snapshot; with `bad`, its parts that a minefield forbids."""
        pairs = [(each, _find_reference(each, trajectory, places)) for each in self.constraints]
        told = (each.show if bad else each.explain for each, _ in pairs)
        return [one for explain, (_, then) in zip(told, pairs, strict=True) for one in explain(trajectory[index], then)]


def _find_reference(
    constraint: Constraint, trajectory: Sequence[Snapshot], places: Mapping[str, int]
) -> Snapshot | None:
    place = 0 if constraint.reference == START else places.get(constraint.reference or "")
    return None if place is None else trajectory[place]
