"""Tools that LangGraph injects something into, run for real with the runtime of the call."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore, ToolNode, ToolRuntime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from typing_extensions import TypedDict

from gecko_graph import Tool, Toolkit
from tests.agents import make_agent, thread
from tests.tools.real_calls import amake, make

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_seen():
    SEEN.clear()


def note(kind, **found):
    SEEN.append(found)
    return {"noted": kind}


@tool
def runtime(text: str, runtime: ToolRuntime) -> dict:
    """Note."""
    runtime.stream_writer({"noted": text})
    runtime.store.put(("notes",), "last", {"text": text})
    return note("runtime", messages=len(runtime.state["messages"]), thread=runtime.config["configurable"]["thread_id"],
                id=runtime.tool_call_id)  # fmt: skip


@tool
async def store(text: str, store: Annotated[BaseStore, InjectedStore()]) -> dict:
    """Note."""
    await store.aput(("notes",), "last", {"text": text})
    return note("store", kept=(await store.aget(("notes",), "last")).value)


@tool
def call_id(text: str, id: Annotated[str, InjectedToolCallId]) -> dict:
    """Note."""
    return note("call id", id=id)


def config(text: str, config: RunnableConfig) -> dict:
    """Note."""
    return note("config", thread=config["configurable"]["thread_id"])


def function(
    text: str, state: Annotated[dict, InjectedState], said: Annotated[list, InjectedState("messages")],
    runtime: ToolRuntime, store: BaseStore,
) -> dict:  # fmt: skip
    """Note."""
    return note("function", messages=len(state["messages"]), same=runtime.store is store and state["messages"] == said)


async def coroutine(text: str, runtime: ToolRuntime | None = None) -> dict:
    """Note."""
    return note("coroutine", messages=len(runtime.state["messages"]) if runtime else None)


@tool
def commands(text: str, runtime: ToolRuntime) -> Command:
    """Note."""
    SEEN.append({"id": runtime.tool_call_id})
    return Command(update={"messages": [ToolMessage('{"noted": "command"}', tool_call_id=runtime.tool_call_id)]})


class Class(BaseTool):
    name: str = "of_class"
    description: str = "Note."

    def _run(self, text: str, runtime: ToolRuntime) -> dict:
        return note("class", messages=len(runtime.state["messages"]))


EXPECTED = {
    "runtime": {"messages": 1, "thread": "1"}, "store": {"kept": {"text": "hello"}}, "call_id": {},
    "config": {"thread": "1"}, "function": {"messages": 1, "same": True}, "coroutine": {"messages": 1}, "commands": {},
    "of_class": {"messages": 1},
}  # fmt: skip
TOOLS = [runtime, store, call_id, config, function, coroutine, commands, Class()]


class Parent(TypedDict, total=False):
    messages: list
    task_state: dict
    checklist: list


def agent_of(name):
    simulate = lambda state, text: {"noted": "x"}  # noqa: E731
    toolkit = Toolkit.from_tools(TOOLS).declare(Tool(name, effect="write", simulate=simulate))
    return make_agent(toolkit, [{"call": name, "args": {"text": "hello"}}, {"say": "Noted."}], checkpointer=None)


GIVEN = {"messages": [("user", "Note hello")], "task_state": {}, "checklist": [{"check": "True"}]}
THREAD = thread()


def check_seen(name):
    (seen,) = SEEN
    assert seen.pop("id", "an id")
    assert seen == EXPECTED[name]


@pytest.mark.parametrize("do", ["invoke", "ainvoke"])
@pytest.mark.parametrize("name", ["runtime", "coroutine", "store", "function", "commands"])
async def test_an_agent_s_real_call_gets_what_its_graph_has(name, do):
    parent = StateGraph(Parent).add_node("agent", agent_of(name))
    graph = parent.add_edge(START, "agent").compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    out = graph.invoke(GIVEN, THREAD) if do == "invoke" else await graph.ainvoke(GIVEN, THREAD)
    check_seen(name)
    assert "Noted." in out["messages"][-1].text


async def test_an_opened_read_of_a_rehearsal_gets_it_too():
    def place(text: str, runtime: ToolRuntime) -> dict:
        """Note."""
        return note("thread", thread=runtime.config["configurable"]["thread_id"], id=runtime.tool_call_id)

    toolkit = Toolkit.from_tools([Tool(place, effect="read")]).open("place")
    plan = [{"call": "place", "args": {"text": "hello"}}, {"say": "Noted."}]
    agent = make_agent(toolkit, plan)
    await agent.ainvoke(GIVEN, THREAD)
    assert [seen["thread"] for seen in SEEN] == ["1"] * len(SEEN)
    assert SEEN[0]["id"].startswith("call")


@pytest.mark.parametrize("name", sorted(EXPECTED.keys() - {"coroutine", "call_id"}))
async def test_outside_of_a_graph_it_is_refused_before_the_function_begins(name):
    spec = Toolkit.from_tools(TOOLS)[name]
    for answer, in_doubt in (make(spec, {"text": "hello"}), await amake(spec, {"text": "hello"})):
        assert (answer.status, in_doubt, SEEN) == ("error", False, [])
        assert "cannot be injected: no graph is running" in answer.result


def calling(name, store=None):
    """A graph with state of its own, whose node calls a toolkit's tool as LangChain tools are called."""
    tools = Toolkit.from_tools(TOOLS).as_tools()
    graph = StateGraph(MessagesState).add_node("tools", ToolNode(tools)).add_edge(START, "tools").compile(store=store)
    called = AIMessage("", tool_calls=[{"name": name, "args": {"text": "hello"}, "id": "call-7"}])
    return graph.invoke({"messages": [called]}, THREAD)["messages"][-1]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_as_tools_see_the_graph_that_they_are_in(name):
    message = calling(name, InMemoryStore())
    assert message.status == "success", message
    check_seen(name)
    spec = Toolkit.from_tools(TOOLS)[name]
    assert (spec.real is None, set(spec.parameters["properties"])) == (False, {"text"})


def test_a_call_cannot_forge_what_is_injected():
    spec = Toolkit.from_tools([coroutine])["coroutine"]
    answer, _ = make(spec, {"text": "hello", "runtime": "forged"})
    assert (answer.status, SEEN) == ("ok", [{"messages": None}])


class LookAlike(InjectedToolArg):
    pass


LookAlike.__name__ = "InjectedState"


def signed_in(text: str, user: Annotated[str, LookAlike]) -> str:
    """Note."""


def signed(text: str, user: Annotated[str, InjectedToolArg]) -> dict:
    """Note."""


def test_what_nobody_here_can_inject_is_not_real():
    assert [spec.real for spec in Toolkit.from_tools([signed, tool(signed_in)])] == [None, None]
