"""Where BFCL is stricter than JSON Schema: an integer is written without a fraction, so that `10.0` is not one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gecko_graph.schemas.findings import KINDS
from gecko_graph.schemas.reading import Said
from gecko_graph.state import Complaint, Json, JsonObject
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.values.places import excerpt, pointer


def find_floats(tool: ToolSpec, args: JsonObject) -> list[Complaint]:
    return [
        {
            "tool": tool.name,
            "path": pointer(place),
            "expected": KINDS["integer"],
            "got": excerpt(value),
            "source": "rule",
        }
        for place, value in _floats(Said(tool.parameters, tool.parameters), args, ())
    ]


def _floats(said: Said, value: Json, place: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], float]]:
    if isinstance(value, float):
        kinds: set[Any] = set()
        for part in said.parts():
            given = part.get("type", ())
            kinds |= {given} if isinstance(given, str) else {*given}
        if "integer" in kinds and "number" not in kinds:
            yield place, value
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in members:
        yield from _floats(said.member(key), each, (*place, key))
