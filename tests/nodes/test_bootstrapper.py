"""bootstrapper: makes the first state whole, asks only where a rule cannot tell, and opens the turn."""

from __future__ import annotations

import copy
import time
from functools import partial

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Overwrite

from gecko_graph import GeckoContext, GeckoError, Tool, Toolkit
from gecko_graph.contracts.contract import Contract
from gecko_graph.models.ask import Reply
from gecko_graph.nodes.bootstrapper import bootstrapper
from gecko_graph.testing import drive
from gecko_graph.tools.spec import ToolSpec

BARE = Toolkit([ToolSpec(name="look", description="Look at all trays.")])
CONTRACT = Contract.load(
    {"requires": [{"check": "state.trays", "error": "no"}], "returns": "{{ state.desk }}"}, where="t"
)
RULED = Toolkit([ToolSpec(name="look", contract=CONTRACT)])
FITTING = {"domain": {"trays": {"letters": []}, "desk": 1}, "runtime_state": {"user": "ann"}}
MADE = {"domain": {"trays": {"letters": []}}, "runtime_state": {"user": "ann"}}


def look() -> dict:
    """Look at all trays."""
    return {}


def count() -> int:
    """Count the letters."""
    return 0


def file_letter(tray: str) -> dict:
    """File the letter."""
    return {}


def boot(state, *replies, toolkit=BARE, roles=("bootstrapper",), **context):
    return drive(partial(bootstrapper, toolkit=toolkit), state, replies, context=GeckoContext(**context), roles=roles)


def test_it_opens_the_turn_and_clears_the_last_one_s(turn):
    update = boot(turn(task_state={"runtime_state": {}}, facts={"k": 1}, argument_verdicts=[1])).update
    kept = update["bookkeeping"].value
    assert kept["ledger"]["turn"] == 2
    assert abs(kept["ledger"]["started_at"] - time.time()) < 5
    assert (kept["ledger"]["usage"], kept["ledger"]["asked"]) == ({}, {})
    assert (kept["round"], kept["lesson"], kept["argument_verdicts"], kept["facts"]) == (-1, None, [], {"k": 1})
    assert isinstance(update["attempts"], Overwrite)
    assert update["attempts"].value == []
    first = turn(task_state={"runtime_state": {}})
    del first["bookkeeping"]
    assert boot(first).update["bookkeeping"].value["ledger"]["turn"] == 1


@pytest.mark.parametrize("given", [{}, {"checklist": None}])
def test_the_caller_s_checklist_is_the_turn_s_and_without_one_the_model_is_to_write_it(turn, given):
    stale = turn(task_state={"runtime_state": {}}, items=[{"id": "old", "description": "of the turn before"}])
    assert boot({**stale, **given}).update["items"] is None
    mine = boot({**stale, "checklist": ["it is filed"]}).update
    assert (mine["items"], mine["bookkeeping"].value["items_failure"]) == (
        [{"id": "item-1", "description": "it is filed"}],
        "",
    )
    none = boot({**stale, "checklist": []})
    assert none.update["items"] == [], "an empty one is the caller's word too"
    assert [each["type"] for each in none.events] == ["gecko.checklist"]


def test_no_state_is_made_up_by_the_model(turn):
    driven = boot(turn(task_state=None), MADE)
    assert driven.update["task_state"] == {"trays": {"letters": []}, "runtime_state": {"user": "ann"}}
    assert driven.asks[0].variables["state"] == ""
    assert driven.asks[0].variables["tools"] == "look: Look at all trays."


def test_a_given_state_gets_runtime_variables_and_nothing_else(turn):
    given = {"trays": {"bills": []}, "extra": 1}
    before = copy.deepcopy(given)
    messages = [HumanMessage("hello"), AIMessage("hi"), HumanMessage("file it")]
    driven = boot(turn(task_state=given, messages=messages), MADE)
    assert driven.update["task_state"] == {"trays": {"bills": []}, "extra": 1, "runtime_state": {"user": "ann"}}
    (ask,) = driven.asks
    assert (ask.variables["state"], ask.variables["task"]) == ('{"trays": {"bills": []}, "extra": 1}', "file it")
    assert ask.variables["conversation"] == "user: hello\nassistant: hi"
    assert (ask.where.turn, ask.where.attempt) == (1, 0)
    assert given == before


@pytest.mark.parametrize("given", [None, {}, {"trays": {}}])
def test_where_every_read_is_real_nothing_is_supposed_of_the_state(turn, given):
    real = Toolkit.from_tools([Tool(look, effect="read"), file_letter])
    update = boot(turn(task_state=given), toolkit=real, reads="real").update
    assert (update["task_state"], update["supposed"]) == (given or {}, [])
    assert update["bookkeeping"].value["real"]
    assert boot(turn(task_state=given), toolkit=real.open("look")).update["bookkeeping"].value["real"]
    partly = Toolkit.from_tools([Tool(look, effect="read"), Tool(count, effect="read"), file_letter]).open("look")
    assert not boot(turn(task_state=None), MADE, toolkit=partly).update["bookkeeping"].value["real"]


@pytest.mark.parametrize(
    ("toolkit", "state"),
    [(BARE, {"runtime_state": {}}), (RULED, {"trays": {}, "desk": 1}), (RULED, {"trays": {}, "desk": 1, "more": 2})],
)
def test_a_whole_state_costs_no_question(turn, toolkit, state):
    driven = boot(turn(task_state=state), toolkit=toolkit)
    assert driven.asks == []
    assert driven.update["task_state"] == state
    assert driven.update["task_state"] is not state, "what the caller holds is not what nodes hand around"


@pytest.mark.parametrize(
    ("toolkit", "state"), [(RULED, {"trays": {}}), (RULED, None), (BARE, {"trays": {}, "desk": 1})]
)
def test_a_state_of_which_no_rule_tells_is_asked_about(turn, toolkit, state):
    assert len(boot(turn(task_state=state), FITTING, toolkit=toolkit).asks) == 1


@pytest.mark.parametrize(
    "reply",
    [
        Reply(None, "the server is down"),
        {"domain": {}, "runtime_state": {"ratio": float("nan")}},
        {"domain": {}, "runtime_state": {"big": 2**70}},
    ],
)
def test_a_reply_of_no_use_adds_nothing(turn, reply):
    assert boot(turn(task_state={"trays": {}}), reply).update["task_state"] == {"trays": {}}


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"task_state": []}, "task_state: expected a JSON object .*, got list"),
        ({"task_state": "text"}, "task_state: expected a JSON object .*, got str"),
        ({"task_state": 0}, "task_state: expected a JSON object .*, got int"),
        ({"task_state": {"a": {1: 2}}}, r"task_state: /a"),
        ({"task_state": {"a": float("nan")}}, r"/a is NaN"),
        ({"messages": []}, "no task: pass"),
        ({"messages": [AIMessage("hi")]}, "no task: pass"),
        ({"messages": [HumanMessage("do it"), HumanMessage(" \n ")]}, "the task is empty"),
    ],
)
def test_a_user_s_mistake_says_what_to_do(turn, state, says):
    with pytest.raises(GeckoError, match=says):
        boot(turn(**state))


def test_no_part_of_the_prompt_is_unbounded(turn):
    toolkit = Toolkit([ToolSpec(name=f"tool_{n}", description="words " * 300) for n in range(200)])
    messages = [HumanMessage("x" * 50_000), AIMessage("y" * 50_000), HumanMessage("t" * 500_000)]
    state = turn(messages=messages, task_state={"files": {f"f{n}": "x" * 500 for n in range(2_000)}})
    (ask,) = boot(state, MADE, toolkit=toolkit, view_chars=4_000).asks
    assert {name: len(text) <= 4_000 for name, text in ask.variables.items()} == dict.fromkeys(ask.variables, True)
    assert all(f"tool_{n}" in ask.variables["tools"] for n in range(200))
