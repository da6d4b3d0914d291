"""Each rung by itself: what it answers, when it passes, and that it never touches the state it was shown."""

from __future__ import annotations

import copy
import datetime
import decimal
import math
import time

import pytest
from langchain_core.messages import ToolMessage
from pydantic import BaseModel

from gecko_graph.tools.spec import ToolExample
from gecko_graph.world.contract import contract_rung, gate
from gecko_graph.world.example import example_rung
from gecko_graph.world.ladder import climb
from gecko_graph.world.python import python_rung
from gecko_graph.world.real import real_rung
from gecko_graph.world.rung import Answer, Pass, clock

ADD = [{"op": "add", "path": "/trays/letters/-", "value": "bill"}]


class Receipt(BaseModel):
    at: datetime.date
    total: decimal.Decimal


# python


def put(state, tray, paper):
    state["trays"][tray].append(paper)
    return {"papers": state["trays"][tray]}


def test_python_answers_with_the_change_it_made_on_a_copy(question, told, state):
    asked = question(simulate=put, args={"tray": "letters", "paper": "bill"})
    before = copy.deepcopy(state)
    answer = told(python_rung(asked)).value
    assert answer == Answer(
        "ok", {"papers": ["from mum", "bill"]}, [{"op": "add", "path": "/trays/letters/1", "value": "bill"}]
    )
    assert state == before


def test_a_python_tool_that_raises_changes_nothing(question, told):
    def put(state):
        state["trays"].clear()
        raise ValueError("the desk is locked")

    assert told(python_rung(question(simulate=put))).value == Answer("error", "ValueError: the desk is locked", [])


def test_a_python_tool_gives_its_own_error_as_a_tool_message(question, told):
    def put(state):
        state["tries"] = 1
        content = [{"type": "text", "text": '{"error": "the desk is locked"}'}]
        return ToolMessage(content, tool_call_id="", status="error")

    answer = told(python_rung(question(simulate=put))).value
    assert answer == Answer("error", {"error": "the desk is locked"}, [{"op": "add", "path": "/tries", "value": 1}])


def test_arguments_are_a_copy_too(question, told):
    asked = question(simulate=lambda state, papers: papers.append("x"), args={"papers": ["a"]})
    told(python_rung(asked))
    assert asked.call["args"] == {"papers": ["a"]}


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (None, None),
        (Receipt(at=datetime.date(2026, 3, 1), total=decimal.Decimal("1.50")), {"at": "2026-03-01", "total": "1.50"}),
        (datetime.datetime(2026, 3, 1, 8, tzinfo=datetime.UTC), "2026-03-01T08:00:00Z"),
        ((1, {2}, frozenset()), [1, [2], []]),
        ({datetime.date(2026, 3, 1): b"text"}, {"2026-03-01": "text"}),
        ((n for n in range(3)), [0, 1, 2]),
    ],
)
def test_what_python_returns_becomes_json(question, told, value, result):
    assert told(python_rung(question(simulate=lambda state: value))).value == Answer("ok", result, [])


def looped():
    loop = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize("value", [object(), {"f": len}, b"\xff\xfe", looped()])
def test_what_is_no_json_passes_with_the_reason(question, told, value):
    said = told(python_rung(question(simulate=lambda state: value))).value
    assert isinstance(said, Pass)
    assert "not JSON" in said.reason


@pytest.mark.parametrize("left", [math.nan, {1, 2}, (1,), datetime.date(2026, 3, 1), 2**70, {1: 2}])
def test_a_state_that_is_no_json_passes_with_the_place(question, told, left):
    def put(state):
        state["trays"]["letters"] = left

    said = told(python_rung(question(simulate=put))).value
    assert isinstance(said, Pass)
    assert "$.trays.letters" in said.reason


def test_a_tool_that_hangs_or_returns_what_takes_too_long_passes(question, told):
    def slowly(state):
        return (time.sleep(0.01) for _ in range(100))

    for function in (slowly, lambda state: time.sleep(1)):
        said = told(python_rung(question(simulate=function, tool_timeout_s=0.05))).value
        assert said == Pass("the simulate function did not answer within 0.05 s")


def test_a_coroutine_function_simulates_too(question, told):
    async def put(state):
        state["count"] += 1
        return "done"

    expected = Answer("ok", "done", [{"op": "replace", "path": "/count", "value": 1}])
    assert told(python_rung(question(simulate=put))).value == expected


def test_without_a_simulate_function_python_passes(question, told):
    assert told(python_rung(question(real=put))).value == Pass("the tool has no simulate function")


# real


def test_real_runs_opened_reads_only(question, told):
    ran = []
    real = {"real": lambda **args: ran.append(args) or {"rate": 1.25}, "args": {"currency": "EUR"}}
    assert isinstance(told(real_rung(question(effect="read", **real))).value, Pass)
    assert isinstance(told(real_rung(question(effect="write", opened=True, **real))).value, Pass)
    assert isinstance(told(real_rung(question(effect=None, opened=True, **real))).value, Pass)
    assert isinstance(told(real_rung(question(effect="read", opened=True, simulate=put))).value, Pass)
    assert ran == []
    assert told(real_rung(question(effect="read", opened=True, **real))).value == Answer("ok", {"rate": 1.25}, [])
    assert ran == [{"currency": "EUR"}]


def test_real_errors_and_odd_values(question, told):
    def fails():
        raise LookupError("no such currency")

    def asked(function):
        return question(effect="read", opened=True, real=function, tool_timeout_s=0.05)

    assert told(real_rung(asked(fails))).value == Answer("error", "LookupError: no such currency", [])
    late = Answer("error", "the real function did not answer within 0.05 s", [])
    assert told(real_rung(asked(lambda: time.sleep(1)))).value == late
    assert told(real_rung(asked(object))).value.status == "error"
    assert told(real_rung(asked(lambda: datetime.date(2026, 3, 1)))).value == Answer("ok", "2026-03-01", [])


# example


def test_examples_answer_reads_with_exactly_these_arguments(question):
    examples = (ToolExample({"n": 1}, {"x": [1]}), ToolExample({"n": 2}, "two"))
    assert example_rung(question(effect="read", examples=examples, args={"n": 2})) == Answer("ok", "two", [])
    for args in ({"n": 1.0}, {"n": True}, {}, {"n": 1, "m": 2}):
        assert example_rung(question(effect="read", examples=examples, args=args)) == Pass(
            "no example has these arguments"
        )
    assert isinstance(example_rung(question(effect="write", examples=examples, args={"n": 2})), Pass)
    assert isinstance(example_rung(question(effect="read", args={"n": 2})), Pass)


# contract

GUARDED = {
    "requires": [
        {
            "check": "args.tray in state.trays",
            "error": "no tray {{ args.tray }}",
            "effects": [{"op": "replace", "path": ["count"], "value": "{{ state.count + 1 }}"}],
        }
    ],
    "effects": [{"op": "add", "path": ["trays", "{{ args.tray }}", "-"], "value": "{{ args.paper }}"}],
    "returns": {"papers": "{{ at(state.trays, [args.tray]) | length }}"},
}


def test_a_contract_answers(question):
    asked, refusal = gate(question(contract=GUARDED, args={"tray": "letters", "paper": "bill"}))
    assert refusal is None
    assert contract_rung(asked) == Answer("ok", {"papers": 2}, ADD)


def test_a_broken_precondition_is_the_tool_s_error_with_its_own_effects(question):
    _, refusal = gate(question(contract=GUARDED, args={"tray": "bills", "paper": "bill"}))
    change = [{"op": "replace", "path": "/count", "value": 1}]
    broken = {"clause": "requires[0]", "kind": "tool", "part": "requires", "error": "no tray bills"}
    assert refusal == Answer("error", "no tray bills", change, more={"violations": [broken]})


def test_a_contract_that_only_guards_passes(question):
    asked, refusal = gate(question(contract={"requires": [{"check": "true", "error": "never"}]}))
    assert refusal is None
    assert contract_rung(asked) == Pass("the contract only guards the call")


@pytest.mark.parametrize(
    "contract", [{"returns": "{{ 1 / state.count }}"}, {"effects": [{"op": "remove", "path": ["x"]}]}]
)
def test_a_contract_that_cannot_be_evaluated_is_an_error_and_no_other_rung_s(question, told, contract):
    for policy in (None, "pass", "refuse"):
        asked = question(contract=contract, unclear=policy, simulate=lambda state: "made", has_simulator=True)
        outcome = told(climb(asked)).value
        assert (outcome["rung"], outcome["status"], outcome["patch"]) == ("contract", "error", [])
        assert outcome["result"].startswith("not done: it cannot be checked: the contract cannot be evaluated: ")
        assert outcome["category"] == "state_dependency"
        assert outcome["unclear"][0].startswith("the contract cannot be evaluated: ")


def test_no_contract(question):
    asked = question()
    assert gate(asked) == (asked, None)
    assert contract_rung(asked) == Pass("the tool has no contract")


def test_the_clock_is_the_state_s():
    assert clock({"now": "2026-03-01", "runtime_state": {"now": "2025-01-01"}}) == "2026-03-01"
    assert clock({"now": 7, "runtime_state": {"now": "2025-01-01"}}) == "2025-01-01"
    assert clock({"runtime_state": [1]}) is None
    assert clock([1]) is None
