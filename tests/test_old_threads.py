"""Threads that version 447afe0 left in a SQLite file, finished or in the middle of a turn: they go on, or say why."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from gecko_graph import GeckoError
from tests import desk

OLD = Path(__file__).parent / "fixtures" / "threads_447afe0.sqlite.gz"

SECOND = [{"call": "put", "args": {"tray": "bills", "paper": "receipt"}}, {"say": "Added."}]
CHECK = [{"id": "r", "description": "the receipt too", "check": "state.trays.bills == ['invoice', 'receipt']"}]


@pytest.fixture
def old(tmp_path):
    """The desk's graph over the old threads."""
    (tmp_path / "old.sqlite").write_bytes(gzip.decompress(OLD.read_bytes()))
    with SqliteSaver.from_conn_string(str(tmp_path / "old.sqlite")) as saver:
        turns = [{"planner": [desk.WRONG, desk.RIGHT]}, {"planner": [SECOND]}]
        yield desk.gecko(turns=turns, checkpointer=saver)


def thread(name):
    return {"configurable": {"thread_id": name}}


def test_a_finished_thread_has_its_next_turn(old):
    run = old.invoke({"messages": [("user", "and the receipt")], "checklist": CHECK}, thread("finished"))
    assert run["rehearsal"]["verdict"]["word"] == "accepted"
    assert run["task_state"]["trays"]["bills"] == ["invoice", "receipt"]


@pytest.mark.parametrize(
    "name", ["before start_round", "before attempt", "in the attempt", "before the judge", "before decide"]
)
def test_a_thread_that_stopped_in_a_turn_goes_on(old, name):
    run = old.invoke(None, thread(name))
    assert [attempt["verdict"]["word"] for attempt in run["rehearsal"]["attempts"]] == ["failed", "accepted"]
    assert run["task_state"]["trays"]["bills"] == ["invoice"]


def test_a_thread_that_stopped_before_its_turn_opened_is_refused_and_can_begin_anew(old):
    with pytest.raises(GeckoError, match="start the turn again"):
        old.invoke(None, thread("before checklist"))
    assert old.invoke(desk.inputs(), thread("before checklist"))["rehearsal"]["attempts"]
