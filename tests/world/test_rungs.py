"""Each rung by itself: what it answers, when it passes, and that it never touches the state it was shown."""

import copy
import datetime
import decimal
import math
import time

import pytest
from langchain_core.messages import ToolMessage
from pydantic import BaseModel

from gecko_graph.tools.spec import ToolExample
from gecko_graph.world.ladder import climb
from gecko_graph.world.rung import Answer, Pass, gate
from gecko_graph.world.rungs import contract_rung, example_rung, python_rung, real_rung
from tests.doubts import texts

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
    added = [{"op": "add", "path": "/trays/letters/1", "value": "bill"}]
    assert answer == Answer("ok", {"papers": ["from mum", "bill"]}, added)
    assert state == before


def test_a_python_tool_that_raises_changes_nothing(question, told):
    def put(state):
        state["trays"].clear()
        raise ValueError("the desk is locked")

    assert told(python_rung(question(simulate=put))).value == Answer("error", "ValueError: the desk is locked", [])

    def refuse(state):
        state["tries"] = 1
        content = [{"type": "text", "text": '{"error": "the desk is locked"}'}]
        return ToolMessage(content, tool_call_id="", status="error")

    change = [{"op": "add", "path": "/tries", "value": 1}]  # an error of its own changes what it says
    said = told(python_rung(question(simulate=refuse))).value
    assert said == Answer("error", {"error": "the desk is locked"}, change)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (None, None),
        (Receipt(at=datetime.date(2026, 3, 1), total=decimal.Decimal("1.50")), {"at": "2026-03-01", "total": "1.50"}),
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


def leaves(value):
    return lambda state: state["trays"].update(letters=value)


@pytest.mark.parametrize(
    ("simulate", "reason"),
    [
        *((lambda state, value=value: value, "not JSON") for value in (object(), {"f": len}, b"\xff\xfe", looped())),
        *((leaves(one), "/trays/letters") for one in (math.nan, {1}, (1,), datetime.date(2026, 3, 1), 2**70, {1: 2})),
    ],
)
def test_a_result_or_a_state_that_is_no_json_passes_with_the_reason(question, told, simulate, reason):
    said = told(python_rung(question(simulate=simulate))).value
    assert isinstance(said, Pass)
    assert reason in said.reason


def test_a_tool_that_hangs_or_returns_what_takes_too_long_passes(question, told):
    def slowly(state):
        return (time.sleep(0.01) for _ in range(100))

    for function in (slowly, lambda state: time.sleep(1)):
        said = told(python_rung(question(simulate=function, tool_timeout_s=0.05))).value
        assert said == Pass("the simulate function did not answer within 0.05 s")


# real


def test_real_runs_opened_reads_only(question, told):
    ran = []
    real = {"real": lambda **args: ran.append(args) or {"rate": 1.25}, "args": {"currency": "EUR"}}
    closed = [{"effect": effect, "opened": effect != "read", **real} for effect in ("read", "write", None)]
    for more in (*closed, {"effect": "read", "opened": True, "simulate": put}):
        assert isinstance(told(real_rung(question(**more))).value, Pass)
    assert ran == []
    assert told(real_rung(question(effect="read", opened=True, **real))).value == Answer("ok", {"rate": 1.25}, [])
    assert ran == [{"currency": "EUR"}]


# example


def test_examples_answer_reads_with_exactly_these_arguments(question):
    examples = (ToolExample({"n": 1}, {"x": [1]}), ToolExample({"n": 2}, "two"))
    assert example_rung(question(effect="read", examples=examples, args={"n": 2})) == Answer("ok", "two", [])
    for args in ({"n": 1.0}, {"n": True}, {}, {"n": 1, "m": 2}):
        said = example_rung(question(effect="read", examples=examples, args=args))
        assert said == Pass("no example has these arguments")
    assert isinstance(example_rung(question(effect="write", examples=examples, args={"n": 2})), Pass)
    assert isinstance(example_rung(question(effect="read", args={"n": 2})), Pass)


# contract

GUARDED = {
    "requires": [{"check": "args.tray in state.trays", "error": "no tray {{ args.tray }}",
                  "effects": [{"op": "replace", "path": ["count"], "value": "{{ state.count + 1 }}"}]}],
    "effects": [{"op": "add", "path": ["trays", "{{ args.tray }}", "-"], "value": "{{ args.paper }}"}],
    "returns": {"papers": "{{ len(at(state.trays, [args.tray])) }}"},
}  # fmt: skip


def test_a_contract_answers(question):
    asked, refusal = gate(question(contract=GUARDED, args={"tray": "letters", "paper": "bill"}))
    assert refusal is None
    assert contract_rung(asked) == Answer("ok", {"papers": 2}, ADD)


@pytest.mark.parametrize(
    "contract", [{"returns": "{{ 1 / state.count }}"}, {"effects": [{"op": "remove", "path": ["x"]}]}]
)
def test_a_contract_that_cannot_be_evaluated_is_an_error_and_no_other_rung_s(question, told, contract):
    for policy in (None, "pass", "refuse"):
        asked = question(contract=contract, unclear=policy, simulate=lambda state: "made", has_simulator=True)
        outcome = told(climb(asked)).value
        assert (outcome["rung"], outcome["status"], outcome["patch"]) == ("contract", "error", [])
        why = "the contract cannot be evaluated: "
        assert outcome["result"].startswith(f"refused: a precondition could not be evaluated: {why}")
        assert outcome["category"] == "state_dependency"
        assert texts(outcome, "unclear")[0].startswith(why)
