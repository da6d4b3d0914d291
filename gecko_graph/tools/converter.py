"""Asking a model for what a tool's source leaves open: result schema and effect (paper, sections 3.5 and A.7)."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import TypeAlias

from jsonschema import Draft202012Validator, FormatChecker, SchemaError
from pydantic import Field, field_validator

from ..errors import ToolkitError
from ..models import roles
from ..models.ask import Ask, Reply, Where
from ..models.view.view import view
from ..schemas.made_up.maker import Impossible, make_value
from ..state import JsonObject
from .function_dicts import as_schema
from .spec import ToolSpec
from .toolkit import Toolkit

Conversion: TypeAlias = Generator[list[Ask], Sequence[Reply], tuple[Toolkit, list[str]]]
"""Yields all questions at once, is sent their replies, returns the completed toolkit and what went wrong."""

TOOL_CHARS = 16_000

ANNOTATION_KEYWORDS = frozenset(
    {"$comment", "$id", "$schema", "default", "deprecated", "description", "examples", "title"}
)
"""Keywords that validate nothing."""

_NO_FORMATS = FormatChecker(formats=())


class ToolSchema(roles.ToolSchema):
    """The converter's reply, whose result must be a JSON Schema that constrains something."""

    @field_validator("result")
    @classmethod
    def _is_schema(cls, result: JsonObject) -> JsonObject:
        try:
            schema = as_schema(result, where="result")
            Draft202012Validator.check_schema(schema, format_checker=_NO_FORMATS)
        except ToolkitError as error:
            raise ValueError(str(error)) from None
        except SchemaError as error:
            raise ValueError(f"not a JSON Schema: {error.message}") from None
        if not schema.keys() - ANNOTATION_KEYWORDS:
            raise ValueError("the schema must constrain the result: its type, properties or values")
        try:
            make_value(schema, seed=0, key="")
        except Impossible as reason:
            raise ValueError(f"no value fits the schema: {reason}") from None
        return schema


class ToolEffect(roles.ToolSchema):
    """The converter's reply where the result is known."""

    result: JsonObject = Field(default_factory=dict)


def convert(toolkit: Toolkit) -> Conversion:
    """Complete the tools that have no result schema or no effect.

    What the source has stays; a missing description is filled in as well. A tool whose question fails stays as it was.

    Returns:
        The toolkit, and one line for each tool that could not be completed.
    """
    open_tools = [tool for tool in toolkit if tool.result is None or tool.effect is None]
    if not open_tools:
        return toolkit, []
    replies = yield [
        Ask("converter", {"tool": describe_tool(tool)}, _reply_type(tool), Where(question=number))
        for number, tool in enumerate(open_tools)
    ]
    completed: list[ToolSpec] = []
    failures: list[str] = []
    for tool, reply in zip(open_tools, replies, strict=True):
        if isinstance(reply.value, roles.ToolSchema):
            completed.append(_complete_tool(tool, reply.value))
        else:
            missing = "result schema" if tool.result is None else "effect"
            failures.append(f"{tool.name}: no {missing}: {reply.failure or 'the model gave no answer'}")
    return toolkit.replace(*completed), failures


def describe_tool(tool: ToolSpec) -> str:
    """Return a tool as JSON for a prompt; very long schemas as an outline."""
    known: JsonObject = {"name": tool.name, "description": tool.about, "parameters": tool.parameters}
    known |= {} if tool.result is None else {"result": tool.result}
    if tool.effect is not None:
        known["effect"] = tool.effect
    if tool.binding is not None:
        known["endpoint"] = f"{tool.binding.method.upper()} {tool.binding.path}"
    text = json.dumps(known, ensure_ascii=False)
    return text if len(text) <= TOOL_CHARS else view(known, budget=TOOL_CHARS)


def _reply_type(tool: ToolSpec) -> type[roles.ToolSchema]:
    return ToolSchema if tool.result is None else ToolEffect


def _complete_tool(tool: ToolSpec, reply: roles.ToolSchema) -> ToolSpec:
    effect = reply.effect if reply.effect != "unknown" else None
    return replace(
        tool,
        result=reply.result if tool.result is None else tool.result,
        description=tool.description.strip() or reply.description.strip(),
        effect=tool.effect or effect,
    )
