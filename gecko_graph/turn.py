"""What one turn is about: the task, what came before it in the conversation, and what it may cost."""

from __future__ import annotations

import time
from collections.abc import Sequence

from langchain_core.messages import AnyMessage, HumanMessage

from .channels import AttemptState, GeckoState
from .context import GeckoContext
from .errors import StateError, TaskError
from .models.telling import text_of
from .models.usage import total


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


def check_start(found: str, expected: str) -> None:
    """Check that the task state is still the one that the turn's attempts begin from, by its digest.

    Raises:
        StateError: It is another one: it was edited in the middle of a turn, or changed in place.
    """
    if found != expected:
        raise StateError(
            f"the task state was changed in the middle of a turn (its digest is {found[:8]}, not {expected[:8]}): all "
            "attempts of a turn begin from the same state. To edit it, go back to before the first of them: "
            "update_state(snapshot.config, {'task_state': ...}, as_node='bootstrapper') on the turn's first snapshot "
            "whose next is ('start_round',)"
        )


def spent_budget(state: AttemptState, context: GeckoContext) -> str | None:
    """Which budget of the turn an attempt has spent, in words; attempts that run at once share the tokens equally."""
    tokens = total(state.get("usage", {}))
    used = tokens["input_tokens"] + tokens["output_tokens"]
    if context.token_budget is not None:
        share = (context.token_budget - state.get("spent_tokens", 0)) // state.get("width", 1)
        if used >= share:
            return f"token_budget: {used} tokens were used, of {max(share, 0)} that were left of {context.token_budget}"
    deadline = state.get("deadline")
    if deadline is not None and time.time() >= deadline:
        return f"time_budget_s: the {context.time_budget_s:g} seconds are over"
    return None
