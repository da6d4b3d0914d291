"""open_turn, recover: a turn begins, or goes on, from all that was really done, whichever run has done it."""

from __future__ import annotations

import time
from typing import Any

from langgraph.config import get_config
from langgraph.types import Overwrite

from ..execution.channels import AgentState, booked_keys, is_edited, last_entry
from ..execution.claims import entry_of, last_human
from ..execution.decisions import check_saver
from ..execution.journal import as_step
from ..execution.records import ExecutedCall
from ..models.node import NodeScope
from ..task_state.difference import json_equal
from ..toolkit import Toolkit
from ..trust import find_untrusted
from ..turn import human_turns


def open_turn(state: AgentState, scope: NodeScope, *, needs_saver: bool) -> dict[str, Any]:
    """Open the turn, or go on with it where its message was sent again.

    A state that was given again as it was at the turn's start has none of its real calls: they are booked anew.

    Raises:
        GeckoError: There is no checkpointer, without which a run cannot ask.
    """
    if needs_saver:
        check_saver(get_config())
    messages = state.get("messages", [])
    last = last_human(messages)
    turn_id = str(last.id or "") if last else ""
    is_same = bool(turn_id) and state.get("turn_id") == turn_id
    is_anew = "start" in state and is_edited(state) and (is_same or json_equal(state["task_state"], state["start"]))
    update = go_on(state) if is_same and not is_anew else begin(state, is_anew=is_anew)
    return {**update, "turn": human_turns(messages), "turn_id": turn_id, "found": []}


def go_on(state: AgentState) -> dict[str, Any]:
    """Return the update that rehearses again what is left of a turn."""
    booked = booked_keys(state)
    journal = [entry for entry in state["journal"] if not entry["key"] or entry["key"] in booked]
    return {"again": "resumed", "lesson": None, "preview": None, "approval": None, "journal": Overwrite(journal)}


def begin(state: AgentState, *, is_anew: bool) -> dict[str, Any]:
    """Return what a new turn clears and begins with; what was done before it without an answer is still to be told."""
    supposed, unreported = list[str](), list[ExecutedCall]()
    if "start" in state and not is_edited(state):
        supposed = find_untrusted(state["start"], state.get("supposed") or [], state["steps"])
    if not is_anew:
        is_answered = (state.get("execution") or {"turn": 0})["turn"] == state.get("turn")
        entries, known = [] if is_answered else state.get("journal") or [], booked_keys(state)
        made = [entry for entry in entries if entry["tries"] and (not entry["key"] or entry["key"] in known)]
        unreported = [*(state.get("unreported") or ()), *made]
    return {
        "unreported": unreported,
        "start": state.get("task_state") or {},
        "supposed": supposed,
        "rehearsals": {},
        "again": "task",
        "lesson": None,
        "preview": None,
        "approval": None,
        "journal": Overwrite([]),
        "steps": [],
        "ledger": {"turn": human_turns(state.get("messages", [])), "started_at": time.time(), "usage": {}, "asked": {}},
    }


def recover(state: AgentState, scope: NodeScope, *, toolkit: Toolkit) -> dict[str, Any]:
    """Bring the next real call that was found into the journal, for `sync` to book; none is left at the end.

    A call of this turn becomes one of its steps; one of an earlier turn a part of the state that it begins from.
    """
    found, journal, entry = state["found"], [*state["journal"]], last_entry(state)
    update: dict[str, Any] = {"unreported": state["unreported"]}
    if entry is not None and entry["key"] == found[0]["key"]:
        done, found = found[0], found[1:]
        if done["turn"] != state["turn_id"]:
            journal.pop()
            update = {
                "unreported": [*state["unreported"], entry],
                "start": state["task_state"],
                "supposed": find_untrusted(state["start"], state.get("supposed") or [], state["steps"]),
                "steps": [],
            }
        else:
            left = [as_step(entry)] if entry["status"] == "in_doubt" else []
            update |= {
                "again": "resumed" if state["again"] == "task" else state["again"],
                "steps": [*state["steps"], *left],
            }
    while found and found[0]["call"]["name"] not in toolkit:
        update["unreported"] = [*update["unreported"], entry_of(found[0])]
        found = found[1:]
    if found:
        journal.append(named(entry_of(found[0]), {each["call"]["id"] for each in journal}))
    return {**update, "found": found, "journal": Overwrite(journal)}


def named(entry: ExecutedCall, taken: set[str]) -> ExecutedCall:
    """Return an entry whose call has an id of its own."""
    call = entry["call"]
    return {**entry, "call": {**call, "id": f"{call['id']}-{entry['key'][:8]}"}} if call["id"] in taken else entry
