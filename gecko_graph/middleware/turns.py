"""The turn that an agent is in: its message, remembered, as a summary may take that out of the conversation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import dropwhile
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage

from ..real.claims import UNKNOWN
from ..real.home import TurnKey
from ..state import JsonObject
from ..world.records import ExecutedCall


def open_turn(state: Mapping[str, Any], log: int) -> JsonObject:
    """Return the turn that a message begins, or goes on with if it is delivered again.

    Its `id` and `task` are the message's; `log` and `since` say where its calls begin in the world's log, and those
    that count in the journal; `told` holds the keys, by id, of calls that were answered from the ledger. After an
    answer a call of the delivery before does not count: it is the first one again, and found. Before there was an
    answer it does if it follows the message: the model sees it and goes on, so that an equal one is another one. If a
    summary or a trimmed history took it away, the model begins anew.
    """
    known, journal, turn = (
        state.get("gecko_turn") or {},
        state.get("gecko_journal") or (),
        TurnKey.of(state["messages"]),
    )
    is_same = known.get("id") == turn.id
    since_then = dropwhile(lambda each: each.id != turn.id, state["messages"])
    has_calls = any(isinstance(each, AIMessage) and each.tool_calls for each in since_then)
    is_over = known.get("ended") or is_answered(state["messages"], turn) or not has_calls
    is_again = is_same and known["task"] == turn.task and is_over
    if not is_same or is_again:
        told, since = {}, len(journal)
    else:
        told, since = known["told"], known["since"]
    log = min(known["log"], log) if is_same else log
    return {"id": turn.id, "task": turn.task, "since": since, "log": log, "told": told, "ended": False}


def is_answered(messages: Sequence[AnyMessage], turn: TurnKey) -> bool:
    """Return whether a conversation ends with an answer, but for the turn's message."""
    last = next((each for each in reversed(messages) if each.id != turn.id), None)
    return isinstance(last, AIMessage) and not last.tool_calls


def counted_keys(state: Mapping[str, Any]) -> dict[str, str]:
    """Return the claims of the turn's calls, by id, which no equal call must take."""
    turn = state.get("gecko_turn") or {"since": 0, "told": {}}
    return {**keys_of((state.get("gecko_journal") or ())[turn["since"] :]), **turn["told"]}


def keys_of(entries: Iterable[ExecutedCall]) -> dict[str, str]:
    """Return the claims of calls by id, without those that are left in doubt: an equal call is not made either."""
    return {each["call"]["id"]: each["key"] for each in entries if each.get("result") != UNKNOWN}
