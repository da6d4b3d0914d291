"""Examples of requests and responses that belong together, as given answers of a read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...state import Json, JsonObject
from ..spec import ToolExample
from .arguments import Argument, parse_if_json


def pair_examples(
    arguments: dict[str, Argument], results: dict[str, Json], result: JsonObject | None
) -> tuple[ToolExample, ...]:
    """Return the examples whose arguments can be told.

    A response example belongs to the request examples of the same name; an optional argument without one is absent. One
    without a partner of its name belongs to the examples without a name, if it is the only one, or to a call without
    arguments. Of several answers to the same arguments the first counts.

    Args:
        arguments: The operation's arguments with their examples.
        results: Examples of the result by name; the one without a name under the empty name.
        result: The result's schema: a text that holds JSON is opened unless the result is text.
    """
    found: dict[str, ToolExample] = {}
    for name, value in results.items():
        args = _example_args(arguments, name, only=len(results) == 1)
        if args is not None:
            answer = value if _is_text(result) else parse_if_json(value)
            found.setdefault(json.dumps(args, sort_keys=True), ToolExample(args, answer))
    return tuple(found.values())


def _example_args(arguments: dict[str, Argument], name: str, *, only: bool) -> JsonObject | None:
    """Return the arguments that an example of this name is for; None where that cannot be told."""
    named = any(name in one.examples for one in arguments.values())
    if name and not named and not only and any(one.examples for one in arguments.values()):
        return None
    chosen = name if named else ""
    if any(one.required and chosen not in one.examples for one in arguments.values()):
        return None
    return dict(_values(arguments, chosen))


def _values(arguments: dict[str, Argument], name: str) -> Iterator[tuple[str, Json]]:
    for key, one in arguments.items():
        if name in one.examples:
            yield key, _as_schema_type(one, one.examples[name])


def _as_schema_type(argument: Argument, value: Json) -> Json:
    """Return the value as the schema wants it: numbers as text and text as JSON, where only the writing differs."""
    schema = argument.schema if isinstance(argument.schema, dict) else {}
    if _is_text(schema):
        return _as_text(value) if argument.place != "body" else value
    return parse_if_json(value)


def _as_text(value: Json) -> Json:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return str(value)


def _is_text(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "string"
