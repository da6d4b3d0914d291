"""`rehearse_pending` and `rehearsal_message`."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.messages import HumanMessage, ToolMessage

from gecko_graph import GeckoError, Models, World, create_gecko
from gecko_graph.middleware import rehearsal_message, rehearse_pending
from gecko_graph.testing import recorded
from tests.middleware.bank import STATE, Bank, calls, pay


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_pending_calls_are_rehearsed_and_not_answered(mode):
    world = World(Bank().toolkit(), state=STATE)
    node = rehearse_pending(world, interrupt_on="all")
    state = {"messages": [HumanMessage("Pay"), calls(pay("a", 30), pay("b", "x"), ("c", "nope", {}))]}
    out = node.invoke(state) if mode == "sync" else asyncio.run(node.ainvoke(state))
    assert out["preview"]["changes"][0] == "add /transfers/" + out["outcomes"][0]["outcome"]["result"]["id"] + " 30"
    assert [each["predicted"]["status"] for each in out["preview"]["calls"]] == ["ok", "error"]
    assert [each["review"] for each in out["preview"]["calls"]] == ["ask", "ask"]
    assert [step["call"]["id"] for step in out["outcomes"]] == ["a", "b", "c"]
    assert "complaints" in out["outcomes"][2]
    assert world.log == []
    done = {"messages": [*state["messages"], *(ToolMessage("x", tool_call_id=id_) for id_ in "abc")]}
    assert node.invoke(done) == {"preview": None, "outcomes": []}


def test_a_rehearsal_as_guidance_for_the_agent_that_acts():
    attempts = [
        [{"call": "transfer", "args": {"to": "ann", "amount": 300}}, {"say": "I could not."}],
        [{"call": "transfer", "args": {"to": "ann", "amount": 30}}, {"say": "Paid."}],
    ]
    gecko = create_gecko(Bank().toolkit(), model=Models(planner=recorded(planner=attempts)))
    items = [{"description": "ann has 30", "check": "state.balance == 70"}]
    out = gecko.invoke({"messages": [("user", "Pay ann 30")], "task_state": STATE, "checklist": items})
    message = rehearsal_message(out)
    assert isinstance(message, HumanMessage)
    text = message.text
    assert "Attempt 1 (failed" in text
    assert "Attempt 2 (accepted, score 1.00, the best)" in text
    assert "only 100 left" in text
    assert out["rehearsal"]["attempts"][0]["verdict"]["feedback"] in text
    assert rehearsal_message(out["rehearsal"]).text == text
    assert len(rehearsal_message(out, budget=400).text) < len(text) + 1
    with pytest.raises(GeckoError, match="expected the graph's output"):
        rehearsal_message({})
