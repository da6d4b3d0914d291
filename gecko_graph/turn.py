"""What one turn is about: the task, and what came before it in the conversation."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, HumanMessage

from .channels import GeckoState
from .errors import TaskError
from .models.telling import text_of


def task_of(messages: Sequence[AnyMessage]) -> str:
    """The task: the text of the last human turn.

    Raises:
        TaskError: There is none, or it is empty.
    """
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            if task := text_of(message).strip():
                return task
            raise TaskError("the task is empty: put what the user wants into the last human message")
    raise TaskError('there is no task: pass {"messages": [("user", "what to do")]}')


def earlier(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The conversation before the task: it resolves references and is not judged again."""
    last = max((index for index, message in enumerate(messages) if isinstance(message, HumanMessage)), default=0)
    return list(messages[:last])


def human_turns(messages: Sequence[AnyMessage]) -> int:
    """How many human turns the conversation has: the number of the scenario's turn, from 1."""
    return sum(isinstance(message, HumanMessage) for message in messages)


def next_turn(state: GeckoState) -> int:
    """The number of the turn that opens now; every run of a thread opens one."""
    ledger = state.get("ledger")
    return (ledger["turn"] if ledger else 0) + 1
