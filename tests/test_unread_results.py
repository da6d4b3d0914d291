"""Results of real calls that no checkpoint can store: what was done is in doubt, not undone, and nothing breaks."""

from __future__ import annotations

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph import Tool, Toolkit
from gecko_graph.tools.real import as_answer
from tests.agents import call, make_agent, thread
from tests.middleware.bank import CONTRACTS, EFFECTS, STATE, calls, chat, look, pay

THREAD = thread()
VALUES = {"inf": float("inf"), "nan": float("nan"), "half a pair": "\ud800", "long": 10**30, "no JSON": object()}
PLAN = [call("transfer", to="ann", amount=3), {"say": "Done."}]


def toolkit_of(value, made):
    def transfer(to: str, amount: int):
        """Transfer money."""
        made.append(amount)
        return {"left": value}

    def balance():
        """Return the balance."""
        return {"balance": value}

    return (
        Toolkit.from_tools([transfer, balance])
        .declare(*(Tool(name, effect=effect) for name, effect in EFFECTS.items()))
        .with_contracts({"contracts": CONTRACTS})
    )


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_the_agent_asks_what_came_of_the_call_and_does_not_make_it_again(value):
    made = []
    agent = make_agent(toolkit_of(value, made), *[PLAN] * 3)
    given = {"messages": [("user", "Pay ann 3")], "task_state": STATE, "checklist": [{"check": "True"}]}
    out = agent.invoke(given, THREAD)
    assert "not known whether it took effect" in out["__interrupt__"][0].value["action_requests"][0]["description"]
    out = agent.invoke(Command(resume={"decisions": [{"type": "happened", "message": '{"left": 97}'}]}), THREAD)
    assert made == [3]
    assert out["task_state"]["balance"] == 97


@pytest.mark.parametrize(("mode", "value"), [*zip(["guard", "shadow", "preview"] * 2, VALUES.values(), strict=False)])
def test_middleware_asks_what_came_of_the_call_and_does_not_make_it_again(value, mode):
    pytest.importorskip("langchain")
    from langchain.agents import create_agent

    from gecko_graph.middleware import GeckoMiddleware

    made = []
    toolkit = toolkit_of(value, made)
    agent = create_agent(
        chat(calls(pay("a", 3), look("b"))),
        tools=toolkit.as_tools(),
        middleware=[GeckoMiddleware(toolkit, mode=mode, state=STATE)],
        checkpointer=InMemorySaver(),
    )
    out = agent.invoke({"messages": [("user", "Pay ann")]}, THREAD)
    if mode == "preview":
        out = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    (asked,) = out["__interrupt__"]
    happened = {"id": asked.value["id"], "decisions": [{"type": "happened", "message": '{"left": 97}'}]}
    out = agent.invoke(Command(resume=happened), THREAD)
    paid, looked = [message for message in out["messages"] if isinstance(message, ToolMessage)]
    assert (paid.status, looked.status, made) == ("success", "error", [3])
    assert '"left": 97' in paid.text


def test_a_tools_own_text_that_no_checkpoint_could_store_as_json_stays_text():
    text = '{"left": 1e999}'
    assert as_answer(ToolMessage([{"type": "text", "text": text}], tool_call_id="1")).result == text
