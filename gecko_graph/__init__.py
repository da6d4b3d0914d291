"""Rehearse an agent's tool calls before anything real is touched.

The public names; each is imported when it is first used, so that `import gecko_graph` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agent.graph import create_gecko_agent
    from .context import GeckoContext
    from .contracts.contract import Contract
    from .conversation.graph import create_conversation
    from .display import format_run
    from .errors import GeckoError, Refused
    from .graph import create_gecko
    from .models.log import PromptLog
    from .scenario import Scenario
    from .state import Rehearsal, RehearsalState
    from .toolgate.graph import create_toolgate
    from .tools import Toolkit
    from .tools.spec import ToolSpec
    from .values.origins import blame
    from .world.rung import Rung
    from .world.world import World

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
    "Rung": ".world.rung",
    "Scenario": ".scenario",
    "ToolSpec": ".tools.spec",
    "Toolkit": ".tools",
    "World": ".world.world",
    "blame": ".values.origins",
    "create_conversation": ".conversation.graph",
    "create_gecko": ".graph",
    "create_gecko_agent": ".agent.graph",
    "create_toolgate": ".toolgate.graph",
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
