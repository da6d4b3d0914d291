"""Examples of requests and responses that belong together, as given answers of a read."""

from __future__ import annotations

import json
from typing import Any

from ...state import Json, JsonObject
from ..spec import ToolExample
from .arguments import Argument, Body, parse_if_json


def pair_examples(arguments: dict[str, Argument], response: Body) -> tuple[ToolExample, ...]:
    """Return the examples whose arguments are known.

    A response example belongs to the request examples of the same name; an optional argument without one is absent. One
    without a partner of its name belongs to the examples without a name, if it is the only one, or to a call without
    arguments. Of several answers to the same arguments the first counts.

    Args:
        arguments: The operation's arguments with their examples.
        response: Schema and examples of the result: a text that holds JSON is opened unless the result is text.
    """
    found: dict[str, ToolExample] = {}
    for name, value in response.examples.items():
        args = _example_args(arguments, name, only=len(response.examples) == 1)
        if args is not None:
            answer = value if _is_text(response.schema) else parse_if_json(value)
            found.setdefault(json.dumps(args, sort_keys=True), ToolExample(args, answer))
    return tuple(found.values())


def _example_args(arguments: dict[str, Argument], name: str, *, only: bool) -> JsonObject | None:
    """Return the arguments that an example of this name is for; None where that is not known."""
    named = any(name in one.examples for one in arguments.values())
    if name and not named and not only and any(one.examples for one in arguments.values()):
        return None
    chosen = name if named else ""
    if any(one.required and chosen not in one.examples for one in arguments.values()):
        return None
    return {key: _as_schema_type(one, one.examples[chosen]) for key, one in arguments.items() if chosen in one.examples}


def _as_schema_type(argument: Argument, value: Json) -> Json:
    """Return the value as the schema wants it: numbers as text and text as JSON, where only the writing differs."""
    if not _is_text(argument.schema):
        return parse_if_json(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number and argument.place != "body" else value


def _is_text(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "string"
