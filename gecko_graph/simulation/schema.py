"""The rung `schema`: a seeded generator, the last resort that needs neither model nor contract (paper, A.4)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..generator.maker import Impossible, make_value
from ..generator.naming import noun, vocabulary, words
from ..state import Json, JsonObject
from ..toolkit.spec import ToolSpec
from .rung import Answer, Pass, RungRequest, RungResult

_TEXT: JsonObject = {"type": "string"}
_ENTITY: JsonObject = {
    "type": "object",
    "properties": {"id": _TEXT, "name": _TEXT, "description": _TEXT, "updated_at": {**_TEXT, "format": "date-time"}},
    "required": ["id", "name", "description", "updated_at"],
}
_LISTING = vocabulary("list search find browse query filter recommend")
_ASKING = vocabulary("is has check verify validate exists can")
_NUMBERING = vocabulary("count calculate compute estimate convert sum average measure")


def schema_rung(request: RungRequest) -> RungResult:
    """Answer any call: the same arguments get the same answer, in every process, whatever the state.

    A successful write leaves its change open (`patch` None): no rule knows it.
    """
    tool, args = request.tool, request.call["args"]
    key = f"{tool.name}\0{json.dumps(args, sort_keys=True, ensure_ascii=False)}"
    schema = tool.result if tool.result is not None else supposed_schema(tool, args)
    try:
        result = make_value(schema, seed=request.context.seed, key=key, hints=args, subject=tool.name)
    except Impossible as reason:
        return Pass(f"no made-up result fits the result schema: {reason}")
    return Answer("ok", result, [] if tool.reads else None)


def supposed_schema(tool: ToolSpec, args: Mapping[str, Json]) -> JsonObject:
    """Return a result schema for a tool that has none: its arguments, a status, and for a read something to read."""
    echoed: JsonObject = {name: {} for name, value in args.items() if isinstance(value, str | int | float | bool)}
    properties: JsonObject = {"status": {"const": "ok"}, **echoed}
    if tool.reads:
        properties |= _readable(tool)
    return {"type": "object", "properties": properties, "required": list(properties)}


def _readable(tool: ToolSpec) -> JsonObject:
    verb = set(words(tool.name))
    if verb & _LISTING:
        return {"items": {"type": "array", "items": _ENTITY, "minItems": 1}, "total": {"type": "integer"}}
    if verb & _ASKING:
        return {"result": {"type": "boolean"}}
    if verb & _NUMBERING:
        return {"result": {"type": "number"}}
    return {noun(tool.name) or "item": _ENTITY}
