"""The scenarios that are shipped with the package, and the real service of the example `order`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from runpy import run_path
from typing import Any

from ..conversation.scenario import Scenario
from ..errors import ScenarioError, did_you_mean

FIRST = "files"
"""The example that `demo` runs by default."""


def examples() -> dict[str, Path]:
    """Return the shipped scenarios by the name of their folder, `FIRST` first.

    They are inside the package, or beside it in a source checkout.

    Raises:
        ScenarioError: They are missing; the installation is broken.
    """
    package = Path(__file__).resolve().parents[1]
    for place in (package / "examples", package.parent / "examples"):
        files = (file for file in sorted(place.glob("*/*.yaml")) if file.name.count(".") == 1)
        found = {file.parent.name: file for file in files}
        if FIRST in found:
            return {FIRST: found[FIRST], **found}
    raise ScenarioError(f"no examples in {package / 'examples'}: install gecko-graph again")


def shipped(name: str = FIRST) -> Scenario:
    """Load a shipped scenario. Raises ScenarioError if no example has this name."""
    known = examples()
    if name not in known:
        raise ScenarioError(f"unknown example {name!r}{did_you_mean(name, known)}; examples: {', '.join(known)}")
    return Scenario.load(known[name])


def order_service(*args: Any, **options: Any) -> Any:
    """Return the small real service of the example `order`; enter it with `with`."""
    return service_module()["OrderService"](*args, **options)


@cache
def service_module() -> dict[str, Any]:
    """Return the module `service.py` of the example `order`, which is beside the scenario and in no package."""
    return run_path(str(examples()["order"].with_name("service.py")))  # run_path writes no compiled file there
