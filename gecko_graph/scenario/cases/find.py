"""Where test cases and the agent under test come from."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...conversation.agents import AgentLike
from ...errors import GeckoError, did_you_mean
from ...models.factory import PROVIDERS

PATTERN = "*.gecko.yaml"


def find_cases(places: Sequence[str | Path]) -> list[Path]:
    """Return the scenario files of folders (`*.gecko.yaml`, also in folders below) and files, each once, in order.

    Raises:
        GeckoError: A place does not exist, or a folder has none.
    """
    found: list[Path] = []
    for place in map(Path, places):
        if not place.exists():
            raise GeckoError(f"{place}: no such file or folder")
        files = sorted(place.rglob(PATTERN)) if place.is_dir() else [place]
        if not files:
            raise GeckoError(f"{place}: no {PATTERN} in it: a case is a scenario with a user (docs/conversations.md)")
        found += [file for file in files if file not in found]
    return found


def load_agent(name: str) -> AgentLike:
    """Return the agent of a name: `module:factory`, `provider:name`, or the address of a server.

    `module` may be a file beside the caller: the working folder is searched first.

    Raises:
        GeckoError: The module cannot be imported, or has no such attribute.
    """
    module, colon, attribute = name.partition(":")
    if (not colon and is_module(module.removesuffix(".py"))) or module.endswith(".py"):
        hint = f"write {module.removesuffix('.py')}:{attribute or 'build'}, with the name of its function"
        raise GeckoError(f"agent {name}: expected module:function from tools to an agent: {hint}")
    if not colon or not attribute.isidentifier() or module in PROVIDERS:
        return name
    if not is_module(module):
        raise GeckoError(
            f"agent {name}: no module {module!r} in the working folder or installed, and no provider of this name"
        )
    try:
        found: Any = getattr(import_module(module), attribute)
    except AttributeError:
        known = [each for each in dir(sys.modules[module]) if not each.startswith("_")]
        raise GeckoError(f"agent {name}: {module} has no {attribute!r}{did_you_mean(attribute, known)}") from None
    except Exception as error:
        raise GeckoError(f"agent {name}: {module} cannot be imported: {type(error).__name__}: {error}") from error
    return found  # type: ignore[no-any-return]


def is_module(name: str) -> bool:
    """Return whether there is a module of this name, in the working folder or installed."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False
