"""Asking a model for what a tool's source leaves unsaid: its result schema (paper, section 3.5 and appendix A.7)."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import TypeAlias

from jsonschema import Draft202012Validator, FormatChecker, SchemaError
from pydantic import field_validator

from ..errors import ToolkitError
from ..models import roles
from ..models.ask import Ask, Reply, Where
from ..state import JsonObject
from ..view.view import view
from .function_dicts import as_schema
from .spec import ToolSpec
from .toolkit import Toolkit

Conversion: TypeAlias = Generator[list[Ask], Sequence[Reply], tuple[Toolkit, list[str]]]
"""Yields all questions at once, is sent their replies, returns the completed toolkit and what went wrong."""

TOOL_CHARS = 16_000

_NO_FORMATS = FormatChecker(formats=())


class ToolSchema(roles.ToolSchema):
    """The converter's reply, whose result must be a JSON Schema that says something."""

    @field_validator("result")
    @classmethod
    def _is_schema(cls, result: JsonObject) -> JsonObject:
        try:
            schema = as_schema(result, where="result")
            Draft202012Validator.check_schema(schema, format_checker=_NO_FORMATS)
        except ToolkitError as error:
            raise ValueError(str(error)) from None
        except SchemaError as error:
            raise ValueError(f"no JSON Schema: {error.message}") from None
        if not schema:
            raise ValueError("the schema must say what the result is")
        return schema


def convert(toolkit: Toolkit) -> Conversion:
    """Complete the tools that have no result schema.

    What a source says stays as it is; a missing description and an unclear effect are filled in as well. A tool whose
    question fails stays as it was.

    Args:
        toolkit: The tools.

    Returns:
        The toolkit, and one line for each tool that could not be completed.
    """
    open_tools = [tool for tool in toolkit if tool.result is None]
    if not open_tools:
        return toolkit, []
    replies = yield [
        Ask("converter", {"tool": described(tool)}, ToolSchema, Where(question=number))
        for number, tool in enumerate(open_tools)
    ]
    completed: list[ToolSpec] = []
    failures: list[str] = []
    for tool, reply in zip(open_tools, replies, strict=True):
        if isinstance(reply.value, ToolSchema):
            completed.append(_completed(tool, reply.value))
        else:
            failures.append(f"{tool.name}: no result schema: {reply.failure or 'the model gave no answer'}")
    return toolkit.replace(*completed), failures


def described(tool: ToolSpec) -> str:
    """What is known of a tool, as JSON for a prompt; of very long schemas the outline."""
    known: JsonObject = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    if tool.effect is not None:
        known["effect"] = tool.effect
    if tool.binding is not None:
        known["endpoint"] = f"{tool.binding.method.upper()} {tool.binding.path}"
    text = json.dumps(known, ensure_ascii=False)
    return text if len(text) <= TOOL_CHARS else view(known, budget=TOOL_CHARS)


def _completed(tool: ToolSpec, said: ToolSchema) -> ToolSpec:
    effect = said.effect if said.effect != "unknown" else None
    return replace(
        tool,
        result=said.result,
        description=tool.description.strip() or said.description.strip(),
        effect=tool.effect or effect,
    )
