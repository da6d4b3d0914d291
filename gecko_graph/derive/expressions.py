"""Expressions and clauses that several derived contracts have."""

from __future__ import annotations

from collections.abc import Iterable

from ..state import JsonObject
from .paths import Operation, Things


def arg(name: str) -> str:
    return f"at(args, [{name!r}], None)" if "__" in name else f"args[{name!r}]"  # no name with `__` is allowed


def template(expression: str) -> str:
    return f"{{{{ {expression} }}}}"


def place_of(root: str, names: Iterable[str]) -> str:
    """Return the expression of a place below a root key; `names` are arguments."""
    return f"[{', '.join([repr(root), *map(arg, names)])}]"


def opening(place: str, by: Operation) -> JsonObject:
    """Return the effect that marks a place as changed in an unknown way by an operation."""
    path = ["runtime_state", "open", template(f"pointer_to({place})")]
    return {"op": "add", "path": path, "value": template(repr(by.tool.name))}


def exists(place: str, things: Things) -> JsonObject:
    refusal = {"id": f"{things.singular} exists", "error": f"{things.singular} not found", "status": 404}
    return {"check": f"exists_at({place})", **refusal}
