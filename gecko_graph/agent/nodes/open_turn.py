"""open_turn, recover: a turn begins, or goes on, from all that was really done, whichever run has done it."""

from __future__ import annotations

import time
from typing import Any

from langgraph.types import Overwrite

from ...models.node import NodeScope
from ...real.claims import entry_of, last_human
from ...real.journal import as_step
from ...tools import Toolkit
from ...values.difference import json_equal
from ...world.records import ExecutedCall
from ...world.turn import human_turns
from ..channels import AgentState, booked_keys, is_edited, last_entry, still_supposed


def open_turn(state: AgentState, scope: NodeScope) -> dict[str, Any]:
    """Open the turn, or go on with it where its message was sent again.

    A state that was given again as it was at the turn's start has none of its real calls: they are booked anew.
    """
    messages = state.get("messages", [])
    last = last_human(messages)
    turn_id = str(last.id or "") if last else ""
    is_same = bool(turn_id) and state.get("turn_id") == turn_id
    is_anew = (
        "turn_start_state" in state
        and is_edited(state)
        and (is_same or json_equal(state["task_state"], state["turn_start_state"]))
    )
    known = booked_keys(state)
    journal = [entry for entry in state.get("journal") or () if not entry["key"] or entry["key"] in known]
    if is_same and not is_anew:
        update: dict[str, Any] = {"next_rehearsal_reason": "resumed", "journal": Overwrite(journal)}
    else:
        update = begin(state, None if is_anew else journal)
    update |= {"lesson": None, "preview": None, "approval": None}
    return {**update, "turn": human_turns(messages), "turn_id": turn_id, "found": []}


def begin(state: AgentState, journal: list[ExecutedCall] | None) -> dict[str, Any]:
    """Return what a new turn clears and begins with; what was done before it without an answer is still to be told."""
    unreported: list[ExecutedCall] = []
    if journal is not None:
        is_answered = (state.get("execution") or {"turn": 0})["turn"] == state.get("turn")
        made = [entry for entry in journal if entry["tries"] and not is_answered]
        unreported = [*(state.get("unreported") or ()), *made]
    return {
        "unreported": unreported,
        "turn_start_state": state.get("task_state") or {},
        "supposed": still_supposed(state),
        "rehearsals": {},
        "next_rehearsal_reason": "task",
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
                "turn_start_state": state["task_state"],
                "supposed": still_supposed(state),
                "steps": [],
            }
        else:
            left = [as_step(entry)] if entry["status"] == "in_doubt" else []
            update |= {
                "next_rehearsal_reason": "resumed"
                if state["next_rehearsal_reason"] == "task"
                else state["next_rehearsal_reason"],
                "steps": [*state["steps"], *left],
            }
    while found and found[0]["call"]["name"] not in toolkit:
        update["unreported"] = [*update["unreported"], entry_of(found[0])]
        found = found[1:]
    if found:
        entry = entry_of(found[0])
        if entry["call"]["id"] in {each["call"]["id"] for each in journal}:
            entry["call"] = {**entry["call"], "id": f"{entry['call']['id']}-{entry['key'][:8]}"}
        journal.append(entry)
    return {**update, "found": found, "journal": Overwrite(journal)}
