"""Calls as the benchmark writes them, `cp(source='a', destination='b')`, and as we do, by name and arguments."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from gecko_graph.state import JsonObject


class NoCall(ValueError):
    """A text that is not a call with plain values."""


def read_call(text: str, *, signature: Callable[[str], inspect.Signature | None]) -> JsonObject:
    """Return a call as the recorded planner writes it: `{"call", "args"}`. Parsed, never evaluated.

    Args:
        text: The call as Python would write it; arguments may be positional.
        signature: The parameters of a tool, None for one that there is not.

    Raises:
        NoCall: The text is not a call of a name with literals.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
            raise NoCall(f"expected a call of a tool by name, got: {text[:200]}")
        positional = [ast.literal_eval(each) for each in tree.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in tree.keywords if each.arg}
    except (SyntaxError, ValueError) as error:
        raise NoCall(f"{text[:200]}: {error}") from None
    name = tree.func.id
    known = signature(name)
    names = list(known.parameters) if known else []
    names += [f"positional_{number}" for number in range(len(names), len(positional))]
    return {"call": name, "args": plain({**dict(zip(names, positional, strict=False)), **named})}


def plain(value: Any) -> Any:
    """Return the value with lists for tuples and sets, as JSON has it."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(item) for item in value]
    return value


def write_call(name: str, args: Mapping[str, Any]) -> str:
    """Return a call as the official result format has it."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in args.items())})"
