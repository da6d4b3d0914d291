"""The examples that come with the package."""

from __future__ import annotations

from pathlib import Path

from ..errors import ScenarioError, did_you_mean
from .case import Scenario

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
    """Load a shipped scenario.

    Raises:
        ScenarioError: No example has this name.
    """
    known = examples()
    if name not in known:
        raise ScenarioError(f"unknown example {name!r}{did_you_mean(name, known)}; examples: {', '.join(known)}")
    return Scenario.load(known[name])
