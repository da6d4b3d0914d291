"""How nodes are tested: the state of an attempt at the desk, easy to vary, and helpers to read what came back."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage

from gecko_graph.values.digest import digest
from gecko_graph.world.channels import Bookkeeping
from tests import desk

TASK = "File the invoice in a new tray called bills"


@pytest.fixture
def attempt():
    """`attempt(steps=[...])`: the state of an attempt that has just begun, with these keys instead."""

    def make(**more):
        before = more.pop("before", desk.start())
        return {
            "number": 1,
            "turn": 0,
            "task": TASK,
            "start_digest": digest(before),
            "before": before,
            "conversation": [HumanMessage(TASK)],
            "lesson": None,
            "ledger_turn": 1,
            "spent_tokens": 0,
            "attempts_at_once": 1,
            "deadline": None,
            "task_state": before,
            "trace": [],
            "steps": [],
            "pending": [],
            "facts": {},
            "argument_verdicts": [],
            "asked": {},
            "usage": {},
        } | more

    return make


@pytest.fixture
def turn():
    """`turn(attempts=[...])`: the state of the outer graph in its first turn, with these keys instead.

    Keys of the bookkeeping are given beside the others.
    """

    def make(**more):
        kept = {
            "ledger": {"turn": 1, "started_at": 1_000.0, "usage": {}, "asked": {}},
            "supposed_state": None,
            "replayed": [],
            "numbered_from": 0,
            "real": False,
            "items_failure": "",
            "checklist_digest": "",
            "offered_tools": None,
            "round": 0,
            "lesson": None,
            "attempts_at_once": 1,
            "attempts_to_judge": [],
            "facts": {},
            "argument_verdicts": [],
        }
        kept |= {key: more.pop(key) for key in [*more] if key in Bookkeeping.__annotations__}
        state = {"messages": [HumanMessage(TASK)], "task_state": desk.start(), "items": desk.CHECKLIST, "attempts": []}
        return {**state, **more, "bookkeeping": kept}

    return make


@pytest.fixture
def step():
    """`step("put", {...}, result)`: a call that was answered."""

    def make(name="look", args=None, result=None, *, status="ok", patch=None, **more):
        outcome = {"status": status, "result": result, "patch": patch or [], "rung": "python", "simulated": True}
        return {
            "v": 1,
            "call": {"id": f"id-{name}", "name": name, "args": args or {}},
            "outcome": {**outcome, "passed": []} | more,
        }

    return make
