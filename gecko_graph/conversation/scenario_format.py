"""The format of a scenario's file, and its checks; every message names the place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from ..context import GeckoContext
from ..contracts.language.expression import Expression
from ..errors import ContractError, ScenarioError, StateError, did_you_mean
from ..models.roles import REPLIES
from ..state import ChecklistItem, Json, JsonObject, Role
from ..tools import Toolkit
from ..values.digest import check_json
from ..values.places import scalars_of
from .faults import Fault
from .milestones.entry import Check, Entry, describe_problems, join_problems, read_entry
from .milestones.format import MilestoneEntry, find_problems
from .user import UserEntry


class ItemEntry(Entry):
    """One checklist item; a plain text is its description."""

    id: str | None = Field(None, min_length=1)
    description: str = ""
    check: Check | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, item: Any) -> Any:
        return {"description": item} if isinstance(item, str) else item

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.description.strip() and not self.check:
            raise ValueError("give it a description or a check")
        return self


class TurnEntry(Entry):
    user: str = Field(pattern=r"\S")
    checklist: list[ItemEntry] = Field(default_factory=list)
    replies: dict[Role, list[Json]] = Field(default_factory=dict)

    def items(self) -> tuple[ChecklistItem, ...]:
        """Return the checklist as the graph's input, in which every item has an id and a description."""
        items: list[ChecklistItem] = []
        for number, entry in enumerate(self.checklist, 1):
            description = entry.description.strip() or entry.check or ""
            item: ChecklistItem = {"id": entry.id or f"item-{number}", "description": description}
            if entry.check:
                item["check"] = entry.check
            items.append(item)
        return tuple(items)


class CallReply(Entry):
    """A call in a planner's recorded reply; `malformed` is the model's text instead of arguments."""

    call: str
    args: JsonObject = Field(default_factory=dict)
    malformed: str = ""


class CallsReply(Entry):
    """A planner's recorded reply with several calls."""

    calls: list[CallReply] = Field(min_length=1)


class SayReply(Entry):
    """A planner's recorded answer."""

    say: str


class SolutionCall(Entry):
    """A call of a solution."""

    name: str
    args: JsonObject = Field(default_factory=dict)


class ScenarioEntry(Entry):
    """The content of a scenario's file."""

    version: Literal[1]
    name: str = Field(pattern=r"\S")
    tools: Any
    contracts: Any = None
    state: JsonObject = Field(default_factory=dict)
    state_schema: JsonObject | None = None
    turns: list[TurnEntry] = Field(default_factory=list)
    user: UserEntry | None = None
    milestones: list[MilestoneEntry] = Field(default_factory=list)
    minefields: list[MilestoneEntry] = Field(default_factory=list)
    categories: list[str] = Field(default_factory=list)
    needs: list[str] = Field(default_factory=list)
    faults: list[Fault] = Field(default_factory=list)
    without: list[str] = Field(default_factory=list)
    solution: list[SolutionCall] = Field(default_factory=list)
    limits: GeckoContext = Field(default_factory=GeckoContext, strict=False)
    references: bool = False

    @field_validator("limits")
    @classmethod
    def _simulated(cls, limits: GeckoContext) -> GeckoContext:
        if limits.reads != "simulated":
            raise ValueError("a file cannot set it: use --reads real, or GeckoContext(reads='real') in Python")
        return limits


def read_scenario(data: Any, *, where: str) -> ScenarioEntry:
    """Check the content of a scenario's file.

    Raises:
        ScenarioError: Something is wrong; the message names each place, such as `turns[0].checklist[1].check`.
    """
    if not isinstance(data, Mapping):
        raise ScenarioError(f"{where}: expected an object with version, name, tools and turns")
    if "openapi" in data or "swagger" in data:
        raise ScenarioError(f"{where}: an OpenAPI document, not a scenario: use gecko-graph run {where} --task TEXT")
    entry = read_entry(ScenarioEntry, dict(data), where=where, error=ScenarioError)
    if problems := list(_find_problems(entry)):
        raise join_problems(where, problems, ScenarioError)
    return entry


def _find_problems(entry: ScenarioEntry) -> Iterator[str]:
    """Yield the problems that pydantic cannot find."""
    try:
        check_json(entry.state, what="state")
    except StateError as error:
        yield str(error)
    if not entry.turns and not entry.user:
        yield "turns: missing: write the turns of a task, or the user of a conversation"
    if entry.turns and entry.user:
        yield "turns: expected either the turns of a task or the user of a conversation"
    if not entry.user and (entry.milestones or entry.minefields or entry.solution):
        yield "milestones and solution: only a conversation has them: write a user"
    yield from find_problems(entry.milestones, entry.state, part="milestones")
    yield from find_problems(entry.minefields, entry.state, part="minefields")
    for number, turn in enumerate(entry.turns):
        yield from _find_mistakes(turn, f"turns[{number}]", references=entry.references)


def _find_mistakes(turn: TurnEntry, place: str, *, references: bool) -> Iterator[str]:
    ids = [item["id"] for item in turn.items()]
    for at, id_ in enumerate(ids):
        if id_ in ids[:at]:
            yield f"{place}.checklist[{at}].id: {id_!r} is not unique"
    for role, replies in turn.replies.items():
        for at, reply in enumerate(replies):
            here = f"{place}.replies.{role}[{at}]"
            yield from _find_faults(role, reply, here)
            yield from _find_faulty_references(reply, here) if references else ()


def _find_faults(role: Role, reply: Json, place: str) -> Iterator[str]:
    """Yield the problems of a recorded reply; a text is a model's raw reply, which may be malformed."""
    if role == "planner":
        if not isinstance(reply, list):
            yield f"{place}: expected a list of the planner's replies in one attempt"
            return
        for number, each in enumerate(reply):
            kinds = [kind for key, kind in _PLANNED.items() if isinstance(each, dict) and key in each]
            if len(kinds) != 1:
                yield f"{place}[{number}]: expected {{call: name, args: {{...}}}}, {{calls: [...]}} or {{say: text}}"
            else:
                yield from (f"{place}[{number}].{problem}" for problem in _find_misfits(kinds, each))
    elif isinstance(reply, dict) and isinstance(by_attempt := reply.get("by_attempt"), dict):
        for attempt, each in by_attempt.items():
            yield from _find_faults(role, each, f"{place}.by_attempt.{attempt}")
    elif not isinstance(reply, str):
        problems = _find_misfits(REPLIES[role], reply)
        yield from (f"{place}: expected a {REPLIES[role][0].__name__}: {problem}" for problem in problems[:1])


_PLANNED: dict[str, type[BaseModel]] = {"call": CallReply, "calls": CallsReply, "say": SayReply}


def _find_misfits(kinds: Sequence[type[BaseModel]], reply: Json) -> list[str]:
    """Return the problems of a reply as the last of these kinds; none if it matches any."""
    problems: list[str] = []
    for kind in kinds:
        try:
            kind.model_validate(reply)
            return []
        except ValidationError as error:
            problems = describe_problems(error)
    return problems


def _find_faulty_references(reply: Json, place: str) -> Iterator[str]:
    for text in scalars_of(reply, keys=True):
        if isinstance(text, str):
            try:
                compile_reference(text, place)
            except ContractError as error:
                yield str(error)


def compile_reference(text: str, where: str) -> Expression:
    """Compile a text of a reply in which `{{ calls[0].result.id }}` stands for an earlier call's result.

    Raises:
        ContractError: The reference is malformed.
    """
    return Expression.compile(text, names=("calls",), where=where, is_text=True)


def check_names(toolkit: Toolkit, names: Sequence[str], *, where: str) -> None:
    """Raise ScenarioError if a scenario names a tool that its toolkit does not have."""
    for number, name in enumerate(names):
        if name not in toolkit:
            raise ScenarioError(f"{where}[{number}]: unknown tool {name!r}{did_you_mean(name, toolkit.names)}")


def check_calls(toolkit: Toolkit, entries: Sequence[MilestoneEntry], *, where: str) -> None:
    """Raise ScenarioError if a milestone names a tool or an argument that the toolkit does not have."""
    for number, entry in enumerate(entries):
        calls, place = entry.call or [], f"{where}[{number}]"
        check_names(toolkit, [call.name for call in calls], where=f"{place}.call")
        check_names(toolkit, [entry.source.call] if entry.source and entry.source.call else [], where=f"{place}.from")
        for at, call in enumerate(calls):
            parameters = toolkit[call.name].parameters
            known = parameters.get("properties", {})
            unknown = [
                name for name in call.args if name not in known and not parameters.get("additionalProperties", True)
            ]
            if unknown:
                hint = did_you_mean(unknown[0], known)
                raise ScenarioError(f"{place}.call[{at}].args: {call.name} has no argument {unknown[0]!r}{hint}")
