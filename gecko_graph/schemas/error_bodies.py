"""Result schemas that have a place for errors: a branch of a union that is `{"error": ...}`."""

from __future__ import annotations

from typing import Any

from ..state import Json, JsonObject
from .rules import accepts, rules_of
from .subschemas import follow

ERROR_NAMES = ("error", "errors")


def is_error_branch(branch: Any, root: Any) -> bool:
    """True for a schema of objects that must have a member `error` or `errors`, which is not always null."""
    branch = _followed(branch, root)
    required, rules = branch.get("required"), branch.get("properties")
    null = [name for name in ERROR_NAMES if isinstance(rules, dict) and rules.get(name) == {"type": "null"}]
    return isinstance(required, list) and any(name in required and name not in null for name in ERROR_NAMES)


def is_error_body(schema: JsonObject, value: Json) -> bool:
    """True for a value that only an error branch of the schema's `oneOf` or `anyOf` speaks of."""
    named = [name for name in ERROR_NAMES if isinstance(value, dict) and value.get(name)]
    union = _followed(schema, schema)
    branches = union.get("oneOf", union.get("anyOf"))
    if not named or not isinstance(branches, list):
        return False
    plain = [_followed(branch, schema) for branch in branches if not is_error_branch(branch, schema)]
    spoken_of = (branch for branch in plain if any(name in (branch.get("properties") or ()) for name in named))
    rules = rules_of(schema)
    return 0 < len(plain) < len(branches) and not any(accepts(rules.evolve(schema=one), value) for one in spoken_of)


def _followed(schema: Any, root: Any) -> JsonObject:
    """What a reference leads to; an empty schema where that is not an object."""
    if isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        schema = follow(root, schema["$ref"])
    return schema if isinstance(schema, dict) else {}
