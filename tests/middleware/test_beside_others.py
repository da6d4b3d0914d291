"""`GeckoMiddleware` beside other middleware: edits and pauses."""

from __future__ import annotations

from inspect import signature

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph.middleware import GeckoMiddleware
from tests.middleware.bank import STATE, Bank, calls, chat, look, pay
from tests.middleware.test_agent import THREAD, agent_of, answers, task


def test_a_person_between_by_langchains_own_middleware(run):
    """Edited and rejected calls are simulated as they are made, whatever was simulated before."""
    bank, saver = Bank(), InMemorySaver()
    person = HumanInTheLoopMiddleware({"transfer": True})
    made = calls(pay("a", 80), pay("b", 80), look("c"))
    agent = agent_of(bank, made, others=[person], saver=saver)
    run(agent, task(), THREAD)
    edit = {"type": "edit", "edited_action": {"name": "transfer", "args": {"to": "bob", "amount": 90}}}
    out = run(agent, Command(resume={"decisions": [{"type": "reject"}, edit]}), THREAD)
    by_id = {message.tool_call_id: message for message in answers(out)}
    assert '"left": 10' in by_id["b"].content
    assert out["gecko"]["state"]["balance"] == 10
    assert bank.calls == []


@pytest.mark.skipif(
    "interrupt_mode" not in signature(HumanInTheLoopMiddleware).parameters, reason="an older LangChain asks per message"
)
@pytest.mark.parametrize("is_new_process", [False, True])
@pytest.mark.parametrize("is_first", [False, True])
def test_a_call_that_waits_for_a_person_is_made_once_and_checked_in_the_state_of_its_siblings(
    run, is_first, is_new_process
):
    bank, saver = Bank(), InMemorySaver()
    person = HumanInTheLoopMiddleware(
        {"transfer": {"allowed_decisions": ["approve"], "when": lambda request: request.tool_call["id"] == "b"}},
        interrupt_mode="per_call",
    )

    def agent(*said):
        gecko = GeckoMiddleware(bank.toolkit(), mode="guard", state=STATE)
        order = [person, gecko] if is_first else [gecko, person]
        return create_agent(chat(*said), tools=bank.toolkit().as_tools(), middleware=order, checkpointer=saver)

    first = agent(calls(pay("a", 80), pay("b", 80)))
    run(first, task(), THREAD)
    assert bank.calls == [("transfer", "ann", 80)]
    out = run(agent() if is_new_process else first, Command(resume={"type": "approve"}), THREAD)
    assert bank.calls == [("transfer", "ann", 80)]
    assert "only 20 left" in answers(out)[1].content
    assert out["gecko"]["state"]["balance"] == 20


@pytest.mark.parametrize("mode", ["guard", "shadow", "simulate"])
def test_an_edit_by_langchains_middleware_listed_behind_is_what_is_checked_and_booked(run, mode):
    bank, saver = Bank(), InMemorySaver()
    gecko = GeckoMiddleware(bank.toolkit(), mode=mode, state=STATE)
    person = HumanInTheLoopMiddleware({"transfer": True})
    made = chat(calls(pay("a", 30), pay("b", 65)))
    agent = create_agent(made, tools=bank.toolkit().as_tools(), middleware=[gecko, person], checkpointer=saver)
    run(agent, task(), THREAD)
    edit = {"type": "edit", "edited_action": {"name": "transfer", "args": {"to": "bob", "amount": 200}}}
    out = run(agent, Command(resume={"decisions": [edit, {"type": "reject"}]}), THREAD)
    assert out["gecko"]["state"]["balance"] == (100 if mode != "shadow" else STATE["balance"])
    assert bank.calls == ([("transfer", "bob", 200)] if mode == "shadow" else [])


@pytest.mark.parametrize("is_first", [False, True])
def test_what_follows_an_edited_call_is_simulated_in_the_state_that_it_leaves(run, is_first):
    toolkit = Bank().toolkit()
    both = [HumanInTheLoopMiddleware({"transfer": True}), GeckoMiddleware(toolkit, state=STATE)]
    agent = create_agent(
        chat(calls(pay("a", 10), pay("b", 20), look("c"), pay("d", 5))),
        tools=toolkit.as_tools(),
        middleware=both if is_first else both[::-1],
        checkpointer=InMemorySaver(),
    )
    run(agent, task(), THREAD)
    edit = {"type": "edit", "edited_action": {"name": "transfer", "args": {"to": "bob", "amount": 50}}}
    out = run(agent, Command(resume={"decisions": [{"type": "approve"}, edit, {"type": "approve"}]}), THREAD)
    assert out["gecko"]["state"]["balance"] == 35
    assert next(message for message in answers(out) if message.tool_call_id == "c").text == '{"balance": 40}'
