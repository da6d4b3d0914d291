"""Read `x-gecko` of an operation: the additions of an exported document."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import truediv
from typing import Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from ...contracts.derived import DerivedContract
from ...state import JsonObject
from ..spec import HttpBinding, ToolExample, ToolSpec
from .documents import Place, error_at


class _Parameters(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    type: Literal["object"]
    properties: dict[str, JsonObject | bool]
    required: list[str]


class _OwnKeys(TypedDict, total=False):
    """The key `x-gecko` of an operation: parts of a tool that plain OpenAPI cannot express."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    name: str
    description: str
    parameters: _Parameters
    result: JsonObject | None
    examples: tuple[ToolExample, ...]
    binding: HttpBinding | None
    idempotency: str | None
    lets: JsonObject
    derived: JsonObject


_OWN_KEYS = TypeAdapter(_OwnKeys)


def apply_own_keys(tool: ToolSpec, operation: JsonObject, place: Place) -> ToolSpec:
    """Return the tool with the additions of its operation's `x-gecko`. Raises ToolkitError with the place."""
    given = operation.get("x-gecko", {})
    try:
        read = _OWN_KEYS.validate_python(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise error_at(reduce(truediv, first["loc"], place / "x-gecko"), first["msg"]) from None
    own: JsonObject = {key: one for key, one in read.items() if key not in ("name", "lets")}
    if own.get("binding") and tool.binding:
        own["binding"] = replace(own["binding"], responses=tool.binding.responses)
    if "derived" in own:
        evidence = own["derived"].get("evidence")
        if not isinstance(evidence, dict) or evidence.get("status") != "derived":
            raise error_at(place / "x-gecko" / "derived" / "evidence", "expected an object with status: derived")
        own["derived"] = DerivedContract(own["derived"], f"derived of {tool.name}")
    return replace(tool, **own | ({"parameters": given["parameters"]} if "parameters" in own else {}))
