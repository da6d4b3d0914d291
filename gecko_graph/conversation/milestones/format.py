"""Milestones and minefields in a scenario's file, and the guardrails that follow from their order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ...errors import did_you_mean
from ...models.formatting import cut
from ...state import Json, JsonObject
from ...values.places import scalars_of
from .constraints import START, THRESHOLD, Constraint, Fill, Milestone
from .entry import Entry
from .goal import Goal, find_earlier
from .measures import MEASURES
from .tables import MESSAGE, REST, SEEN, find_names, find_table

Party: TypeAlias = Literal["user", "agent", "tools"]
Changed: TypeAlias = Literal["snapshot", "addition", "removal", "update", "includes", "lacks"]

KINDS: tuple[Changed, ...] = get_args(Changed)
COLUMNS = ("sender", "recipient", "content", "claims", "mentions", "seen", "unseen")
DECIMALS = range(4)
"""Numbers of decimals with which an answer may show a number of a result."""

NAME_CHARS = 80
LONGEST_VALUE = 120


def _check_measure(name: str) -> str:
    if name not in MEASURES:
        raise ValueError(f"unknown measure {name!r}; measures: {', '.join(MEASURES)}")
    return name


MeasureName: TypeAlias = Annotated[str, AfterValidator(_check_measure)]


class ClaimEntry(Entry):
    """A sentence that an answer must say, deny, ask the user for, or not contradict.

    `answers` is the text of a good answer: another answer must give the requested facts without contradicting it.
    """

    says: str | None = Field(None, pattern=r"\w")
    denies: str | None = Field(None, pattern=r"\w")
    asks: str | None = Field(None, pattern=r"\w")
    agrees: str | None = Field(None, pattern=r"\w")
    answers: str | None = Field(None, pattern=r"\w")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.model_dump(exclude_none=True)) != 1:
            raise ValueError("expected exactly one of says, denies, asks, agrees, answers")
        return self


class MessageEntry(Entry):
    """Conditions on a message; one with claims is from the agent to the user."""

    sender: Party | None = None
    recipient: Party | None = None
    content: str | None = None
    measure: MeasureName | None = None
    claims: list[ClaimEntry] | None = Field(None, min_length=1)
    mentions: list[Json] | None = Field(None, min_length=1)
    seen: list[Json] | None = Field(None, min_length=1)
    unseen: list[str] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if all(getattr(self, name) is None for name in COLUMNS):
            raise ValueError(f"expected one of {', '.join(COLUMNS)}")
        return self

    @property
    def texts(self) -> str:
        """Content and claims, in which values may be inserted."""
        claims = [text for each in self.claims or () for text in each.model_dump(exclude_none=True).values()]
        return "\n".join([self.content or "", *claims])


class CallEntry(Entry):
    """A call of a message."""

    name: str = Field(min_length=1)
    args: JsonObject = Field(default_factory=dict)


class TableEntry(Entry):
    """Conditions on a table of the task state, or on its changes since a milestone."""

    at: str = Field(min_length=1)
    snapshot: list[JsonObject] | None = None
    addition: list[JsonObject] | None = None
    removal: list[JsonObject] | None = None
    update: list[JsonObject] | None = None
    includes: list[JsonObject] | None = None
    lacks: list[JsonObject] | None = None
    since: str | None = None
    measures: dict[str, MeasureName] = Field(default_factory=dict)
    tolerance: dict[str, float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if sum(getattr(self, kind) is not None for kind in KINDS) != 1:
            raise ValueError(f"expected exactly one of {', '.join(KINDS)}")
        return self

    @property
    def change(self) -> tuple[Changed, list[JsonObject]]:
        """The kind of change, with its rows."""
        return next((kind, rows) for kind in KINDS if (rows := getattr(self, kind)) is not None)


class SourceEntry(Entry):
    """The source of a value in braces in the message, or of an argument of the call."""

    milestone: str
    call: str | None = None
    path: list[str | int] = Field(default_factory=list)
    name: str = Field(pattern=r"^\w+$")


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) or value is None else [value]


class MilestoneEntry(Entry):
    id: str | None = Field(None, min_length=1)
    after: Annotated[list[str] | None, BeforeValidator(_listed)] = None
    message: MessageEntry | None = None
    call: Annotated[list[CallEntry] | None, BeforeValidator(_listed)] = None
    state: Annotated[list[TableEntry], BeforeValidator(_listed)] = Field(default_factory=list)
    source: SourceEntry | None = Field(None, alias="from")
    tolerance: dict[str, float] = Field(default_factory=dict)
    unchanged: list[str] | None = None
    last: bool = False
    threshold: float = Field(THRESHOLD, gt=0, le=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not (self.message or self.call or self.state or (self.last and self.unchanged)):
            raise ValueError("expected one of message, call, state")
        texts = self.message.texts if self.message else ""
        if self.source and not self.call and f"{{{self.source.name}}}" not in texts:
            raise ValueError(
                f"from: expected a call, or a message with {{{self.source.name}}} in its content or a claim"
            )
        return self


def name_entries(entries: Sequence[MilestoneEntry]) -> list[tuple[str, MilestoneEntry, list[str]]]:
    """Return entries with their ids and predecessors: by default the previous entry.

    An entry without an id is named by its condition.
    """
    ids: list[str] = []
    for entry in entries:
        name = entry.id or _describe(entry)
        again = sum(each == name or each.startswith(f"{name} (") for each in ids) if entry.id is None else 0
        ids.append(f"{name} ({again + 1})" if again else name)
    chain = [[], *([each] for each in ids)]
    return [
        (id_, entry, chain[at] if entry.after is None else entry.after)
        for at, (id_, entry) in enumerate(zip(ids, entries, strict=True))
    ]


def _describe(entry: MilestoneEntry) -> str:
    calls = " or ".join(
        f"{each.name}({', '.join(f'{name}: {value}' for name, value in each.args.items())})"
        for each in entry.call or ()
    )
    said = entry.message.content or "" if entry.message else ""
    message = f"message{said and ': '}{said}" if entry.message else ""
    tables = ", ".join(f"{table.change[0]} of {table.at}" for table in entry.state)
    return cut("; ".join(filter(None, [message, calls, tables])) or "the end", budget=NAME_CHARS)


def find_problems(entries: Sequence[MilestoneEntry], state: JsonObject, *, part: str) -> Iterator[str]:
    named = name_entries(entries)
    ids = [id_ for id_, _, _ in named]
    for number, (id_, entry, after) in enumerate(named):
        place = f"{part}[{number}]"
        if id_ in ids[:number]:
            yield f"{place}: id: {id_!r} is a duplicate"
        named_ids = [("after", each) for each in after]
        named_ids += [("state: since", table.since) for table in entry.state if table.since]
        named_ids += [("from: milestone", entry.source.milestone)] if entry.source else []
        for key, wanted in named_ids:
            if wanted not in (*ids, START):
                yield f"{place}: {key}: unknown milestone {wanted!r}{did_you_mean(wanted, ids)}"
        yield from (f"{place}: {problem}" for problem in _find_mistakes(entry, state))
    try:
        TopologicalSorter({id_: after for id_, _, after in named}).prepare()
    except CycleError as error:
        yield f"{part}: after: a cycle: {' after '.join(reversed(error.args[1]))}"


def _find_mistakes(entry: MilestoneEntry, state: JsonObject) -> Iterator[str]:
    """Yield the tables and columns that the state does not have."""
    unchanged = [("unchanged", name) for name in entry.unchanged or () if not name.startswith(REST)]
    for key, name in (*unchanged, *(("state: at", table.at) for table in entry.state)):
        if name.partition(".")[0] not in state:
            yield f"{key}: the state has no {name!r}{did_you_mean(name, state)}"
    for table in entry.state:
        columns = {column for row in table.change[1] for column in row}
        known = {column for row in find_table(state, table.at) for column in row} or columns
        for column in sorted(columns - known - {*map(str, scalars_of(state, keys=True))}):
            if hint := did_you_mean(column, known):  # otherwise it may be a column that a write adds
                yield f"state: unknown column {column!r} of {table.at}{hint}"
        for column in sorted({*table.measures, *table.tolerance} - columns):
            yield f"measures, tolerance: no row has the column {column!r}{did_you_mean(column, columns)}"


def build_goal(milestones: Sequence[Any], minefields: Sequence[Any], state: JsonObject) -> Goal:
    """Build the goal from entries, read or as JSON, without problems.

    A minefield's call counts when it is attempted, its content must match exactly; tables of the start state are
    guarded.
    """
    return Goal(_build_all(milestones, state, "calls"), _build_all(minefields, state, "attempts"))


def _build_all(read: Sequence[Any], state: JsonObject, column: str) -> tuple[Milestone, ...]:
    entries, built = [MilestoneEntry.model_validate(each) for each in read], []
    for id_, entry, after in name_entries(entries):
        after = [] if entry.last else after
        given = entry.model_dump(by_alias=True, exclude_unset=True, exclude={"after"})
        more: Any = {"last": entry.last, "threshold": entry.threshold, "text": explain(given)}
        built.append(Milestone(id_, tuple(_build(entry, column)), tuple(after), **more))
    if column == "attempts":
        return tuple(built)
    tables = find_names(state, [table.at for entry in entries for table in entry.state])
    return tuple(_guard(one, entry, built, tables) for one, entry in zip(built, entries, strict=True))


def _build(entry: MilestoneEntry, column: str) -> Iterator[Constraint]:
    source = entry.source
    filled = column if entry.call else "claims" if entry.message and entry.message.claims else "content"
    fill = Fill(partial(find_values, source=source, rounded=filled == "content"), filled) if source else None
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
        kind, rows = table.change
        measures = table.measures | {name: "close" for name in table.tolerance}
        tolerance = {name: {name: most} for name, most in table.tolerance.items()}
        since = None if kind == "snapshot" else table.since or START
        yield Constraint(table.at, kind, tuple(rows), measures, tolerance, since)


def _build_row(entry: MilestoneEntry, column: str) -> tuple[JsonObject, dict[str, str]]:
    row: JsonObject = {}
    if entry.message:
        row = entry.message.model_dump(exclude_none=True, exclude={"measure", "mentions", "seen", "unseen"})
        row = {"sender": "agent", "recipient": "user", **row} if entry.message.claims else row
    if entry.call:
        row[column] = [{"name": call.name, "args": call.args} for call in entry.call]
    given = (entry.message and entry.message.measure) or ("rouge_l" if column == "calls" else "exact")
    measures = {"content": given, column: "call", "claims": "claims"}
    return row, {name: measures[name] for name in row if name in measures}


def find_values(message: JsonObject, *, source: SourceEntry, rounded: bool) -> list[JsonObject]:
    """Return the values at a path in the results of a message's calls; if `rounded`, also with fewer decimals."""
    found = []
    for call in message.get("calls", ()):
        if source.call in (None, call["name"]):
            try:
                value = call["result"]
                for key in source.path:
                    value = value[key]
            except (LookupError, TypeError):
                continue
            digits = DECIMALS if rounded and isinstance(value, float) else ()
            found += [{source.name: form} for form in (value, *(f"{value:.{each}f}" for each in digits))]
    return found


def _guard(one: Milestone, entry: MilestoneEntry, all_: Sequence[Milestone], tables: Sequence[str]) -> Milestone:
    """Return a milestone with guardrails: since its predecessors nothing has changed except by its own call.

    If the author lists no tables, those are unguarded that milestones in between need: tables that their state names,
    or that the tool of their call has changed.
    """
    given = {entry.source.name} if entry.source else set[str]()
    calls = tuple(each.model_dump(exclude={"args": given}) for each in entry.call or ())
    guards = []
    for before in one.after or (START,):
        between = _find_between(one, before, all_)
        frees = frozenset(name for each in between for name in each.tools) if entry.unchanged is None else frozenset()
        guards += [
            Constraint(table, "guardrail", tolerance=tolerance, reference=before, permits=calls, frees=frees)
            for tolerance in [{"calls": entry.tolerance}]
            for table in (tables if entry.unchanged is None else entry.unchanged)
            if entry.unchanged is not None or not _may_change(table, between)
        ]
    return replace(one, constraints=(*one.constraints, *guards))


def _may_change(table: str, between: Sequence[Milestone]) -> bool:
    named = [f"{constraint.table}." for each in between for constraint in each.constraints]
    return any(f"{table}.".startswith(other) or other.startswith(f"{table}.") for other in named)


def _find_between(one: Milestone, before: str, all_: Sequence[Milestone]) -> list[Milestone]:
    """Return the milestones that may be reached between two, including the later one."""
    earlier = {before, *find_earlier(before, all_)}
    return [each for each in all_ if each.id not in earlier and one.id not in find_earlier(each.id, all_)]


_CHANGES = {
    "snapshot": "{at} is exactly {rows}",
    "addition": "{at} has gained exactly {rows}",
    "removal": "{at} has lost exactly {rows}",
    "update": "{at} has changed exactly to {rows}",
    "includes": "{at} has gained, or changed to, {rows}",
    "lacks": "{at} has lost, or changed, {rows}",
}
_ANSWERS = {"content": "is like", "mentions": "names"}
_CLAIMS = {
    "says": "says {}",
    "denies": "denies {}",
    "asks": "asks for {}",
    "agrees": "does not contradict {}",
    "answers": "gives what the user asked for and denies nothing of {}",
}


def explain(entry: JsonObject) -> str:
    """Describe a milestone, in the form of a file, as a sentence."""
    begin = "At the end" if entry.get("last") else f"After {' and '.join(entry['after'])}" if entry.get("after") else ""
    message = entry.get("message") or {}
    calls = [f"{call['name']}{_show(call.get('args', {}))}" for call in _listed(entry.get("call") or [])]
    parts = [f"the agent calls {cut(' or '.join(calls), budget=LONGEST_VALUE)}"] if calls else []
    for table in _listed(entry.get("state") or []):
        kind = next(kind for kind in _CHANGES if kind in table)
        parts.append(_CHANGES[kind].format(at=f"the table {table['at']}", rows=_show(table[kind])))
    parts += [f"the answer {_ANSWERS[key]} {_show(message[key])}" for key in _ANSWERS if message.get(key)]
    claims = [pair for claim in message.get("claims") or () for pair in claim.items()]
    parts += [f"the answer {_CLAIMS[kind].format(_show(text))}" for kind, text in claims]
    parts += ["the answer has no figure of its own"] if "unseen" in message else []
    parts += ["the agent answers"] if message and not parts and "seen" not in message else []
    parts += [f"a tool or the user has named {_show(message['seen'])}"] if "seen" in message else []
    parts += ["nothing else has changed"] if entry.get("last") and entry.get("unchanged") else []
    sentence = f"{begin} {', and '.join(parts)}.".strip()
    return sentence[:1].upper() + sentence[1:]


def _show(value: Json) -> str:
    if isinstance(value, dict):
        return cut(f"({', '.join(f'{name} = {_show(each)}' for name, each in value.items())})", budget=LONGEST_VALUE)
    texts = map(_show, value) if isinstance(value, list) else [json.dumps(value, ensure_ascii=False)]
    return cut(" and ".join(texts), budget=LONGEST_VALUE)
