"""The eight multi-turn classes by contract: each class's tools, their state below the class's name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from gecko_graph import Tool, Toolkit
from gecko_graph.state import JsonObject

from ..harness.options import ROOT
from .linked import simulated
from .mathematics import SIMULATED
from .tasks import documents

FILES = ROOT / "examples" / "files" / "files.openapi.yaml"
FOLDER = Path(__file__).parent / "contracts"
CLASSES = (
    "GorillaFileSystem",
    "MathAPI",
    "MessageAPI",
    "TicketAPI",
    "TradingBot",
    "TravelAPI",
    "TwitterAPI",
    "VehicleControlAPI",
)


@cache
def class_toolkit(name: str) -> Toolkit:
    """Return the tools of a class as they are documented, with contracts; mathematics is computed.

    The file system's are those of `examples/files`, and objects where they do not suffice. A class without a file of
    contracts has none.
    """
    if name == "GorillaFileSystem":
        return linked_files(name)
    simulated = SIMULATED if name == "MathAPI" else {}
    plain = Toolkit.from_tools(documents(name).values(), title=name).declare(
        *(Tool(tool, simulate=function) for tool, function in simulated.items())
    )
    file = FOLDER / f"{name}.yaml"
    return plain.with_contracts(file, at=name) if file.is_file() else plain


@cache
def learned_toolkit(name: str, folder: Path) -> Toolkit:
    """Return the tools of a class as they are documented, with the contracts that were learned of it."""
    plain = Toolkit.from_tools(documents(name).values(), title=name)
    return plain.with_contracts(folder / f"{name}.yaml", at=name)


def linked_files(name: str) -> Toolkit:
    """Return the file system's tools: their contracts pass, and `linked.py` answers, where names do not say all."""
    plain = Toolkit.from_openapi(FILES)
    contracts = {tool.name: _passing(tool.name, tool.contract.data) for tool in plain if tool.contract is not None}
    ruled = plain.with_contracts({"contracts": contracts, "let": plain.lets})
    return Toolkit.from_tools(ruled.mount(name), title=name).declare(
        *(Tool(tool, simulate=function) for tool, function in simulated(name).items())
    )


def _passing(tool: str, contract: JsonObject) -> JsonObject:
    """Return a contract that holds for plain trees, and else does not know."""
    known = "state._links is not defined and '.' not in here"
    if tool in ("mv", "cp"):
        known += " and at(here, [args.source, 'type'], none) != 'directory'"
    parts = {
        part: [
            {**clause, "when": f"{known} and ({clause['when']})" if "when" in clause else known}
            for clause in contract.get(part, [])
        ]
        for part in ("requires", "ensures")
    }
    passing = {"check": known, "pass": "links between the folders decide"}
    return {**contract, **parts, "requires": [passing, *parts["requires"]]}


def classes_toolkit(names: Sequence[str]) -> Toolkit:
    """Return the tools of several classes on one state."""
    first, *others = map(class_toolkit, names)
    return first.merge(*others)
