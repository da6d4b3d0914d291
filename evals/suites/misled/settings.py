"""The small worlds that the cases play in: toolkits and task states from settings.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from gecko_graph import Tool, Toolkit
from gecko_graph.state import JsonObject
from gecko_graph.values.documents import read_document

from ...harness.options import ROOT
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
        [_declared(name, one) for name, one in tools.items()], invariants=world.get("invariants", ()), title=name
    )
    real = {tool: getattr(functions, one["real"]) for tool, one in tools.items() if "real" in one}
    return toolkit.replace(*(replace(toolkit[tool], real=each) for tool, each in real.items())).open(*real)


def _declared(name: str, one: Mapping[str, Any]) -> Tool:
    takes = one.get("takes", {})
    parameters = {"type": "object", "properties": takes, "required": list(takes)}
    return Tool(
        {"name": name, "description": one["text"], "parameters": parameters},
        effect=one.get("does"),
        contract=one.get("contract"),
        simulate=getattr(functions, one["simulate"]) if "simulate" in one else None,
        result=one.get("gives"),
    )
