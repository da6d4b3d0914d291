"""The public fakes do what they say, and refuse what would make a test lie."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from gecko_graph.context import GeckoContext
from gecko_graph.models.ask import Ask, FunctionCall, PlannerAsk, QuestionId, Reply
from gecko_graph.models.roles import SemanticVerdict
from gecko_graph.testing import drive, failing, recorded

ASK = Ask("validator", {}, SemanticVerdict, QuestionId())
PLAN = PlannerAsk([HumanMessage("hi")], [], QuestionId())


def node(state, scope):
    scope.emit({"type": "begun", "seed": scope.context.seed, "judge": scope.has_model("judge")})
    (plan,) = yield [PLAN]
    verdict, work = yield [ASK, FunctionCall(function=len)]
    return {"plan": plan.value, "verdict": verdict.value, "failure": verdict.failure, "work": work.value}


def test_a_generator_is_driven_through_its_rounds():
    driven = drive(node, {}, [{"call": "ls"}, {"problems": []}, 7], context=GeckoContext(seed=3), roles=["planner"])
    assert driven.update["plan"].tool_calls[0]["name"] == "ls"
    assert driven.update["verdict"] == SemanticVerdict(problems=[])
    assert driven.update["work"] == 7
    assert driven.asks[:2] == [PLAN, ASK]
    assert driven.events == [{"type": "begun", "seed": 3, "judge": False}]


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (ValueError("no luck"), "no luck"),
        (Reply(None, "gone", absent=True), "gone"),
        (SemanticVerdict(problems=[]), None),
    ],
)
def test_replies_may_be_written_in_several_ways(reply, failure):
    assert drive(node, {}, [AIMessage("hi"), reply, None]).update["failure"] == failure


def test_recorded_takes_turns_or_roles():
    assert recorded(judge=[1]).turns == [{"judge": [1]}]
    assert recorded({"judge": [1]}, {}).turns == [{"judge": [1]}, {}]
    with pytest.raises(TypeError, match="not both"):
        recorded({}, judge=[])


def test_failing_raises_what_it_was_given():
    with pytest.raises(OSError, match="line is dead"):
        failing(OSError("line is dead")).bind_tools([]).invoke("hi")
