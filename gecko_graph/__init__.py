"""Rehearse an agent's tool calls before anything real is touched.

The public names. Each is imported on first use, so that `import gecko_graph` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agent.channels import AgentOutput
    from .agent.graph import create_gecko_agent
    from .context import GeckoContext
    from .contracts.contract import Contract
    from .conversation.channels import ConversationInput, ConversationOutput
    from .conversation.graph import create_conversation
    from .create import create_gecko
    from .derive.contracts import Derived, derive_contracts
    from .display import format_run
    from .errors import (
        ContractError,
        GeckoError,
        InDoubt,
        ModelError,
        NoReply,
        NotMade,
        Refused,
        ScenarioError,
        StateError,
        TaskError,
        ToolkitError,
    )
    from .learning.learn import learn_contracts
    from .models.chat_decisions import ChatDecisionModel
    from .models.factory import Models
    from .models.usage import PromptLog
    from .scenario import Scenario
    from .state import Rehearsal, RehearsalState
    from .toolgate.channels import ToolGateInput, ToolGateOutput
    from .toolgate.graph import create_toolgate
    from .tools import Tool, Toolkit
    from .tools.spec import ToolSpec
    from .training.env import GeckoEnv
    from .training.loop import LoopConfig, create_loop
    from .training.tasks import make_tasks
    from .training.verify import verify_samples
    from .values.origins import blame
    from .world.channels import GeckoInput, GeckoOutput
    from .world.rung import Rung
    from .world.world import World

__version__ = "0.1.0"

__all__ = [
    "AgentOutput",
    "ChatDecisionModel",
    "Contract",
    "ContractError",
    "ConversationInput",
    "ConversationOutput",
    "Derived",
    "GeckoContext",
    "GeckoEnv",
    "GeckoError",
    "GeckoInput",
    "GeckoOutput",
    "InDoubt",
    "LoopConfig",
    "ModelError",
    "Models",
    "NoReply",
    "NotMade",
    "PromptLog",
    "Refused",
    "Rehearsal",
    "RehearsalState",
    "Rung",
    "Scenario",
    "ScenarioError",
    "StateError",
    "TaskError",
    "Tool",
    "ToolGateInput",
    "ToolGateOutput",
    "ToolSpec",
    "Toolkit",
    "ToolkitError",
    "World",
    "blame",
    "create_conversation",
    "create_gecko",
    "create_gecko_agent",
    "create_loop",
    "create_toolgate",
    "derive_contracts",
    "format_run",
    "learn_contracts",
    "make_tasks",
    "undo_message",
    "verify_samples",
]

_NAMES = {
    ".agent.channels": "AgentOutput",
    ".agent.graph": "create_gecko_agent",
    ".context": "GeckoContext",
    ".contracts.contract": "Contract",
    ".conversation.channels": "ConversationInput ConversationOutput",
    ".conversation.graph": "create_conversation",
    ".create": "create_gecko",
    ".derive.contracts": "Derived derive_contracts",
    ".display": "format_run",
    ".errors": "ContractError GeckoError InDoubt ModelError NoReply NotMade Refused ScenarioError StateError TaskError"
    " ToolkitError",
    ".learning.learn": "learn_contracts",
    ".models.chat_decisions": "ChatDecisionModel",
    ".models.factory": "Models",
    ".models.usage": "PromptLog",
    ".scenario": "Scenario",
    ".state": "Rehearsal RehearsalState",
    ".toolgate.channels": "ToolGateInput ToolGateOutput",
    ".toolgate.graph": "create_toolgate",
    ".tools": "Tool Toolkit",
    ".tools.spec": "ToolSpec",
    ".training.env": "GeckoEnv",
    ".training.loop": "LoopConfig create_loop",
    ".training.tasks": "make_tasks",
    ".training.verify": "verify_samples",
    ".values.origins": "blame",
    ".world.channels": "GeckoInput GeckoOutput",
    ".world.rung": "Rung",
    ".world.turn": "undo_message",
    ".world.world": "World",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
