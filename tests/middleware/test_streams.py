"""The typed streams of an agent with the middleware, which registers them."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from gecko_graph import Tool, Toolkit
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.stream import Rehearsing
from gecko_graph.testing import scripted
from tests.middleware.bank import STATE, Bank
from tests.test_stream import aread, of, read

pytestmark = pytest.mark.filterwarnings("ignore:The v3 streaming protocol")

PAYMENTS = [{"call": "transfer", "args": {"to": "ann", "amount": amount}} for amount in (30, 80)]
BROKEN = {"call": "transfer", "args": {"to": "ann", "amount": "much"}}
SAID = [{"calls": [*PAYMENTS, BROKEN]}, {"call": "balance", "args": {}}, {"say": "Done."}]
TASK: Any = {"messages": [("user", "pay ann")]}
THREAD: Any = {"configurable": {"thread_id": "1"}}


def agent_of(mode: str, bank: Bank, **more: Any) -> Any:
    toolkit = bank.toolkit()
    middleware = [GeckoMiddleware(toolkit, mode=mode, state=STATE)]
    return create_agent(scripted(*SAID), toolkit.as_tools(), middleware=middleware, **more)


def inside(agent: Any, **more: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_edge(START, "agent")
    return builder.compile(**more)


def bare(told: Any) -> list[Any]:
    return [
        (step["call"]["name"], "complaints" if "complaints" in step else step["outcome"]["status"])
        for step in of(told, "steps")
    ]


@pytest.mark.parametrize("where", ["alone", "embedded", "async"])
async def test_simulated_calls(where):
    agent = agent_of("simulate", Bank())
    if where == "alone":
        told = read(agent, TASK, transformers=[])
    else:
        told = read(inside(agent), TASK) if where == "embedded" else await aread(agent, TASK, transformers=[])
    assert bare(told) == [("transfer", "ok"), ("transfer", "error"), ("transfer", "complaints"), ("balance", "ok")]
    out = agent_of("simulate", Bank()).invoke(TASK)
    assert [step.get("outcome") for step in of(told, "steps")] == [s.get("outcome") for s in out["gecko"]["log"]]
    assert [change["patch"] for change in of(told, "changes")] == [out["gecko"]["log"][0]["outcome"]["patch"]]
    assert {step["attempt"] for step in of(told, "steps")} == {0}


@pytest.mark.parametrize("mode", ["guard", "shadow"])
def test_real_calls(mode):
    bank = Bank()
    bank.lie = 12
    agent = agent_of(mode, bank, checkpointer=InMemorySaver())
    told = read(agent, TASK, THREAD, transformers=[])
    drifts = {
        entry["call"]["id"]: entry.get("drift") or None for entry in agent.get_state(THREAD).values["gecko_journal"]
    }
    assert [step["call"]["id"] for step in of(told, "steps")] == sorted(drifts)
    assert {step["outcome"]["rung"] for step in of(told, "steps")} == {"real"}
    changed = {change["call"]["id"]: change.get("drift") for change in of(told, "changes")}
    assert changed
    assert changed == {each: drifts[each] for each in changed}
    assert any(changed.values())


@pytest.mark.parametrize("where", ["alone", "embedded"])
def test_a_question_is_told_once_and_the_resumed_run_tells_what_is_new(where):
    alone = agent_of("preview", Bank(), checkpointer=InMemorySaver() if where == "alone" else None)
    agent, more = alone, {"transformers": []}
    if where == "embedded":
        agent, more = inside(alone, checkpointer=InMemorySaver()), {}
    first = read(agent, TASK, THREAD, **more)
    assert [name for name, _ in first] == ["questions"]
    (question,) = of(first, "questions")
    asked = question["value"]["action_requests"]
    resume = {question["id"]: {"decisions": [{"type": "approve"}] * len(asked)}}
    second = read(agent, Command(resume=resume), THREAD, **more)
    assert bare(second) == [("transfer", "ok"), ("balance", "ok")]
    assert [name for name, _ in second] == ["steps", "changes", "steps"]


def test_the_next_turn_tells_its_own_calls():
    toolkit = Bank().toolkit()
    agent = create_agent(
        scripted(*SAID, {"call": "balance", "args": {}}, {"say": "It is 70."}),
        toolkit.as_tools(),
        middleware=[GeckoMiddleware(toolkit, state=STATE)],
        checkpointer=InMemorySaver(),
    )
    assert len(of(read(agent, TASK, THREAD, transformers=[]), "steps")) == 4
    (step,) = of(read(agent, {"messages": [("user", "what is left?")]}, THREAD, transformers=[]), "steps")
    assert step["outcome"]["result"] == {"balance": 70}


def test_the_agent_may_name_the_streams_too():
    toolkit = Bank().toolkit()
    agent = create_agent(
        scripted(*SAID),
        toolkit.as_tools(),
        middleware=[GeckoMiddleware(toolkit, state=STATE)],
        transformers=[Rehearsing],
    )
    assert len(of(read(agent, TASK, transformers=[]), "steps")) == 4


def test_a_call_that_was_made_before_the_pause_holds_no_other_back():
    def pay(to: str) -> dict[str, Any]:
        """Pay."""
        return {"paid": to, "word": interrupt("sure?") if to == "bob" else ""}

    toolkit = Toolkit.from_tools([Tool(pay, effect="write", contract={"returns": {"pass": True}})])
    calls = [{"call": "pay", "args": {"to": to}} for to in ("ann", "bob", "cid")]
    agent = create_agent(
        scripted({"calls": calls}, {"say": "Done."}),
        toolkit.as_tools(),
        middleware=[GeckoMiddleware(toolkit, mode="guard", state={})],
        checkpointer=InMemorySaver(),
    )
    first = read(agent, TASK, THREAD, transformers=[])
    assert [step["call"]["args"]["to"] for step in of(first, "steps")] == ["ann"]
    (question,) = of(first, "questions")
    second = read(agent, Command(resume={question["id"]: "yes"}), THREAD, transformers=[])
    assert [step["call"]["args"]["to"] for step in of(second, "steps")][:1] == ["bob"]
