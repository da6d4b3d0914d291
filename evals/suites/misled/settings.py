"""The small worlds that the cases play in: toolkits and task states from settings.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from gecko_graph import Toolkit
from gecko_graph.state import JsonObject
from gecko_graph.values.documents import read_document

from ...harness.datasets import ROOT
from . import functions

FILE = Path(__file__).with_name("settings.yaml")
EXAMPLES = ROOT / "examples"


@dataclass(frozen=True, slots=True)
class Setting:
    """Tools and the task state that cases begin from."""

    toolkit: Toolkit
    state: JsonObject


@cache
def settings() -> Mapping[str, Setting]:
    """Return the worlds by name."""
    return {name: Setting(_toolkit(name, world), world["state"]) for name, world in read_document(FILE).items()}


def _toolkit(name: str, world: Mapping[str, Any]) -> Toolkit:
    if "examples" in world:
        return Toolkit.from_openapi(EXAMPLES / world["examples"])
    tools: Mapping[str, Mapping[str, Any]] = world["tools"]
    toolkit = Toolkit.from_tools(
        [_described(tool, one) for tool, one in tools.items()],
        contracts=_by_tool(tools, "contract"),
        simulate={tool: getattr(functions, function) for tool, function in _by_tool(tools, "simulate").items()},
        effects=_by_tool(tools, "does"),
        invariants=world.get("invariants", ()),
        title=name,
    )
    real = {tool: getattr(functions, function) for tool, function in _by_tool(tools, "real").items()}
    return toolkit.replace(*(replace(toolkit[tool], real=each) for tool, each in real.items())).open(*real)


def _by_tool(tools: Mapping[str, Mapping[str, Any]], key: str) -> dict[str, Any]:
    return {name: one[key] for name, one in tools.items() if key in one}


def _described(name: str, one: Mapping[str, Any]) -> JsonObject:
    takes = one.get("takes", {})
    parameters = {"type": "object", "properties": takes, "required": list(takes)}
    return {
        "name": name,
        "description": one["text"],
        "parameters": parameters,
        **({"response": one["gives"]} if "gives" in one else {}),
    }
