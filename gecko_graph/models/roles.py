"""The replies that each role may give. A class's name is the JSON Schema's name and is stable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.json_schema import WithJsonSchema

from ..state import ItemStatus, Json, JsonObject, Patch, Role

OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")

_OPERATION_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "op": {"enum": list(OPERATIONS)},
        "path": {"type": "string", "description": "JSON Pointer"},
        "from": {"type": "string"},
        "value": {},
    },
    "required": ["op", "path"],
}

PatchReply = Annotated[list[dict[str, Any]], WithJsonSchema({"type": "array", "items": _OPERATION_SCHEMA})]


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ArgumentProblem(_Reply):
    """An argument whose meaning does not fit. Says what is wrong, never what would be right."""

    argument: str
    problem: str


def _all_asked_for(schema: JsonObject) -> None:
    """Ask for every property, though a reply without one is read; `unchanged` only where it is true."""
    schema["required"] = [name for name in schema["properties"] if name != "unchanged"]


class SemanticVerdict(_Reply):
    """The validator's reply; no problems means valid (paper, appendix A.3.2)."""

    problems: list[ArgumentProblem]


class _PatchBearing(_Reply):
    @field_validator("patch", check_fields=False)
    @classmethod
    def _operations(cls, patch: Patch) -> Patch:
        for index, operation in enumerate(patch):
            if (wrong := _wrong_operation(operation)) is not None:
                raise ValueError(f"operation {index}: {wrong}")
        return patch


class SimulatedEffect(_PatchBearing):
    """The simulator's reply: result and change of the task state in one."""

    model_config = ConfigDict(json_schema_extra=_all_asked_for)

    status: Literal["ok", "error"]
    result: Json
    patch: PatchReply = Field(default_factory=list)
    unchanged: bool = False


class SimulatedResponse(_Reply):
    """The simulator's reply where the change is asked for separately, as the paper does (appendix A.4)."""

    status: Literal["ok", "error"]
    result: Json


class StateChange(_PatchBearing):
    """The state updater's reply: a patch where the paper's writes the state anew (section 3.3 and appendix A.5)."""

    patch: PatchReply
    unchanged: bool = False


class InitialState(_Reply):
    """The bootstrapper's reply: data the tools act on, and runtime variables, flat (paper, appendix A.5)."""

    model_config = ConfigDict(json_schema_extra=_all_asked_for)

    domain: JsonObject = Field(default_factory=dict)
    runtime_state: JsonObject = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, value: Any) -> Any:
        """Read top-level keys of other names as domain data."""
        if not isinstance(value, Mapping) or not isinstance(domain := value.get("domain") or {}, Mapping):
            return value
        others = {key: each for key, each in value.items() if key not in cls.model_fields}
        return {**value, "domain": {**others, **domain}} if others else value

    @field_validator("domain")
    @classmethod
    def _without_sections(cls, domain: JsonObject) -> JsonObject:
        """Read sections by toolkit, as in the paper's own states, as one domain."""
        sections = domain.get("toolkits")
        if not isinstance(sections, Mapping) or not all(isinstance(each, Mapping) for each in sections.values()):
            return domain
        flat = {key: each for section in sections.values() for key, each in section.items()}
        return {**flat, **{key: each for key, each in domain.items() if key != "toolkits"}}


class DescribedItem(_Reply):
    """One thing that must hold at the end."""

    description: str = Field(min_length=1)


class Checklist(_Reply):
    """The checklist writer's reply (paper, section 3.4 and appendix A.6)."""

    items: list[DescribedItem] = Field(min_length=1)


class ItemJudgement(_Reply):
    """What became of one item; a reason only where it is not a success, and before the status, as in the paper (A.6).

    Models write fields in this order, so the word follows from the reason.
    """

    id: str
    reason: str = ""
    status: ItemStatus


class Judgement(_Reply):
    """The judge's reply (paper, appendix A.6)."""

    items: list[ItemJudgement]
    ask_user: bool = False
    feedback: str = ""


class ToolSchema(_Reply):
    """The converter's reply: what a tool's source leaves unsaid (paper, section 3.5 and appendix A.7)."""

    description: str
    result: JsonObject
    effect: Literal["read", "write", "unknown"] = "unknown"


REPLIES: Mapping[Role, tuple[type[BaseModel], ...]] = {
    "planner": (),
    "validator": (SemanticVerdict,),
    "simulator": (SimulatedEffect, SimulatedResponse),
    "state_updater": (StateChange,),
    "bootstrapper": (InitialState,),
    "checklist": (Checklist,),
    "judge": (Judgement,),
    "converter": (ToolSchema,),
}
"""The replies that each role may give, the usual one first; the planner replies with a message."""


def _wrong_operation(operation: Any) -> str | None:
    if not isinstance(operation, dict) or operation.get("op") not in OPERATIONS:
        return f"op must be one of {', '.join(OPERATIONS)}"
    needed = {"add": "value", "replace": "value", "test": "value", "move": "from", "copy": "from"}.get(operation["op"])
    if needed is not None and needed not in operation:
        return f"{operation['op']} needs {needed!r}"
    for place in ("path", "from"):
        given = operation.get(place, "" if place == "from" else None)
        if not isinstance(given, str) or (given and not given.startswith("/")):
            return f"{place} must be a JSON Pointer, empty or beginning with /"
    return None
