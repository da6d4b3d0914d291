"""Scenarios that run: turns, events, models in place of replies, runs that stopped; and what comes with the package."""

from __future__ import annotations

import json

import pytest
import yaml
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from gecko_graph import GeckoError, Models, Scenario
from gecko_graph.errors import ScenarioError
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.scenario import play, read_toolkit, run_scenario
from tests.pen_case import CHECK, FUNCTIONS, OPENAPI, PUT, SAY, case, turn, words_of

TURNS = [
    {"user": "Put the pen away.", "checklist": [CHECK], "replies": {"planner": [[PUT, SAY]]}},
    {
        "user": "And the ink.",
        "checklist": [{"id": "both", "description": "pen and ink", "check": "state.box == ['pen', 'ink']"}],
        "replies": {"planner": [[SAY], [{"call": "put", "args": {"item": "ink"}}, SAY]]},
    },
]


def test_turns_share_a_thread():
    one, two = run_scenario(Scenario.from_dict(case(turns=TURNS)))
    assert words_of(one) == words_of(two) == "accepted"
    assert two["task_state"] == {"box": ["pen", "ink"]}
    assert [message.type for message in two["messages"]] == ["human", "ai", "human", "ai"]
    assert [len(each["rehearsal"]["attempts"]) for each in (one, two)] == [1, 2]


def test_a_model_of_one_role_leaves_the_others_recorded():
    judge = RecordedModel(turns=[{"judge": [{"items": [{"id": "item-1", "status": "success"}]}]}])
    read = Scenario.from_dict(case(turns=turn(checklist=["the pen is put away"])))
    (output,) = run_scenario(read, model=Models(judge=judge))
    assert words_of(output) == "accepted"
    assert output["rehearsal"]["verdict"]["items"][0]["by"] == "model"


def test_replies_may_be_written_for_each_of_the_attempts_at_once():
    by_attempt = {"1": {"problems": [{"argument": "/item", "problem": "is none"}]}, "2": {"problems": []}}
    put, checklist = {"call": "put", "args": {"item": "cap"}}, [{"check": "'cap' in state.box"}]
    replies = {"planner": [[put, SAY]] * 2, "validator": [{"by_attempt": by_attempt}]}
    limits = {"parallel_attempts": 2, "max_retries": 0}
    (output,) = run_scenario(Scenario.from_dict(case(turns=turn(replies=replies, checklist=checklist), limits=limits)))
    assert [each["verdict"]["status"] for each in output["rehearsal"]["attempts"]] == ["failed", "accepted"]


@pytest.mark.parametrize(("role", "changes"), [("planner", {"replies": {}}), ("checklist", {"checklist": []})])
def test_a_role_that_nobody_answers_for(role, changes):
    with pytest.raises(ScenarioError, match=rf"turns\[0\].replies: .*'{role}'.*--model"):
        run_scenario(Scenario.from_dict(case(turns=turn(**changes))))


def test_a_thread_is_used_once(tmp_path):
    read, saver = Scenario.from_dict(case()), InMemorySaver()
    run_scenario(read, checkpointer=saver, thread_id="t")
    with pytest.raises(ScenarioError, match="thread 't' already contains a run"):
        run_scenario(read, checkpointer=saver, thread_id="t")
    assert len(run_scenario(read, checkpointer=saver, thread_id="u")) == 1
    with pytest.raises(ScenarioError, match="no thread 'x' to resume"):
        list(play(read, read.gecko(checkpointer=saver), thread_id="x", resume=True))


class Stop(Exception):
    """Ends a run at an event, as a crash would."""


@pytest.mark.parametrize("stop", [1, 5, 10])
def test_a_run_that_stopped_at_any_event_is_resumed(tmp_path, stop):
    read = Scenario.from_dict(case(turns=TURNS))
    whole = run_scenario(read)[-1]
    seen = []

    def watch(event):
        seen.append(event)
        if len(seen) == stop:
            raise Stop

    with SqliteSaver.from_conn_string(str(tmp_path / "runs.sqlite")) as saver:
        gecko = read.gecko(checkpointer=saver)
        with pytest.raises(Stop):
            list(play(read, gecko, thread_id="t", on_event=watch, durability="sync"))
    turns = []
    with SqliteSaver.from_conn_string(str(tmp_path / "runs.sqlite")) as saver:
        gecko = read.gecko(checkpointer=saver)
        *_, last = play(read, gecko, thread_id="t", on_turn=turns.append, resume=True, durability="sync")
        assert list(play(read, gecko, thread_id="t", resume=True)) == []
    assert last["rehearsal"] == whole["rehearsal"]
    assert last["task_state"] == whole["task_state"]
    assert turns == ["Put the pen away.", "And the ink."][2 - len(turns) :]


# files of tools, shipped examples --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("api.yaml", yaml.safe_dump(OPENAPI)),
        ("api.json", json.dumps(OPENAPI)),
        ("tools.json", json.dumps(FUNCTIONS)),
        ("tools.yaml", yaml.safe_dump(FUNCTIONS)),
        ("one.json", json.dumps({"type": "function", "function": FUNCTIONS[0]})),
        ("tools.jsonl", json.dumps(FUNCTIONS[0]) + "\n\n"),
    ],
)
def test_tools_are_read_from_files_of_many_kinds(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert read_toolkit(tmp_path / name).names == ("put",)


@pytest.mark.parametrize(
    ("name", "content"),
    [("none.yaml", None), ("empty.json", "[]"), ("broken.jsonl", '{"name": "a"}\n{'), ("old.yaml", "swagger: '1.2'")],
)
def test_files_that_hold_no_tools(tmp_path, name, content):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(GeckoError, match=name.partition(".")[0] if name != "broken.jsonl" else "line 2"):
        read_toolkit(tmp_path / name)
