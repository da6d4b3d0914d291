"""The toolkits of the eight multi-turn classes with contracts; each class's state is below the class's name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from gecko_graph import Tool, Toolkit
from gecko_graph.state import JsonObject

from ..harness.options import ROOT
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


# mathematical tools that are beyond the language of contracts, as pure functions for the rung `python`; their refusals
# are in `contracts/MathAPI.yaml`

UNITS = {"km": 1000, "m": 1, "cm": 0.01, "mm": 0.001, "um": 1e-6, "nm": 1e-9}


def logarithm(state: JsonObject, value: Any, base: Any, precision: Any) -> JsonObject:
    """Return a logarithm as text with `precision` digits."""
    return {"result": str(_logarithm(value, base, precision))}


def _logarithm(value: Any, base: Any, precision: Any) -> Any:
    context = import_module("mpmath").MPContext()
    context.dps = precision
    return context.log(value) / context.log(base)


def standard_deviation(state: JsonObject, numbers: Sequence[float]) -> JsonObject:
    mean = sum(numbers) / len(numbers)
    return {"result": math.sqrt(sum((each - mean) ** 2 for each in numbers) / len(numbers))}


def si_unit_conversion(state: JsonObject, value: float, unit_in: str, unit_out: str) -> JsonObject:
    """Return a length in another unit, converted through metres."""
    return {"result": value * UNITS[unit_in] * (1 / UNITS[unit_out])}


def power(state: JsonObject, base: float, exponent: float) -> JsonObject:
    """Return a power; a complex one as text. Raises OverflowError for integers that a task state cannot contain."""
    result = base**exponent
    if isinstance(result, int) and result.bit_length() > 63:
        raise OverflowError("the result is an integer of more than 64 bits")
    return {"result": str(result) if isinstance(result, complex) else result}


def square_root(state: JsonObject, number: float, precision: int) -> JsonObject:
    return {"result": str(_square_root(number, precision))}


def _square_root(number: float, precision: int) -> Decimal:
    return Decimal(number).sqrt(Context(prec=precision))


def round_number(state: JsonObject, number: float, decimal_places: int = 0) -> JsonObject:
    return {"result": round(number, decimal_places)}


SIMULATED: Mapping[str, Callable[..., JsonObject]] = {
    each.__name__: each
    for each in (logarithm, standard_deviation, si_unit_conversion, power, square_root, round_number)
}

PRINTED: Mapping[str, Callable[..., str]] = {
    "logarithm": lambda state, **args: str({"result": _logarithm(**args)}),
    "square_root": lambda state, **args: str({"result": _square_root(**args)}),
}
"""The same functions for stages whose results are texts as the benchmark prints them."""


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
