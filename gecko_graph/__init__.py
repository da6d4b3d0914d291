"""Rehearse an agent's tool calls before anything real is touched.

The public names. Each is imported on first use, so that `import gecko_graph` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agent.channels import AgentOutput as AgentOutput
    from .agent.graph import create_gecko_agent as create_gecko_agent
    from .context import GeckoContext as GeckoContext
    from .contracts.contract import Contract as Contract
    from .conversation.channels import ConversationInput as ConversationInput
    from .conversation.channels import ConversationOutput as ConversationOutput
    from .conversation.graph import create_conversation as create_conversation
    from .create import create_gecko as create_gecko
    from .derive.contracts import Derived as Derived
    from .derive.contracts import derive_contracts as derive_contracts
    from .display import format_run as format_run
    from .errors import ContractError as ContractError
    from .errors import GeckoError as GeckoError
    from .errors import InDoubt as InDoubt
    from .errors import ModelError as ModelError
    from .errors import NoReply as NoReply
    from .errors import NotMade as NotMade
    from .errors import Refused as Refused
    from .errors import ScenarioError as ScenarioError
    from .errors import StateError as StateError
    from .errors import TaskError as TaskError
    from .errors import ToolkitError as ToolkitError
    from .learning.learn import learn_contracts as learn_contracts
    from .models.chat_decisions import ChatDecisionModel as ChatDecisionModel
    from .models.factory import Models as Models
    from .models.usage import PromptLog as PromptLog
    from .scenario import Scenario as Scenario
    from .state import Rehearsal as Rehearsal
    from .state import RehearsalState as RehearsalState
    from .toolgate.channels import ToolGateInput as ToolGateInput
    from .toolgate.channels import ToolGateOutput as ToolGateOutput
    from .toolgate.graph import create_toolgate as create_toolgate
    from .tools import Tool as Tool
    from .tools import Toolkit as Toolkit
    from .tools.spec import ToolSpec as ToolSpec
    from .training.env import GeckoEnv as GeckoEnv
    from .training.loop import LoopConfig as LoopConfig
    from .training.loop import create_loop as create_loop
    from .training.tasks import make_tasks as make_tasks
    from .training.verify import verify_samples as verify_samples
    from .values.origins import blame as blame
    from .world.channels import GeckoInput as GeckoInput
    from .world.channels import GeckoOutput as GeckoOutput
    from .world.rung import Rung as Rung
    from .world.turn import undo_message as undo_message
    from .world.world import World as World

__version__ = "0.1.0"

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
__all__ = [*sorted(_HOMES)]  # type checkers read the imports above


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
