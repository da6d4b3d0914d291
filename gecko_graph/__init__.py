"""Rehearse an agent's tool calls before anything real is touched.

The public names; each is imported when it is first used, so that `import gecko_graph` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agent import create_gecko_agent
    from .context import GeckoContext
    from .contracts.contract import Contract
    from .conversation import create_conversation
    from .display import format_run
    from .errors import GeckoError, Refused
    from .graph import create_gecko
    from .ledger import blame
    from .models.log import PromptLog
    from .scenario import Scenario
    from .simulation.rung import Rung
    from .state import Rehearsal, RehearsalState
    from .toolgate import create_toolgate
    from .toolkit import Toolkit
    from .toolkit.spec import ToolSpec
    from .world import World

__version__ = "0.1.0"

__all__ = [
    "Contract",
    "GeckoContext",
    "GeckoError",
    "PromptLog",
    "Refused",
    "Rehearsal",
    "RehearsalState",
    "Rung",
    "Scenario",
    "ToolSpec",
    "Toolkit",
    "World",
    "blame",
    "create_conversation",
    "create_gecko",
    "create_gecko_agent",
    "create_toolgate",
    "format_run",
]

_HOMES = {
    "Contract": ".contracts.contract",
    "GeckoContext": ".context",
    "GeckoError": ".errors",
    "PromptLog": ".models.log",
    "Refused": ".errors",
    "Rehearsal": ".state",
    "RehearsalState": ".state",
    "Rung": ".simulation.rung",
    "Scenario": ".scenario",
    "ToolSpec": ".toolkit.spec",
    "Toolkit": ".toolkit",
    "World": ".world",
    "blame": ".ledger",
    "create_conversation": ".conversation",
    "create_gecko": ".graph",
    "create_gecko_agent": ".agent",
    "create_toolgate": ".toolgate",
    "format_run": ".display",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
