"""Result schemas with a branch for errors: a part of a union that is `{"error": ...}`."""

from __future__ import annotations

from typing import Any

from ..state import Json, JsonObject
from .rules import accepts, rules_of
from .subschemas import follow

ERROR_NAMES = ("error", "errors")


def is_error_branch(branch: Any, root: Any) -> bool:
    """Return whether a schema requires a member `error` or `errors` that is not always null."""
    branch = _resolve(branch, root)
    required, rules = branch.get("required"), branch.get("properties")
    null = [name for name in ERROR_NAMES if isinstance(rules, dict) and rules.get(name) == {"type": "null"}]
    return isinstance(required, list) and any(name in required and name not in null for name in ERROR_NAMES)


def is_error_body(schema: JsonObject, value: Json) -> bool:
    """Return whether only an error branch of the schema's `oneOf` or `anyOf` covers the value."""
    named = [name for name in ERROR_NAMES if isinstance(value, dict) and value.get(name)]
    union = _resolve(schema, schema)
    branches = union.get("oneOf", union.get("anyOf"))
    if not named or not isinstance(branches, list):
        return False
    plain = [_resolve(branch, schema) for branch in branches if not is_error_branch(branch, schema)]
    covering = (branch for branch in plain if any(name in (branch.get("properties") or ()) for name in named))
    rules = rules_of(schema)
    return 0 < len(plain) < len(branches) and not any(
        accepts(rules.evolve(schema=branch), value) for branch in covering
    )


def _resolve(schema: Any, root: Any) -> JsonObject:
    if isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        schema = follow(root, schema["$ref"])
    return schema if isinstance(schema, dict) else {}
