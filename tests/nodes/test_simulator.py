"""simulator: answers the calls in their order, or all from one state, and says which rung it was."""

from __future__ import annotations

from functools import partial

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.tool import tool_call

from gecko_graph import GeckoContext, Toolkit
from gecko_graph.contracts.contract import Contract
from gecko_graph.errors import ToolkitError
from gecko_graph.testing import drive
from gecko_graph.tools.lessons import Lessons
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.world.ladder import count_reads, simulator

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TOOLKIT = Toolkit(
    [
        ToolSpec(name="known", effect="read", parameters=NUMBER, examples=()),
        ToolSpec(name="rate", effect="read", result=NUMBER),
        ToolSpec(name="send", effect="write"),
    ]
)


def call(name, identifier="1", **args):
    return {"id": identifier, "name": name, "args": args}


def simulate(state, *replies, toolkit=TOOLKIT, roles=("simulator",), **context):
    return drive(partial(simulator, toolkit=toolkit), state, replies, context=GeckoContext(**context), roles=roles)


def test_serial_answers_the_next_call_and_leaves_the_others(attempt):
    pending = [call("rate", "a"), call("send", "b")]
    driven = simulate(attempt(pending=pending), {"status": "ok", "result": {"n": 1}})
    assert driven.update["pending"] == pending[1:]
    (proposal,) = driven.update["proposals"]
    assert proposal["call"] == pending[0]
    assert proposal["outcome"]["result"] == {"n": 1}
    assert "facts" not in driven.update, "nothing is supposed before it is committed"


def test_reads_before_the_first_write_are_asked_at_once_and_what_is_a_users_is_not(attempt):
    pending = [call("rate", "a", n=1), call("rate", "b", n=2), call("send", "c"), call("rate", "d", n=3)]
    driven = simulate(attempt(pending=pending), *({"status": "ok", "result": {"n": n}} for n in (1, 2)))
    assert driven.update["pending"] == pending[2:]
    assert [each["outcome"]["result"] for each in driven.update["proposals"]] == [{"n": 1}, {"n": 2}]
    assert [ask.where.question for ask in driven.asks] == [0, 1]
    own = ToolSpec(name="own", effect="read", simulate=lambda state: 1)
    real = ToolSpec(name="real", effect="read", real=print, opened=True)
    counted = [count_reads([one, own], GeckoContext()) for one in (TOOLKIT["rate"], own, real, TOOLKIT["send"])]
    assert counted == [1, 0, 0, 0], "a user's functions run one after another"


PROPOSED = {"check": "True", "error": "no", "evidence": {"status": "proposed", "for": 0, "against": []}}


@pytest.mark.parametrize("rules", [None, PROPOSED], ids=["no contract", "learned rules, which tell no answer"])
def test_only_tools_that_are_known_to_write_are_named_as_such(attempt, rules):
    named = [ToolSpec(name="send", effect="write"), ToolSpec(name="look"), ToolSpec(name="move"), TOOLKIT["rate"]]
    contract = rules and Contract.load({"requires": [rules]}, where="pay")
    lessons = Lessons("pay", is_learned=rules is not None)
    toolkit = Toolkit([*named, ToolSpec(name="pay", effect="write", contract=contract, lessons=lessons)])
    moved = {"status": "ok", "result": 1, "patch": [{"op": "add", "path": "/a", "value": 1}], "simulated": True}
    looked = {**moved, "patch": []}
    steps = [{"v": 1, "call": call(name), "outcome": each} for name, each in (("move", moved), ("look", looked))]
    sent = {"status": "ok", "result": None, "patch": [{"op": "add", "path": "/sent", "value": 1}]}
    driven = simulate(attempt(pending=[call("pay")], steps=steps), sent, toolkit=toolkit)
    assert '"other writes": "send, move"' in driven.asks[0].variables["tool"]


def test_a_run_that_goes_on_without_a_tool_it_has_called_is_the_users_mistake(attempt):
    with pytest.raises(ToolkitError, match=r"unknown tool 'gone'.*pass the toolkit"):
        simulate(attempt(pending=[call("rate"), call("gone", "b")]))


@pytest.mark.parametrize("calls", ["snapshot", "strict"])
def test_all_calls_of_a_message_are_asked_at_once_with_numbers_of_their_own(attempt, calls):
    pending = [call("rate", "a", n=1), call("send", "b"), call("rate", "c", n=2)]
    wrong = {"status": "ok", "result": {"n": "one"}}
    right = {"status": "ok", "result": {"n": 1}}
    sent = {"status": "ok", "result": None, "patch": [{"op": "add", "path": "/sent", "value": 1}]}
    driven = simulate(attempt(pending=pending, asked={"simulator": 4}), wrong, sent, right, right, parallel_calls=calls)
    assert driven.update["pending"] == []
    assert [each["call"]["id"] for each in driven.update["proposals"]] == ["a", "b", "c"]
    assert [each["outcome"]["status"] for each in driven.update["proposals"]] == ["ok"] * 3
    assert [ask.where.question for ask in driven.asks] == [4, 5, 6, 7]


def test_equal_reads_of_one_message_are_one_question_and_agree(attempt):
    pending = [call("rate", "a", n=1), call("rate", "b", n=1), call("rate", "c", n=1.0)]
    pending += [call("send", "d"), call("send", "e")]
    rates = [{"status": "ok", "result": {"n": number}} for number in (1, 2)]
    sent = [{"status": "ok", "result": number, "patch": [], "unchanged": True} for number in (3, 4)]
    driven = simulate(attempt(pending=pending), *rates, *sent, parallel_calls="snapshot")
    assert [each["call"]["id"] for each in driven.update["proposals"]] == ["a", "b", "c", "d", "e"]
    results = [each["outcome"]["result"] for each in driven.update["proposals"]]
    assert results == [{"n": 1}, {"n": 1}, {"n": 2}, 3, 4]
    assert len(driven.events) == 5


def test_a_budget_spent_by_the_calls_before_leaves_the_others_of_the_message(attempt):
    asked = AIMessage("", tool_calls=[tool_call(name="rate", args={}, id="a")])
    spent = {"spent_tokens": 50, "pending": [call("rate", "b")]}
    first = simulate(attempt(**spent, trace=[asked]), {"status": "ok", "result": {"n": 1}}, token_budget=50)
    assert len(first.update["proposals"]) == 1, "what the planner has paid for is tried"
    later = simulate(attempt(**spent, trace=[asked, ToolMessage("x", tool_call_id="a")]), token_budget=50)
    assert later.update == {"pending": [], "proposals": []}
