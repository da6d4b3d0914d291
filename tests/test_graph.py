"""GATS as a user runs it: rounds, identical starts, turns, budgets, mistakes (paper, section 4 and algorithm 1)."""

from __future__ import annotations

import ast
import copy
import inspect
import time

import pytest

from gecko_graph import GeckoContext, GeckoError, Models, Tool, Toolkit, create_gecko
from gecko_graph import context as context_module
from gecko_graph.graph import compose
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.toolgate import graph as toolgate
from gecko_graph.values.notes import notes_of
from tests import desk
from tests.desk import words


def test_a_failed_attempt_is_retried_from_the_identical_state_and_only_the_accepted_one_is_written_back():
    given = desk.inputs()
    before = copy.deepcopy(given)
    run = desk.gecko(desk.WRONG, desk.RIGHT).invoke(given)
    rehearsal = run["rehearsal"]
    assert words(run) == ["failed", "accepted"]
    assert len({attempt["start_digest"] for attempt in rehearsal["attempts"]}) == 1
    assert rehearsal["chosen"] == 2
    assert [call["name"] for call in rehearsal["plan"]] == ["add_tray", "put"]
    assert run["task_state"]["trays"] == {"letters": ["from mum"], "bills": ["invoice"]}
    assert run["messages"][-1].text == rehearsal["answer"] == "The invoice is in bills."
    assert given == before


def test_an_unaccepted_run_leaves_the_state_alone_and_returns_the_best_attempt():
    half = [desk.RIGHT[0], {"say": "Tray made."}]
    run = desk.gecko(desk.WRONG, half, desk.WRONG, context=GeckoContext(max_retries=2)).invoke(desk.inputs())
    assert words(run) == ["failed"] * 3
    assert run["rehearsal"]["chosen"] == 2
    assert run["rehearsal"]["verdict"]["score"] == 0.5
    assert run["task_state"] == desk.start()


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("width", [1, 3])
async def test_the_judge_comes_once_a_round_after_the_attempts_and_the_checklist(width, given):
    items = [{"id": "item-1", "status": "failed", "reason": "no"}]
    roles = {"checklist": [{"items": [{"description": "filed"}]}], "judge": [{"items": items}] * 6}
    gecko = desk.gecko(
        turns=[turn([desk.WRONG] * 6, **roles)], context=GeckoContext(parallel_attempts=width, max_retries=1)
    )
    inputs = desk.inputs() if given else desk.inputs(checklist=None)
    updates = [name async for part in gecko.astream(inputs, stream_mode="updates") for name in part]
    beside = [] if given else ["checklist"]
    first = updates[2 : 2 + width + len(beside)]
    assert sorted(first) == ["attempt"] * width + beside
    rest = ["judge", "decide", "start_round", *["attempt"] * width, "judge", "decide", "finish"]
    assert updates == ["bootstrapper", "start_round", *first, *rest]


def turn(planner, **roles):
    return {"planner": planner, **roles}


def test_a_token_budget_ends_the_run_with_the_best_so_far():
    run = desk.gecko(*[desk.WRONG] * 9, context=GeckoContext(token_budget=30)).invoke(desk.inputs())
    (attempt,) = run["rehearsal"]["attempts"]
    assert attempt["stop_reason"].startswith("token_budget")
    assert run["rehearsal"]["plan"] == [step["call"] for step in attempt["steps"]]


def test_a_time_budget_ends_the_run():
    def slow(state, tray, paper):
        time.sleep(0.05)
        return desk.put(state, tray, paper)

    context = GeckoContext(time_budget_s=0.04)
    run = desk.gecko(*[desk.WRONG] * 9, tools=desk.toolkit(put=slow), context=context).invoke(desk.inputs())
    assert run["rehearsal"]["attempts"][-1]["stop_reason"].startswith("time_budget_s")
    assert len(run["rehearsal"]["attempts"]) == 1


def test_an_attempt_that_breaks_is_data(monkeypatch):
    import gecko_graph.world.ladder as module

    def bug(*args, **kwargs):
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr(module, "climb", bug)
    run = desk.gecko(desk.RIGHT, context=GeckoContext(max_retries=0)).invoke(desk.inputs())
    assert "ZeroDivisionError: a bug of ours" in run["rehearsal"]["attempts"][0]["stop_reason"]


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"messages": []}, "no task: pass"),
        ({"messages": [("user", "  ")]}, "the task is empty"),
        ({"messages": [("user", "x")], "task_state": {"when": object}}, r"task_state.*when"),
        ({"messages": [("user", "x")], "checklist": [{"id": "a"}]}, "give it a description"),
        ({"messages": [("user", "x")], "checklist": [{"description": "d", "check": "1 +"}]}, "item-1"),
    ],
)
def test_a_user_s_mistake_raises_and_says_what_to_do(inputs, says):
    with pytest.raises(GeckoError, match=says):
        desk.gecko(desk.RIGHT).invoke(inputs)


@pytest.mark.parametrize("context", [{"max_retries": 1}, GeckoContext, 3])
def test_a_bound_context_that_is_none_is_a_mistake(context):
    with pytest.raises(GeckoError, match="context: expected a GeckoContext"):
        desk.gecko(desk.RIGHT, context=context)


def test_knobs_are_optional_for_type_checkers_without_a_plugin():
    # PEP 681: only `default=` by name makes a field optional, whatever Pydantic makes of a bare one at run time
    source = ast.parse(inspect.getsource(context_module))
    (knobs,) = (each for each in source.body if isinstance(each, ast.ClassDef))
    fields = {each.target.id: each.value for each in knobs.body if isinstance(each, ast.AnnAssign)}
    assert fields.keys() == GeckoContext.model_fields.keys()
    assert [name for name, field in fields.items() if "default" not in {key.arg for key in field.keywords}] == []


@pytest.mark.parametrize("model", [None, Models(judge=RecordedModel())])
def test_a_graph_in_which_nobody_plans_is_a_mistake(model):
    with pytest.raises(GeckoError, match=r"no model configured for role 'planner': .*Models\(planner="):
        create_gecko(desk.toolkit(), model=model)


def test_no_tools_and_no_toolkit_are_mistakes():
    with pytest.raises(GeckoError, match="no tools"):
        create_gecko(Toolkit([]))
    with pytest.raises(GeckoError, match=r"Toolkit\.from_tools"):
        create_gecko([desk.look])  # type: ignore[arg-type]
    with pytest.raises(GeckoError, match="role"):
        create_gecko(desk.toolkit(), model=Models(plannner="openai:x"))


@pytest.mark.parametrize("compose", [compose, toolgate.compose])
@pytest.mark.parametrize("name", ["validater", "attempt", "__start__"])
def test_only_nodes_that_are_there_are_replaced(name, compose):
    with pytest.raises(GeckoError, match=f"unknown node '{name}'"):
        compose(desk.toolkit(), models=Models(), default=GeckoContext(), replace={name: lambda state, scope: {}})


@pytest.mark.parametrize("simulation", ["fused", "separate"])
def test_a_write_whose_simulator_gives_no_answer_is_named_though_all_checks_hold(simulation):
    """The planner tells it as done all the same; a later try that is answered takes the mark away."""
    say = {"say": "A pen was sold, and I noted it."}
    sold = {"id": "sold", "description": "the till has come to hold 2", "check": "state.till == before.till + 2"}
    note = {"call": "note", "args": {"text": "ink is low"}}
    sell = {"returns": "ok", "effects": [{"op": "replace", "path": ["till"], "value": "{{ state.till + 2 }}"}]}
    text = {"type": "object", "properties": {"text": {"type": "string"}}}
    tools = Toolkit.from_tools(
        [
            Tool({"name": "sell", "description": "Sell.", "parameters": {"type": "object"}}, contract=sell),
            Tool({"name": "note", "description": "Note.", "parameters": text}, effect="write"),
        ]
    )
    answered = [{"status": "ok", "result": "noted", "patch": [], "unchanged": True}, {"patch": [], "unchanged": True}]
    for replies, named in ((["cut off {"], ["note"]), (["cut off {", answered[0]], [])):
        calls = [{"call": "sell"}, *[note] * len(replies), say]
        roles = {"simulator": [*replies], "state_updater": [answered[1]]}
        model = RecordedModel(turns=[{"planner": [calls], **roles}])
        gecko = create_gecko(tools, model=model, context=GeckoContext(simulation=simulation, max_retries=0))
        given = {"messages": [("user", "Sell a pen, and note it.")], "task_state": {"till": 0}, "checklist": [sold]}
        found = gecko.invoke(given)["rehearsal"]["verdict"]
        assert [each["data"]["tool"] for each in notes_of(found, "unsimulated")] == named
