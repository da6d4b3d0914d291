"""The replies of each role. A class's name is the name of its JSON Schema and must not change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, Self, get_args, get_origin

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from ..state import ItemStatus, Json, JsonObject, Patch, Role
from .formatting import cut, one_line
from .reply import PatchReply, find_wrong_operation

_ALSO = {"success": "ok", "succeeded": "success", "passed": "success", "pass": "success", "fail": "failed"}
_ALSO |= {"failed": "error", "failure": "error"}
"""Synonyms that models use for enum values; used only if the enum has the value and not the synonym."""
_NOTHING = ("", "none", "no", "n/a", "nothing", "null")
_RULE_CHARS = 160


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _read_generously(cls, value: Any) -> Any:
        """Drop null optional fields, and accept enum values in any letter case."""
        if not isinstance(value, Mapping):
            return value
        required, words = _shape(cls)
        kept = {key: each for key, each in value.items() if each is not None or key in required}
        return {key: _word(each, words[key]) if key in words else each for key, each in kept.items()}


@cache
def _shape(reply: type[BaseModel]) -> tuple[frozenset[str], dict[str, tuple[str, ...]]]:
    fields = reply.model_fields.items()
    words = {name: get_args(field.annotation) for name, field in fields if get_origin(field.annotation) is Literal}
    return frozenset(name for name, field in fields if field.is_required()), words


def _word(value: Any, words: tuple[str, ...]) -> Any:
    if not isinstance(value, str) or value in words:
        return value
    word = "_".join(value.casefold().replace("-", " ").replace("_", " ").split())
    return next((each for each in (word, _ALSO.get(word)) if each in words), value)


def _line_of(given: Any) -> str:
    """Return a text as one line; "" if it means "nothing"."""
    line = one_line(given) if isinstance(given, str) else ""
    return "" if line.casefold().strip(".- ") in _NOTHING else line


class _Decided(_Reply):
    """Fields that a decision model sets; no chat model is asked for a probability."""

    p: SkipJsonSchema[float | None] = Field(default=None, ge=0, le=1)
    unsure: SkipJsonSchema[bool] = False


class ArgumentProblem(_Decided):
    """An argument that does not make sense. States the fault, never the right value."""

    argument: str
    problem: str


def _all_asked_for(schema: JsonObject) -> None:
    """Require every property, though replies without some are accepted; `unchanged` is optional."""
    schema["required"] = [name for name in schema["properties"] if name != "unchanged"]


class SemanticVerdict(_Reply):
    """The validator's reply; no problems means valid (paper, appendix A.3.2)."""

    problems: list[ArgumentProblem]


class _PatchBearing(_Reply):
    @field_validator("patch", check_fields=False)
    @classmethod
    def _operations(cls, patch: Patch) -> Patch:
        for index, operation in enumerate(patch):
            if (wrong := find_wrong_operation(operation)) is not None:
                raise ValueError(f"operation {index}: {wrong}")
        return patch


class SimulatedResponse(_Reply):
    """The simulator's reply if the change is asked for separately, as in the paper (appendix A.4).

    A read may be `unknown`, with the unknown part as the result.
    """

    status: Literal["ok", "error", "unknown"]
    result: Json

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or not value or {"status", "result", "patch"} & value.keys():
            return value
        error = [*value] == ["error"]
        return {"status": "error" if error else "ok", "result": value["error"] if error else dict(value)}


class SimulatedWrite(SimulatedResponse):
    """The simulator's reply to a call that may write, with a tool's rule that the call may break, or ""."""

    may_refuse: str = ""

    @field_validator("may_refuse", mode="before")
    @classmethod
    def _one_line(cls, given: Any) -> str:
        return cut(_line_of(given[0] if isinstance(given, list) and given else given), budget=_RULE_CHARS)


class SimulatedEffect(_PatchBearing, SimulatedWrite):
    """The simulator's reply with result and change of the task state."""

    model_config = ConfigDict(json_schema_extra=_all_asked_for)

    patch: PatchReply = Field(default_factory=list)
    unchanged: bool = False


class StateChange(_PatchBearing):
    """The state updater's reply: a patch; in the paper the whole state (section 3.3 and appendix A.5)."""

    patch: PatchReply
    unchanged: bool = False


class InitialState(_Reply):
    """The bootstrapper's reply: the data that tools act on, and runtime variables (paper, appendix A.5: flat)."""

    model_config = ConfigDict(json_schema_extra=_all_asked_for)

    domain: JsonObject = Field(default_factory=dict)
    runtime_state: JsonObject = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, value: Any) -> Any:
        """Read other top-level keys as domain data."""
        if not isinstance(value, Mapping) or not isinstance(domain := value.get("domain") or {}, Mapping):
            return value
        others = {key: each for key, each in value.items() if key not in cls.model_fields}
        return {**value, "domain": {**others, **domain}} if others else value

    @field_validator("domain")
    @classmethod
    def _without_sections(cls, domain: JsonObject) -> JsonObject:
        """Merge sections by toolkit, as in the paper's states, into one domain."""
        sections = domain.get("toolkits")
        if not isinstance(sections, Mapping) or not all(isinstance(each, Mapping) for each in sections.values()):
            return domain
        flat = {key: each for section in sections.values() for key, each in section.items()}
        return {**flat, **{key: each for key, each in domain.items() if key != "toolkits"}}


class DescribedItem(_Reply):
    """A condition on the end of the task."""

    description: str = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: Any) -> Any:
        return {"description": value} if isinstance(value, str) else value


class Checklist(_Reply):
    """The checklist writer's reply (paper, section 3.4 and appendix A.6); empty if the user asks for nothing."""

    items: list[DescribedItem]


class ItemJudgement(_Decided):
    """The judgement of one item.

    The reason comes before the status (A.6), because models write fields in order, so that the status follows from the
    reason. It is empty for a success.
    """

    model_config = ConfigDict(coerce_numbers_to_str=True)

    id: str
    reason: str = ""
    status: ItemStatus

    @field_validator("id")
    @classmethod
    def _known(cls, given: str, info: ValidationInfo) -> str:
        return match_id(given, (info.context or {}).get("ids", ()))


class LabelReply(_Reply):
    """The label judge's reply: whether each candidate for a step is right (LoopTool, sections 3.2 and 4.3)."""

    items: list[ItemJudgement]

    @model_validator(mode="after")
    def _whole(self, info: ValidationInfo) -> Self:
        context = info.context or {}
        left_out = [each for each in context.get("ids", ()) if each not in {item.id for item in self.items}]
        if left_out and context.get("whole"):
            raise ValueError(f"items lacks {', '.join(left_out[:9])}")
        return self


class Judgement(LabelReply):
    """The judge's reply (paper, appendix A.6)."""

    unasked_changes: list[str] = Field(default_factory=list)
    stopping_was_right: bool = Field(default=False, validation_alias=AliasChoices("stopping_was_right", "ask_user"))
    feedback: str = ""

    @field_validator("unasked_changes")
    @classmethod
    def _named(cls, given: list[str]) -> list[str]:
        return [*filter(None, map(_line_of, given))]


class ToolSchema(_Reply):
    """The converter's reply: the parts that a tool's source leaves undefined (paper, section 3.5 and appendix A.7)."""

    description: str
    result: JsonObject
    effect: Literal["read", "write", "unknown"] = "unknown"


class Reasoning(_Reply):
    """The reasoner's reply: the next need for a tool, or the answer (ToolGate, equations 5 and 6)."""

    need: str = ""
    answer: str = ""

    @model_validator(mode="after")
    def _either(self) -> Self:
        if not (self.need.strip() or self.answer.strip()):
            raise ValueError("give a need or an answer")
        return self


class SearchWords(_Reply):
    """The searcher's reply: words to search tools for a task."""

    words: str = Field(max_length=2_000)


class RankedTool(_Reply):
    """A tool that can serve a need, with a score."""

    name: str
    score: float = Field(default=1.0, ge=0, le=1_000, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value


class Ranking(_Reply):
    """The reranker's reply (ToolGate, equation 8); a missing tool cannot serve the need."""

    tools: list[RankedTool]


class AuditReply(_Reply):
    """The auditor's reply: whether the simulated user, not the agent, was at fault (ToolSandbox, tables 2 and 3)."""

    reason: str = ""
    invented: bool
    left_goal: bool = False
    gave_away: bool = False
    broke_instructions: bool


class ClaimReply(_Decided):
    """The claim judge's reply: whether an answer meets a claim's condition."""

    sentence: str = ""
    reason: str = ""
    met: bool


class WrittenClause(_Reply):
    """A precondition of a call, and the error if it does not hold."""

    check: str
    error: Json = ""
    when: str = ""


class WrittenContract(_Reply):
    """The contract writer's reply; parts that rows contradict are dropped."""

    requires: list[WrittenClause] = Field(default_factory=list)
    effects: list[JsonObject] = Field(default_factory=list)
    returns: Json = None


class WrittenWords(_Reply):
    """The sample writer's reply: a task in a user's words; rules check that all values occur."""

    message: str


class RiskReply(_Decided):
    """The reply on a call's risk: whether nobody has permitted it, or it cannot be undone."""

    reason: str = ""
    risky: bool


class VariantReply(_Reply):
    """The variant writer's reply: a new case that is hard in the same way (LoopTool, section 4.4)."""

    messages: list[JsonObject]
    label: list[JsonObject]
    text: str = ""


class ToolError(_Reply):
    """An error that a generated tool may return."""

    status: int = Field(ge=400, le=499)
    description: str


class WrittenTool(_Reply):
    """The tool writer's reply: a tool that does not exist yet (LoopTool, section 3.1)."""

    name: str = Field(max_length=64)
    description: str = Field(max_length=1_000)
    effect: Literal["read", "write"]
    parameters: JsonObject
    result: JsonObject
    errors: list[ToolError] = Field(default_factory=list, max_length=9)


class PlannedTurn(_Reply):
    kind: Literal["call", "missing_argument", "no_tool", "several_calls", "correction"]
    outline: str = Field(min_length=1, max_length=2_000)
    tools: list[str] = Field(default_factory=list)


class PlannedDialogue(_Reply):
    """The dialogue planner's reply: a user's goal and knowledge, and the turns (LoopTool, section 3.2)."""

    goal: str = Field(min_length=1, max_length=2_000)
    knows: list[str] = Field(default_factory=list)
    turns: list[PlannedTurn]
    state: JsonObject = Field(default_factory=dict)


REPLIES: Mapping[Role, tuple[type[BaseModel], ...]] = {
    "planner": (),
    "validator": (SemanticVerdict,),
    "simulator": (SimulatedEffect, SimulatedWrite, SimulatedResponse),
    "state_updater": (StateChange,),
    "bootstrapper": (InitialState,),
    "checklist": (Checklist,),
    "judge": (Judgement,),
    "converter": (ToolSchema,),
    "searcher": (SearchWords,),
    "reasoner": (Reasoning,),
    "reranker": (Ranking,),
    "user": (),
    "auditor": (AuditReply,),
    "claim_judge": (ClaimReply,),
    "contract_writer": (WrittenContract,),
    "risk": (RiskReply,),
    "label_judge": (LabelReply,),
    "sample_writer": (WrittenWords,),
    "variant_writer": (VariantReply,),
    "tool_writer": (WrittenTool,),
    "dialogue_planner": (PlannedDialogue,),
}
"""The reply classes of each role, the most common one first; the planner replies with a message."""


def match_id(given: str, ids: Sequence[str]) -> str:
    """Return the id that is meant (`Item-1`, `item_1`, `1` for item-1) if it is unambiguous, else the given one."""
    wanted = _bare_id(given)
    alike = [each for each in ids if _bare_id(each) == wanted]
    if wanted.isdecimal() and not alike:
        alike = [each for each in ids if each[len(each.rstrip("0123456789")) :].lstrip("0") == wanted.lstrip("0")]
    return given if given in ids or len(alike) != 1 else alike[0]


def _bare_id(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())
