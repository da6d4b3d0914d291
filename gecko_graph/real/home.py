"""Keys of claims: the agent by name and the turn by message id, which stay the same if a tool changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from langchain_core.messages import AnyMessage, HumanMessage

from ..models.memory import NAME
from ..models.node import running_config
from ..values.digest import digest
from .ledger import CallLedger


class Home(NamedTuple):
    """The ledger of an agent and its name, which distinguishes agents at one place of a thread."""

    ledger: CallLedger | None
    """The ledger given to the agent, which replaces its saver's."""
    agent: str | None = None
    """The agent's name; None for LangChain's `create_agent`, which runs the middleware."""

    @property
    def room(self) -> str:
        """The key that separates its calls from those of other agents at the same place."""
        if self.agent is not None:
            return f"{self.agent}|"
        return f"middleware {running_config().get('metadata', {}).get('lc_agent_name') or ''}|"

    @property
    def mark(self) -> str:
        """The agent's key within its thread: its name, and the nodes around it."""
        names = str(running_config().get("configurable", {}).get("checkpoint_ns", "")).split("|")[:-1]
        return "|".join([*(name.partition(":")[0] for name in names if not name.isdecimal()), self.agent or ""])


class TurnKey(NamedTuple):
    """The message that a turn began with: its id, and a digest of its text."""

    id: str
    task: str

    @classmethod
    def of(cls, messages: Sequence[AnyMessage]) -> TurnKey:
        """Return the turn of a conversation's last human message."""
        last = last_human(messages)
        return cls(str(last.id or ""), digest(str(last.text))) if last else cls("", "")


def last_human(messages: Sequence[AnyMessage]) -> HumanMessage | None:
    """Return the message that a turn began with, not a note of this package or a summary of LangChain's."""
    humans = (each for each in reversed(messages) if isinstance(each, HumanMessage))
    return next((each for each in humans if each.name != NAME and "lc_source" not in each.additional_kwargs), None)
