"""Milestones and minefields as a scenario's file has them, and the guardrails that follow from their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ...errors import did_you_mean
from ...state import Json, JsonObject
from .constraints import START, Constraint, Fill, Milestone
from .goal import Goal
from .measures import MEASURES
from .tables import MESSAGE, REST, SEEN, find_names, find_table

Party: TypeAlias = Literal["user", "agent", "tools"]
Changed: TypeAlias = Literal["snapshot", "addition", "removal", "update", "includes", "lacks"]

KINDS: tuple[Changed, ...] = ("snapshot", "addition", "removal", "update", "includes", "lacks")
COLUMNS = ("sender", "recipient", "content", "mentions", "seen", "unseen")
ALIKE = {"content": "rouge_l", "calls": "call", "attempts": "call"}
"""Measures of a message's columns, where a milestone names no other; all other columns are `exact`."""

DECIMALS = range(4)
"""An answer may show a number of a result with so many decimals."""


class Entry(BaseModel):
    """A part of a scenario's file: other keys and types than those named are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class MessageEntry(Entry):
    """What a message must be like."""

    sender: Party | None = None
    recipient: Party | None = None
    content: str | None = None
    measure: str | None = None
    mentions: list[Json] | None = Field(None, min_length=1)
    seen: list[Json] | None = Field(None, min_length=1)
    unseen: list[str] | None = None


class CallEntry(Entry):
    """A call that a message has made."""

    name: str = Field(min_length=1)
    args: JsonObject = Field(default_factory=dict)


class TableEntry(Entry):
    """What a table of the task state must be like, or how it must have changed since a milestone."""

    at: str = Field(min_length=1)
    snapshot: list[JsonObject] | None = None
    addition: list[JsonObject] | None = None
    removal: list[JsonObject] | None = None
    update: list[JsonObject] | None = None
    includes: list[JsonObject] | None = None
    lacks: list[JsonObject] | None = None
    since: str | None = None
    measures: dict[str, str] = Field(default_factory=dict)
    tolerance: dict[str, float] = Field(default_factory=dict)

    def changed(self) -> list[tuple[Changed, list[JsonObject]]]:
        """Return the kinds of change that are written, with their rows."""
        return [(kind, rows) for kind in KINDS if (rows := getattr(self, kind)) is not None]


class SourceEntry(Entry):
    """Where a value comes from that stands in braces in the message, or is an argument of the call."""

    milestone: str
    call: str | None = None
    path: list[str | int] = Field(default_factory=list)
    name: str = Field(pattern=r"^\w+$")


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) or value is None else [value]


class MilestoneEntry(Entry):
    """One milestone or minefield."""

    id: str | None = Field(None, min_length=1)
    after: Annotated[list[str] | None, BeforeValidator(_listed)] = None
    message: MessageEntry | None = None
    call: Annotated[list[CallEntry] | None, BeforeValidator(_listed)] = None
    state: Annotated[list[TableEntry], BeforeValidator(_listed)] = Field(default_factory=list)
    source: SourceEntry | None = Field(None, alias="from")
    tolerance: dict[str, float] = Field(default_factory=dict)
    unchanged: list[str] | None = None
    last: bool = False


def name_entries(entries: Sequence[MilestoneEntry]) -> list[tuple[str, MilestoneEntry, list[str]]]:
    """Return entries with their ids and what they come after: the one before, unless they say otherwise."""
    ids = [entry.id or str(number) for number, entry in enumerate(entries, 1)]
    chain = [[], *([each] for each in ids)]
    return [
        (id_, entry, chain[at] if entry.after is None else entry.after)
        for at, (id_, entry) in enumerate(zip(ids, entries, strict=True))
    ]


def find_problems(entries: Sequence[MilestoneEntry], state: JsonObject, *, part: str) -> Iterator[str]:
    """Yield what is wrong with milestones beyond their form, each with its place."""
    named = name_entries(entries)
    ids = [id_ for id_, _, _ in named]
    for number, (id_, entry, after) in enumerate(named):
        place = f"{part}[{number}]"
        if ids.count(id_) > 1:
            yield f"{place}: id: {id_!r} stands twice"
        if not (entry.message or entry.call or entry.state or (entry.last and entry.unchanged)):
            yield f"{place}: expected one of message, call, state"
        for key, wanted in _find_references(entry, after):
            if wanted not in (*ids, START):
                yield f"{place}: {key}: unknown milestone {wanted!r}{did_you_mean(wanted, ids)}"
        yield from (f"{place}: {problem}" for problem in _find_mistakes(entry, state))
    if cycle := _find_cycle({id_: after for id_, _, after in named}):
        yield f"{part}: after: a cycle: {' after '.join(cycle)}"


def _find_references(entry: MilestoneEntry, after: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield from (("after", each) for each in after)
    yield from (("state: since", table.since) for table in entry.state if table.since)
    if entry.source:
        yield "from: milestone", entry.source.milestone


def _find_mistakes(entry: MilestoneEntry, state: JsonObject) -> Iterator[str]:
    measures = [entry.message.measure] if entry.message else []
    for measure in (*measures, *(name for table in entry.state for name in table.measures.values())):
        if measure not in (None, *MEASURES):
            yield f"unknown measure {measure!r}; measures: {', '.join(MEASURES)}"
    if entry.message and not entry.message.model_dump(exclude_none=True, exclude={"measure"}):
        yield f"message: expected one of {', '.join(COLUMNS)}"
    yield from _find_source_mistakes(entry)
    for name in entry.unchanged or ():
        if not name.startswith(REST) and name.partition(".")[0] not in state:
            yield f"unchanged: the state has no {name!r}{did_you_mean(name, state)}"
    for number, table in enumerate(entry.state):
        yield from (f"state[{number}]: {problem}" for problem in _find_table_mistakes(table, state))


def _find_source_mistakes(entry: MilestoneEntry) -> Iterator[str]:
    content = entry.message.content if entry.message else None
    if entry.source and not (entry.call or content):
        yield "from: expected a call or a message with content beside it"
    elif entry.source and content and not entry.call and f"{{{entry.source.name}}}" not in content:
        yield f"from: name: the message's content has no {{{entry.source.name}}}"


def _find_table_mistakes(table: TableEntry, state: JsonObject) -> Iterator[str]:
    if len(table.changed()) != 1:
        yield f"expected exactly one of {', '.join(KINDS)}"
    if table.at.partition(".")[0] not in state:
        yield f"at: the state has no {table.at.partition('.')[0]!r}{did_you_mean(table.at, state)}"
        return
    columns = {column for _, rows in table.changed() for row in rows for column in row}
    for column in sorted({*table.measures, *table.tolerance} - columns):
        yield f"measures, tolerance: no row has the column {column!r}{did_you_mean(column, columns)}"
    known = {column for row in find_table(state, table.at) for column in row}
    for column in sorted(columns if known else ()):
        if column not in known:
            hint = did_you_mean(column, known)
            yield f"unknown column {column!r} of {table.at}{hint}; columns: {', '.join(sorted(known))}"


def _find_cycle(after: Mapping[str, Sequence[str]]) -> list[str]:
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def build_goal(milestones: Sequence[MilestoneEntry], minefields: Sequence[MilestoneEntry], state: JsonObject) -> Goal:
    """Build what is scored from entries without problems.

    A minefield's call counts as soon as it is attempted; the tables of the start state are guarded.
    """
    return Goal(_build_all(milestones, state, "calls"), _build_all(minefields, state, "attempts", guarded=False))


def _build_all(
    entries: Sequence[MilestoneEntry], state: JsonObject, column: str, *, guarded: bool = True
) -> tuple[Milestone, ...]:
    named = name_entries(entries)
    built = [
        Milestone(id_, tuple(_build(entry, column)), () if entry.last else tuple(after), last=entry.last)
        for id_, entry, after in named
    ]
    if not guarded:
        return tuple(built)
    tables = find_names(state, [table.at for entry in entries for table in entry.state])
    listed = {id_: entry.unchanged for id_, entry, _ in named}
    return tuple(_guard(each, built, tables, listed[each.id]) for each in built)


def _build(entry: MilestoneEntry, column: str) -> Iterator[Constraint]:
    source, filled = entry.source, column if entry.call else "content"
    fill = Fill(partial(find_values, source=source), filled) if source else None
    row, measures = _build_row(entry, column)
    if row:
        tolerance = {column: entry.tolerance} if entry.tolerance else {}
        yield Constraint(MESSAGE, "snapshot", (row,), measures, tolerance, source.milestone if source else None, fill)
    if entry.message and entry.message.mentions:
        yield Constraint(MESSAGE, rows=({"content": entry.message.mentions},), measures={"content": "mentions"})
    if entry.message and entry.message.seen:
        yield Constraint(SEEN, rows=({"texts": entry.message.seen},), measures={"texts": "mentions"})
    if entry.message and entry.message.unseen is not None:
        yield Constraint(SEEN, rows=({"unseen": entry.message.unseen},))
    for table in entry.state:
        for kind, rows in table.changed():
            measures = table.measures | {name: "close" for name in table.tolerance}
            tolerance = {name: {name: most} for name, most in table.tolerance.items()}
            since = None if kind == "snapshot" else table.since or START
            yield Constraint(table.at, kind, tuple(rows), measures, tolerance, since)


def _build_row(entry: MilestoneEntry, column: str) -> tuple[JsonObject, dict[str, str]]:
    row: JsonObject = {}
    if entry.message:
        row = entry.message.model_dump(exclude_none=True, exclude={"measure", "mentions", "seen", "unseen"})
    if entry.call:
        row[column] = [{"name": call.name, "args": call.args} for call in entry.call]
    chosen = {"content": entry.message.measure} if entry.message and entry.message.measure else {}
    return row, {name: {**ALIKE, **chosen}[name] for name in row if name in ALIKE}


def find_values(message: JsonObject, *, source: SourceEntry) -> list[JsonObject]:
    """Return the values that the calls of a message returned at a path, each in every form that a text may show."""
    found = []
    for call in message.get("calls", ()):
        if source.call in (None, call["name"]):
            try:
                value = call["result"]
                for key in source.path:
                    value = value[key]
            except (LookupError, TypeError):
                continue
            rounded = [f"{value:.{digits}f}" for digits in DECIMALS] if isinstance(value, float) else []
            found += [{source.name: form} for form in (value, *rounded)]
    return found


def _guard(one: Milestone, all_: Sequence[Milestone], tables: Sequence[str], listed: Sequence[str] | None) -> Milestone:
    """Return a milestone with guardrails: between it and those before it nothing else has changed.

    A table is not guarded where a milestone that may be reached in between changes it.
    """
    guards = [
        Constraint(table, "guardrail", reference=before)
        for before in one.after or (START,)
        for table in (tables if listed is None else listed)
        if listed is not None or not _may_change(table, one, before, all_)
    ]
    return replace(one, constraints=(*one.constraints, *guards))


def _may_change(table: str, one: Milestone, before: str, all_: Sequence[Milestone]) -> bool:
    earlier = {before, *_find_earlier(before, all_)}
    between = [each for each in all_ if each.id not in earlier and one.id not in _find_earlier(each.id, all_)]
    changed = [f"{constraint.table}." for each in between for constraint in each.constraints]
    return any(f"{table}.".startswith(other) or other.startswith(f"{table}.") for other in changed)


def _find_earlier(id_: str, all_: Sequence[Milestone]) -> set[str]:
    after = {each.id: each.after for each in all_}
    found: set[str] = set()
    open_ = [id_]
    while open_:
        new = set(after.get(open_.pop(), ())) - found
        found |= new
        open_ += new
    return found
