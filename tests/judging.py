"""How verdicts are tested: an attempt that has ended, judged with the replies that are given."""

from __future__ import annotations

from gecko_graph import GeckoContext
from gecko_graph.nodes.attempt import build_record
from gecko_graph.nodes.judge import judge
from gecko_graph.testing import drive
from tests import desk

SAID = [{"id": "a", "description": "the tray is there"}, {"id": "b", "description": "the user was told"}]
FILED = {"trays": {"letters": ["from mum"], "bills": ["invoice"]}, "runtime_state": {}}


CODES = {"the planner did not answer": "planner_failed", "the attempt broke": "broken", "max_steps": "max_steps"}


def code_of(message):
    return next((code for begin, code in CODES.items() if message.startswith(begin)), "answered")


def round_of(state):
    """The outer graph's state behind an attempt that has ended like this."""
    state["stop"] = {"code": code_of(state["stop_reason"]), "message": state["stop_reason"]}
    asked = state.pop("asked", {})
    return {
        "messages": state["conversation"],
        "task_state": state["before"],
        "items": state.pop("items", desk.CHECKLIST),
        "bookkeeping": {
            "ledger": {"turn": 1, "started_at": 1.0, "usage": {}, "asked": asked},
            "items_failure": state.pop("items_failure", ""),
            "attempts_to_judge": [build_record(state)],
            "offered_tools": None,
            "replayed": [],
            "lesson": None,
            "real": False,
        },
    }


def judged(state, *replies, **context):
    driven = drive(judge, round_of(state), replies, context=GeckoContext(**context))
    (attempt,) = driven.update["attempts"]
    return attempt["verdict"], driven


def said(*statuses, **more):
    items = [{"id": identifier, "status": status} for identifier, status in zip("ab", statuses, strict=False)]
    return {"items": items, **more}


def statuses(verdict):
    return [(item["status"], item["by"]) for item in verdict["items"]]
