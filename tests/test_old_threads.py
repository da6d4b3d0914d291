"""What version 447afe0 left behind is still good: threads go on or say why, scenario, knobs and records load.

The threads lie in a SQLite file: finished, stopped in the middle of a turn, embedded, with two attempts at once.
"""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph

from gecko_graph import GeckoContext, GeckoError, RehearsalState, Scenario, format_run
from gecko_graph.scenario.play import run_scenario
from tests import desk

FIXTURES = Path(__file__).parent / "fixtures"
OLD = FIXTURES / "threads_447afe0.sqlite.gz"

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


def test_two_attempts_at_once_go_on(old):
    gecko = desk.gecko(desk.WRONG, desk.RIGHT, checkpointer=old.checkpointer)
    run = gecko.invoke(None, thread("two at once"), context=GeckoContext(parallel_attempts=2))
    assert [attempt["verdict"]["word"] for attempt in run["rehearsal"]["attempts"]] == ["failed", "accepted"]


class Parent(RehearsalState):
    checklist: list


@pytest.mark.parametrize("name", ["embedded", "embedded done"])
def test_an_embedded_rehearsal_goes_on(old, name):
    builder = StateGraph(Parent)
    saver, old.checkpointer = old.checkpointer, None
    builder.add_node("rehearse", old)
    builder.add_edge(START, "rehearse")
    parent = builder.compile(checkpointer=saver)
    if name == "embedded":
        run = parent.invoke(None, thread(name))
    else:
        run = parent.invoke({"messages": [("user", "and the receipt")], "checklist": CHECK}, thread(name))
    assert run["rehearsal"]["verdict"]["word"] == "accepted"


def test_knobs_load_under_their_old_names():
    given = json.loads((FIXTURES / "context_447afe0.json").read_text())
    knobs = GeckoContext(**given).model_dump(mode="json")
    assert knobs["parallel_calls"] == given.pop("calls")
    newer = {"parallel_calls", "unclear", "reads", "gate", "selection", "max_tools", "top_k"}
    assert {name: value for name, value in knobs.items() if name not in newer} == given
    defaults = GeckoContext().model_dump(mode="json")
    assert all(knobs[name] == defaults[name] for name in newer - {"parallel_calls"})


def test_a_scenario_has_the_same_end(tmp_path):
    shutil.copy(FIXTURES / "scenario_447afe0.yaml", tmp_path / "meet-dana.yaml")
    shutil.copy(FIXTURES.parents[1] / "examples" / "calendar" / "calendar.openapi.yaml", tmp_path)
    record = json.loads((FIXTURES / "rehearsal_447afe0.json").read_text())
    (run,) = run_scenario(Scenario.load(tmp_path / "meet-dana.yaml"))
    for key in ("word", "score"):
        assert run["rehearsal"]["verdict"][key] == record["verdict"][key]
    assert run["rehearsal"]["plan"] == record["plan"]
    assert run["rehearsal"]["answer"] == record["answer"]


def test_an_old_record_is_shown():
    shown = format_run(json.loads((FIXTURES / "rehearsal_447afe0.json").read_text()))
    assert "needs the user, 1 of 2" in str(shown)
    assert "Dana Okafor" in shown._repr_html_()
