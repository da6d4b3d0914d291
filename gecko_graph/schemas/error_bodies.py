"""Result schemas that have a place for errors: a branch of a union that is `{"error": ...}`."""

from __future__ import annotations

from typing import Any

from ..state import Json, JsonObject
from .rules import accepts, rules_of
from .subschemas import follow

ERROR_NAMES = ("error", "errors")
MAX_HOPS = 8


def is_error_branch(branch: Any, root: Any) -> bool:
    """True for a schema of objects that must have a member `error` or `errors`, which is not always null."""
    branch = _followed(branch, root)
    required, properties = branch.get("required"), branch.get("properties")
    if not isinstance(required, list):
        return False
    rules = properties if isinstance(properties, dict) else {}
    return any(name in required and rules.get(name) not in ({"type": "null"}, {"const": None}) for name in ERROR_NAMES)


def is_error_body(schema: JsonObject, value: Json) -> bool:
    """True for a value that only an error branch of the schema's `oneOf` or `anyOf` speaks of."""
    named = [name for name in ERROR_NAMES if isinstance(value, dict) and value.get(name)]
    if not named:
        return False
    union = _followed(schema, schema)
    branches: list[Any] = next((union[key] for key in ("oneOf", "anyOf") if isinstance(union.get(key), list)), [])
    errors = [branch for branch in branches if is_error_branch(branch, schema)]
    if not errors or len(errors) == len(branches):
        return False
    rules = rules_of(schema)
    plain = (_followed(branch, schema) for branch in branches if branch not in errors)
    spoken_of = (branch for branch in plain if any(name in (branch.get("properties") or ()) for name in named))
    return not any(accepts(rules.evolve(schema=branch), value) for branch in spoken_of)


def _followed(schema: Any, root: Any) -> JsonObject:
    """What a chain of references leads to; an empty schema where that is no object."""
    for _ in range(MAX_HOPS):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            break
        schema = follow(root, schema["$ref"])
    return schema if isinstance(schema, dict) else {}
