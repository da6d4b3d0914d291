"""The examples that come with the package."""

from __future__ import annotations

from pathlib import Path

from ..errors import ScenarioError
from .case import Scenario

FIRST = "files"
"""What the demonstration shows when nothing else is asked for."""


def examples() -> dict[str, Path]:
    """The shipped scenarios by the name of their folder, the first one first.

    They lie inside the package, or beside it in a source checkout.

    Raises:
        ScenarioError: Neither is there; the installation is broken.
    """
    package = Path(__file__).resolve().parents[1]
    for place in (package / "examples", package.parent / "examples"):
        files = (file for file in sorted(place.glob("*/*.yaml")) if not file.name.endswith(".openapi.yaml"))
        found = {file.parent.name: file for file in files}
        if FIRST in found:
            return {FIRST: found[FIRST], **found}
    raise ScenarioError(f"no examples in {package / 'examples'}: install gecko-graph again")


def shipped(name: str = FIRST) -> Scenario:
    """A shipped scenario.

    Raises:
        ScenarioError: There is none of this name.
    """
    known = examples()
    if name not in known:
        raise ScenarioError(f"no example is called {name!r}; there are {', '.join(known)}")
    return Scenario.load(known[name])
