"""A real write is made after the calls before it in its message, or not at all; beside other middleware too."""

from __future__ import annotations

import asyncio
import time
from inspect import signature

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph.middleware import GeckoMiddleware, live
from tests.middleware.bank import STATE, Bank, calls, chat, look, pay
from tests.middleware.test_agent import THREAD, agent_of, answers, task

PER_CALL = "interrupt_mode" in signature(HumanInTheLoopMiddleware).parameters
needs_per_call = pytest.mark.skipif(not PER_CALL, reason="an older LangChain asks per message")


class Late(AgentMiddleware):
    """Holds the first call back."""

    def wrap_tool_call(self, request, handler):
        time.sleep(0.6 if request.tool_call["id"] == "a" else 0)
        return handler(request)

    async def awrap_tool_call(self, request, handler):
        await asyncio.sleep(0.6 if request.tool_call["id"] == "a" else 0)
        return await handler(request)


@pytest.mark.parametrize("mode", ["guard", "preview"])
@pytest.mark.parametrize("has_saver", [True, False])
def test_a_call_that_another_middleware_holds_back_is_waited_for(run, mode, has_saver):
    bank, rules = Bank(), [{"tool": "*", "then": "allow"}]
    saver = InMemorySaver() if has_saver else None
    made = calls(pay("a", 3), pay("b", 2), pay("c", 1))
    run(agent_of(bank, made, mode=mode, interrupt_on=rules, others=[Late()], saver=saver), task(), THREAD)
    assert [amount for _, _, amount in bank.calls] == [3, 2, 1]


class Answering(AgentMiddleware):
    """Answers the first call in the tool's place."""

    def wrap_tool_call(self, request, handler):
        return self.answer(request) or handler(request)

    async def awrap_tool_call(self, request, handler):
        return self.answer(request) or await handler(request)

    def answer(self, request):
        if request.tool_call["id"] == "a":
            return ToolMessage("blocked", tool_call_id="a", name="transfer", status="error")
        return None


@pytest.mark.parametrize("has_saver", [True, False])
def test_a_call_that_another_middleware_answers_is_not_waited_for(run, has_saver):
    bank, began = Bank(), time.monotonic()
    saver = InMemorySaver() if has_saver else None
    made = calls(pay("a", 80), pay("b", 30))
    out = run(agent_of(bank, made, mode="guard", others=[Answering()], saver=saver), task(), THREAD)
    assert bank.calls == [("transfer", "ann", 30)]
    assert out["gecko"]["state"]["balance"] == 70
    assert time.monotonic() - began < live.PATIENCE_S / 2


def asking(bank, *ids, saver, said=()):
    """An agent whose user is asked about calls with these ids, before the gate."""
    when = {"allowed_decisions": ["approve", "reject"], "when": lambda request: request.tool_call["id"] in ids}
    person = HumanInTheLoopMiddleware({"transfer": when}, interrupt_mode="per_call")
    gecko = GeckoMiddleware(bank.toolkit(), mode="guard", state=STATE)
    tools = bank.toolkit().as_tools()
    return create_agent(chat(*said), tools=tools, middleware=[person, gecko], checkpointer=saver)


def ids_of(paused: dict) -> dict[str, str]:
    return {each.value["tool_call_id"]: each.id for each in paused["__interrupt__"]}


@needs_per_call
@pytest.mark.parametrize("is_new_process", [False, True])
def test_while_an_earlier_call_waits_for_a_person_a_write_is_refused(run, is_new_process):
    bank, saver = Bank(), InMemorySaver()
    first = asking(bank, "a", saver=saver, said=[calls(pay("a", 80), pay("b", 30)), calls(pay("c", 5)), AIMessage("")])
    run(first, task(), THREAD)
    assert bank.calls == []
    goes_on = asking(bank, "a", saver=saver, said=[calls(pay("c", 5)), AIMessage("")]) if is_new_process else first
    out = run(goes_on, Command(resume={"type": "approve"}), THREAD)
    assert bank.calls == [("transfer", "ann", 80), ("transfer", "ann", 5)]
    assert out["gecko"]["state"]["balance"] == 15
    (refused,) = [message for message in answers(out) if message.tool_call_id == "b"]
    assert refused.status == "error"
    assert "Make this call again when that one is answered" in refused.content


@needs_per_call
@pytest.mark.parametrize("is_new_process", [False, True])
def test_a_rejected_sibling_is_closed_also_where_another_one_still_waits(run, is_new_process):
    bank, saver = Bank(), InMemorySaver()

    def agent(*said):
        return asking(bank, "a", "b", "c", saver=saver, said=said)

    first = agent(calls(pay("a", 80), pay("b", 30), pay("c", 5)))
    asked = ids_of(run(first, task(), THREAD))
    run(first, Command(resume={asked["a"]: {"type": "reject"}}), THREAD)
    goes_on = agent() if is_new_process else first
    run(goes_on, Command(resume={asked["b"]: {"type": "approve"}}), THREAD)
    assert bank.calls == [("transfer", "ann", 30)]
    out = run(goes_on, Command(resume={asked["c"]: {"type": "approve"}}), THREAD)
    assert bank.calls == [("transfer", "ann", 30), ("transfer", "ann", 5)]
    assert out["gecko"]["state"]["balance"] == 65


@pytest.mark.parametrize(("patience_s", "paid"), [(20, [80, 10]), (0, [80])])
def test_where_langgraph_does_not_say_what_is_under_way_a_call_waits_a_while_and_is_refused(
    run, monkeypatch, patience_s, paid
):
    monkeypatch.setattr(live, "look_at_siblings", lambda known: None)
    monkeypatch.setattr(live, "PATIENCE_S", patience_s)
    bank = Bank()
    run(agent_of(bank, calls(pay("a", 80), pay("b", 10)), mode="guard", others=[Late()]), task())
    assert [amount for _, _, amount in bank.calls] == paid


@needs_per_call
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
