"""The agent's current turn; its message is stored, because a summary may remove it from the conversation."""

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
    """Return the turn that a message starts, or continues if it is delivered again.

    `id` and `task` are the message's; `log` and `since` are the first positions of its calls in the world's log, and of
    its counted calls in the journal; `told` has the keys, by id, of calls answered from the ledger. If the message is
    delivered again after an answer, earlier calls do not count: the first equal call is found in the ledger. Before an
    answer they count if they follow the message: the model sees them and continues, so an equal call is a new one. If a
    summary or trimming removed them, the model starts again.
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
    """Return whether a conversation ends with an answer, apart from the turn's message."""
    last = next((each for each in reversed(messages) if each.id != turn.id), None)
    return isinstance(last, AIMessage) and not last.tool_calls


def counted_keys(state: Mapping[str, Any]) -> dict[str, str]:
    """Return the claims of the turn's calls, by id, which no equal call may use."""
    turn = state.get("gecko_turn") or {"since": 0, "told": {}}
    return {**keys_of((state.get("gecko_journal") or ())[turn["since"] :]), **turn["told"]}


def keys_of(entries: Iterable[ExecutedCall]) -> dict[str, str]:
    """Return the claims of calls by id, without those left in doubt, whose equal calls are not made either."""
    return {each["call"]["id"]: each["key"] for each in entries if each.get("result") != UNKNOWN}
