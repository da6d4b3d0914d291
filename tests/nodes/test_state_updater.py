"""state_updater: commits in the order of the calls, whole or not at all, and tells the planner what a tool would."""

from __future__ import annotations

from functools import partial

import pytest

from gecko_graph import GeckoContext, Toolkit
from gecko_graph.models.ask import Reply
from gecko_graph.testing import drive
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.values.notes import notes_of
from gecko_graph.values.patch import fold_patches
from gecko_graph.world.commit import state_updater
from gecko_graph.world.rung import NO_ANSWER
from tests.doubts import texts

TOOLS = [ToolSpec(name="look", effect="read"), ToolSpec(name="put", effect="write"), ToolSpec(name="maybe")]
ADD = [{"op": "add", "path": "/trays/letters/-", "value": "bill"}]


def update(state, *replies, invariants=(), roles=("state_updater",), **context):
    node = partial(state_updater, toolkit=Toolkit(TOOLS, invariants=invariants))
    return drive(node, state, replies, context=GeckoContext(**context), roles=roles)


def proposal(name="put", patch=None, *, identifier="1", status="ok", result="done", rung="model", args=None):
    outcome = {"status": status, "result": result, "patch": patch, "rung": rung, "simulated": True, "passed": []}
    return {"call": {"id": identifier, "name": name, "args": args or {}}, "outcome": outcome}


def test_a_change_is_committed_and_told(attempt):
    state = attempt(proposals=[proposal(patch=ADD, result={"papers": 2})])
    driven = update(state)
    assert driven.update["task_state"] == ADD
    assert driven.update["proposals"] == []
    (step,) = driven.update["steps"]
    assert step["outcome"]["patch"] == ADD
    (message,) = driven.update["trace"]
    assert (message.content, message.tool_call_id, message.status) == ('{"papers": 2}', "1", "success")
    assert driven.events == [{"v": 1, "type": "gecko.change", "attempt": 1, "call": step["call"], "patch": ADD}]


# the model's patch


@pytest.mark.parametrize("name", ["put", "maybe"])
def test_a_write_without_a_patch_is_asked_about(attempt, name):
    driven = update(attempt(proposals=[proposal(name)], asked={"state_updater": 3}), {"patch": ADD})
    assert driven.update["task_state"] == ADD
    assert driven.asks[0].where.question == 3
    assert driven.asks[0].variables["result"] == '"done"'


def test_a_patch_that_does_not_apply_is_repaired_once(attempt):
    bad = {"patch": [{"op": "remove", "path": "/none"}]}
    driven = update(attempt(proposals=[proposal()], asked={"state_updater": 3}), bad, {"patch": ADD})
    assert driven.update["task_state"] == ADD
    assert "/none" in driven.asks[1].variables["problems"]
    assert driven.asks[1].variables["problems"].startswith('[{"op": "remove", "path": "/none"}]\n'), "its own answer"
    assert [ask.where.question for ask in driven.asks] == [3, 4]


def test_what_is_wrong_with_a_model_s_patch_is_no_concern_of_the_planner(attempt):
    """It read "the model's change does not apply", of a model that it knows nothing of."""
    bad = {"patch": [{"op": "remove", "path": "/none"}]}
    again = update(attempt(proposals=[proposal()]), bad, bad)
    assert again.update["task_state"] == []
    assert "/none" in texts(again.update["steps"][0]["outcome"], "refused")[0]
    assert again.update["trace"][0].content == NO_ANSWER


def test_a_write_without_a_change_is_asked_about_once_then_an_error(attempt):
    empty = {"patch": []}
    state = attempt(proposals=[proposal()])
    assert update(state, empty, empty).update["steps"][0]["outcome"]["status"] == "error"
    told = update(state, empty, {**empty, "unchanged": True})
    assert told.update["steps"][0]["outcome"]["status"] == "ok"
    assert "changes the state" in told.asks[1].variables["problems"]
    assert update(attempt(proposals=[proposal("maybe")]), empty).update["steps"][0]["outcome"]["status"] == "ok"


def test_a_write_whose_change_nobody_can_say_is_an_error(attempt):
    driven = update(attempt(proposals=[proposal()]), Reply(None, "the server is down"))
    outcome = driven.update["steps"][0]["outcome"]
    assert (outcome["status"], outcome["patch"]) == ("error", [])
    assert "the server is down" in texts(outcome, "refused")[0]
    assert len(driven.asks) == 1, "there is nothing to repair"


# several calls of one message


def test_changes_of_one_message_are_committed_in_order_and_races_are_said(attempt):
    proposals = [proposal(patch=ADD, identifier="a"), proposal(patch=ADD, identifier="b")]
    driven = update(attempt(proposals=proposals), parallel_calls="snapshot")
    assert fold_patches(attempt()["task_state"], [driven.update["task_state"]])["trays"]["letters"] == [
        "from mum",
        "bill",
        "bill",
    ]
    assert not notes_of(driven.update["steps"][0]["outcome"], "race")
    assert texts(driven.update["steps"][1]["outcome"], "race") == ["put (a) at /trays/letters/-"]
    assert [texts(event, "race") for event in driven.events] == [[], ["put (a) at /trays/letters/-"]]


# bounds


@pytest.mark.parametrize("result", ["x" * 500_000, {"rows": [{"id": n, "text": "y" * 90} for n in range(5_000)]}])
def test_the_planner_sees_a_bounded_result_and_the_step_keeps_it_whole(attempt, result):
    driven = update(attempt(proposals=[proposal("look", patch=[], result=result)]))
    assert len(driven.update["trace"][0].content) <= GeckoContext().view_chars
    assert driven.update["steps"][0]["outcome"]["result"] == result


def test_of_a_long_result_the_planner_sees_what_the_task_speaks_of(attempt):
    rows = [{"id": number, "text": "y" * 90} for number in range(5_000)]
    rows[3_210]["text"] = "the invoice of March"
    (message,) = update(attempt(proposals=[proposal("look", patch=[], result={"rows": rows})])).update["trace"]
    assert "the invoice of March" in message.content
    assert "… items " in message.content
