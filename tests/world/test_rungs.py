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
    assert "/trays/letters" in said.reason


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
    assert isinstance(told(real_rung(question(effect="read", **real))).value, Pass)
    assert isinstance(told(real_rung(question(effect="write", opened=True, **real))).value, Pass)
    assert isinstance(told(real_rung(question(effect=None, opened=True, **real))).value, Pass)
    assert isinstance(told(real_rung(question(effect="read", opened=True, simulate=put))).value, Pass)
    assert ran == []
    assert told(real_rung(question(effect="read", opened=True, **real))).value == Answer("ok", {"rate": 1.25}, [])
    assert ran == [{"currency": "EUR"}]


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
        assert outcome["result"].startswith(
            "refused: a precondition could not be evaluated: the contract cannot be evaluated: "
        )
        assert outcome["category"] == "state_dependency"
        assert texts(outcome, "unclear")[0].startswith("the contract cannot be evaluated: ")
