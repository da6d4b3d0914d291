"""The toolkits of the eight multi-turn classes with contracts; each class's state is below the class's name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from gecko_graph import Tool, Toolkit

from ..harness.options import ROOT
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
    """Return the documented tools of a class, with contracts; the mathematics is computed.

    The file system's tools are those of `examples/files`. A class without a contract file has no contracts.
    """
    if name == "GorillaFileSystem":
        return Toolkit.from_tools(Toolkit.from_openapi(FILES).mount(name), title=name)
    simulated = SIMULATED if name == "MathAPI" else {}
    plain = Toolkit.from_tools(documents(name).values(), title=name).declare(
        *(Tool(tool, simulate=function) for tool, function in simulated.items())
    )
    file = FOLDER / f"{name}.yaml"
    return plain.with_contracts(file, at=name) if file.is_file() else plain


@cache
def learned_toolkit(name: str, folder: Path) -> Toolkit:
    plain = Toolkit.from_tools(documents(name).values(), title=name)
    return plain.with_contracts(folder / f"{name}.yaml", at=name)


def classes_toolkit(names: Sequence[str]) -> Toolkit:
    first, *others = map(class_toolkit, names)
    return first.merge(*others)
