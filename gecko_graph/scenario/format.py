"""The format of a scenario's file, and its checks: every message names the place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, field_validator

from ..context import GeckoContext
from ..contracts.language.expression import check_expression
from ..conversation.milestones.format import (
    CallEntry,
    Entry,
    MessageEntry,
    MilestoneEntry,
    SourceEntry,
    TableEntry,
    find_problems,
)
from ..conversation.users import ExchangeEntry, LineEntry, UserEntry
from ..errors import ContractError, ScenarioError, StateError, did_you_mean
from ..models.roles import REPLIES
from ..state import ROLES, ChecklistItem, Json, JsonObject, Role
from ..values.digest import check_json
from .references import check_references

VERSION = 1

PROBLEMS_SHOWN = 5


class ItemEntry(Entry):
    """One checklist item; a bare text is a description."""

    id: str | None = Field(None, min_length=1)
    description: str = ""
    check: str | None = Field(None, min_length=1)


def _entry(item: Any) -> Any:
    return {"description": item} if isinstance(item, str) else item


class TurnEntry(Entry):
    """One turn."""

    user: str = Field(pattern=r"\S")
    checklist: list[Annotated[ItemEntry, BeforeValidator(_entry)]] = Field(default_factory=list)
    replies: dict[Role, list[Json]] = Field(default_factory=dict)

    def items(self) -> tuple[ChecklistItem, ...]:
        """Return the checklist as the graph's input: every item has an id and a description."""
        items: list[ChecklistItem] = []
        for number, entry in enumerate(self.checklist, 1):
            item: ChecklistItem = {
                "id": entry.id or f"item-{number}",
                "description": entry.description.strip() or entry.check or "",
            }
            if entry.check:
                item["check"] = entry.check
            items.append(item)
        return tuple(items)


class CallReply(Entry):
    """A call in a planner's recorded reply; `malformed` is what a model wrote in place of arguments."""

    call: str
    args: JsonObject = Field(default_factory=dict)
    malformed: str = ""


class CallsReply(Entry):
    """A planner's recorded reply with several calls."""

    calls: list[CallReply] = Field(min_length=1)


class SayReply(Entry):
    """A planner's recorded answer."""

    say: str


class ScenarioEntry(Entry):
    """The whole file."""

    version: int
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
    without: list[str] = Field(default_factory=list)
    limits: GeckoContext = Field(default_factory=GeckoContext, strict=False)
    references: bool = False

    @field_validator("limits")
    @classmethod
    def _simulated(cls, limits: GeckoContext) -> GeckoContext:
        if limits.reads != "simulated":
            raise ValueError("a file opens no real tool: --reads real does, in Python GeckoContext(reads='real')")
        return limits


def read_scenario(data: Any, *, where: str) -> ScenarioEntry:
    """Check the content of a scenario's file.

    Raises:
        ScenarioError: Something is wrong; the message names each place, such as `turns[0].checklist[1].check`.
    """
    if not isinstance(data, Mapping):
        raise ScenarioError(f"{where}: expected an object with version, name, tools and turns")
    _check_version(data, where)
    try:
        entry = ScenarioEntry.model_validate(dict(data))
    except ValidationError as error:
        raise _build_error(where, _find_problems(error, ScenarioEntry)) from None
    turns = (found for turn in _turn_problems(entry) for found in turn)
    problems = [*_document_problems(entry), *_conversation_problems(entry), *turns]
    if problems:
        raise _build_error(where, problems)
    return entry


def _check_version(data: Mapping[str, Any], where: str) -> None:
    version = data.get("version")
    if version is None:
        if "openapi" in data or "swagger" in data:
            raise ScenarioError(
                f"{where}: is an OpenAPI document, not a scenario; to rehearse a task with its tools: "
                f"gecko-graph run {where} --task TEXT --model NAME"
            )
        raise ScenarioError(f"{where}: version: is missing: write `version: {VERSION}`")
    if type(version) is not int or version < 1:
        raise ScenarioError(f"{where}: version: expected {VERSION}, got {version!r}")
    if version > VERSION:
        raise ScenarioError(
            f"{where}: version: {version} is newer than {VERSION}, the newest known here: update gecko-graph"
        )


def _build_error(where: str, problems: list[str]) -> ScenarioError:
    shown = problems[:PROBLEMS_SHOWN]
    if len(problems) > len(shown):
        shown.append(f"and {len(problems) - len(shown)} more")
    return ScenarioError("\n".join(f"{where}: {problem}" for problem in shown))


# what pydantic finds -----------------------------------------------------------------------------------------------

_KEYS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("calls", CallReply),
    ("checklist", ItemEntry),
    ("turns", TurnEntry),
    ("script", LineEntry),
    ("demonstration", ExchangeEntry),
    ("user", UserEntry),
    ("message", MessageEntry),
    ("call", CallEntry),
    ("state", TableEntry),
    ("from", SourceEntry),
    ("milestones", MilestoneEntry),
    ("minefields", MilestoneEntry),
    ("limits", GeckoContext),
)


def _find_problems(error: ValidationError, whole: type[BaseModel]) -> list[str]:
    found = map(dict, error.errors(include_url=False, include_context=False))
    return list(dict.fromkeys(_format_problem(each, whole) for each in found))


def _format_problem(found: dict[str, Any], whole: type[BaseModel]) -> str:
    where = found["loc"]
    if found["type"] == "extra_forbidden":
        fields = next((model for key, model in _KEYS if key in where[:-1]), whole).model_fields
        known = [field.alias or name for name, field in fields.items()]
        return f"{_format_place(where)}: unknown key{did_you_mean(str(where[-1]), known)}; keys: {', '.join(known)}"
    if where[-1] == "[key]":
        return f"{_format_place(where[:-2])}: unknown role {where[-2]!r}; roles: {', '.join(ROLES)}"
    message = found["msg"].removeprefix("Input ")
    why = (
        "is missing" if found["type"] == "missing" else _MESSAGES.get(found["type"], message[:1].lower() + message[1:])
    )
    return f"{_format_place(where)}: {why}"


_MESSAGES = {
    "string_pattern_mismatch": "is empty",
    "string_type": "expected text; put it in quotes",
    "list_type": "expected a list",
    "dict_type": "expected an object",
    "model_type": "expected an object",
    "too_short": "is empty",
    "string_too_short": "is empty",
}


def _format_place(where: tuple[Any, ...]) -> str:
    place = ""
    for part in where:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
    return place or "the scenario"


# what pydantic cannot check -----------------------------------------------------------------------------------------


def _document_problems(entry: ScenarioEntry) -> Iterator[str]:
    if not entry.tools or not isinstance(entry.tools, str | dict | list):
        yield "tools: expected the path of an OpenAPI document, or such a document or a list of function dicts inline"
    try:
        check_json(entry.state, what="state")
    except StateError as error:
        yield str(error)


def _conversation_problems(entry: ScenarioEntry) -> Iterator[str]:
    if not entry.turns and not entry.user:
        yield "turns: is missing: write the turns of a task, or the user of a conversation"
    if entry.turns and entry.user:
        yield "turns: expected turns of a task, or a user of a conversation: one of them"
    if entry.user:
        yield from (f"user: {problem}" for problem in entry.user.problems())
    elif entry.milestones or entry.minefields:
        yield "milestones: they are of a conversation: write a user"
    for part, entries in (("milestones", entry.milestones), ("minefields", entry.minefields)):
        yield from find_problems(entries, entry.state, part=part)


def _turn_problems(entry: ScenarioEntry) -> Iterator[Iterator[str]]:
    for number, turn in enumerate(entry.turns):
        yield _item_problems(turn, f"turns[{number}].checklist")
        yield _reply_problems(turn, f"turns[{number}].replies")
        if entry.references:
            yield check_references(dict(turn.replies), f"turns[{number}].replies")


def _item_problems(turn: TurnEntry, place: str) -> Iterator[str]:
    seen: set[str] = set()
    for number, item in enumerate(turn.items()):
        here = f"{place}[{number}]"
        if not item["description"]:
            yield f"{here}: give it a description, or a check"
        if item["id"] in seen:
            yield f"{here}.id: {item['id']!r} is given twice"
        seen.add(item["id"])
        if "check" in item:
            try:
                check_expression(item["check"], where=f"{here}.check")
            except ContractError as error:
                yield str(error)


def _reply_problems(turn: TurnEntry, place: str) -> Iterator[str]:
    for role, replies in turn.replies.items():
        for number, reply in enumerate(replies):
            here = f"{place}.{role}[{number}]"
            if role == "planner":
                yield from _planner_problems(reply, here)
            elif isinstance(reply, dict) and isinstance(by_attempt := reply.get("by_attempt"), dict):
                for attempt, each in by_attempt.items():
                    yield from _helper_problems(role, each, f"{here}.by_attempt.{attempt}")
            else:
                yield from _helper_problems(role, reply, here)


def _planner_problems(attempt: Json, place: str) -> Iterator[str]:
    if not isinstance(attempt, list):
        yield f"{place}: expected a list: the planner's replies in one attempt, one after the other"
        return
    for number, reply in enumerate(attempt):
        here = f"{place}[{number}]"
        kinds = [kind for key, kind in _PLANNED.items() if isinstance(reply, dict) and key in reply]
        if len(kinds) != 1:
            yield f"{here}: expected {{call: name, args: {{...}}}}, {{calls: [...]}} or {{say: text}}"
            continue
        try:
            kinds[0].model_validate(reply)
        except ValidationError as error:
            yield from (f"{here}.{problem}" for problem in _find_problems(error, kinds[0]))


_PLANNED: dict[str, type[BaseModel]] = {"call": CallReply, "calls": CallsReply, "say": SayReply}


def _helper_problems(role: Role, reply: Json, place: str) -> Iterator[str]:
    """Yield what is wrong with a reply that is an object; text stands for what a model wrote, and may be broken."""
    if isinstance(reply, str):
        return
    try:
        for number, kind in enumerate(REPLIES[role]):
            try:
                kind.model_validate(reply)
                return
            except ValidationError:
                if number == len(REPLIES[role]) - 1:
                    raise
    except ValidationError as error:
        first = dict(error.errors(include_url=False, include_context=False)[0])
        problem = _format_problem({**first, "loc": first["loc"] or ("it",)}, ScenarioEntry)
        yield f"{place}: expected a {REPLIES[role][0].__name__}: {problem}"
