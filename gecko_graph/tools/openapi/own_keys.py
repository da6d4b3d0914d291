"""The key `x-gecko` of an operation: what `Toolkit.to_openapi` could not write as plain OpenAPI."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import truediv
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ...state import Json, JsonObject
from ..spec import HttpBinding, ToolExample, ToolSpec
from .references import Place, error_at


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class _Parameters(_Open):
    type: Literal["object"] = "object"
    properties: dict[str, JsonObject | bool] = {}
    required: list[str] = []


class _Style(_Open):
    style: str = ""
    content: str = ""


class _Body(_Open):
    media: str = ""
    encoding: dict[str, JsonObject] = {}


class _Server(_Open):
    url: str
    variables: dict[str, JsonObject] = {}


class _Binding(BaseModel):
    method: str
    path: str
    places: dict[str, tuple[Literal["path", "query", "header", "cookie", "body"], str]] = {}
    styles: dict[str, _Style] = {}
    body: _Body = _Body()
    server: _Server | None = None
    security: tuple[dict[str, JsonObject], ...] = ()


class _Example(BaseModel):
    args: JsonObject
    result: Json


class _OwnKeys(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = ""
    description: str = ""
    parameters: _Parameters = _Parameters()
    result: JsonObject | None = None
    examples: tuple[_Example, ...] = ()
    binding: _Binding | None = None
    idempotency: str | None = None
    lets: JsonObject = {}


def apply_own_keys(tool: ToolSpec, operation: JsonObject, place: Place) -> ToolSpec:
    """Return the tool with what the `x-gecko` of its operation says of it.

    Raises:
        ToolkitError: It does not hold what it should; the message names the place.
    """
    if "x-gecko" not in operation:
        return tool
    try:
        read = _OwnKeys.model_validate(operation["x-gecko"])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise error_at(reduce(truediv, first["loc"], place / "x-gecko"), first["msg"]) from None
    given: dict[str, Any] = read.model_dump(exclude_unset=True, exclude={"name", "lets"})
    if "examples" in given:
        given["examples"] = tuple(ToolExample(**one) for one in given["examples"])
    if given.get("binding"):
        given["binding"] = HttpBinding(**given["binding"])
    return replace(tool, **given)
