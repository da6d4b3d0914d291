"""Agents that leave the world: found before they run where that can be, else as soon as it is known."""

from __future__ import annotations

import copy

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from gecko_graph import GeckoError, Scenario, Toolkit, create_conversation
from gecko_graph.cli import main
from gecko_graph.conversation.channels import read_envelope
from gecko_graph.conversation.outside import LeftWorld
from gecko_graph.conversation.result import describe_messages
from gecko_graph.testing import scripted
from tests.cases.test_cases import folder
from tests.test_conversation import ANSWER, CONTRACTS, SCENARIO, WEATHER, WIFI, scenario

pytest.importorskip("langchain")
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware

__all__ = ["folder", "scenario"]
DONE = []


@pytest.fixture(autouse=True)
def nothing_done():
    DONE.clear()


@tool
def weather(city: str) -> str:
    """The real weather."""
    DONE.append(city)
    return "snow"


@tool
def think(text: str) -> str:
    """Think."""
    return weather.name


def set_wifi(on: bool) -> bool:
    """Really set the wifi."""
    DONE.append(on)
    return on


def talk(agent, one, toolkit=None):
    given = {**SCENARIO["user"], "script": [{"end": True}]}
    return create_conversation(agent, toolkit, scenario=one, user=given).invoke({}, {"recursion_limit": 100})


MODEL_SAYS = ({"call": "weather", "args": {"city": "Rome"}}, ANSWER)
EXISTING = create_agent(scripted(*MODEL_SAYS), [weather])


def node(tools):
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "tools")
    return graph.compile()


class Loop:
    """A loop of somebody's own, which remembers a tool in a field."""

    def __init__(self, *tools):
        self.tools = tools

    def __call__(self, values):
        return AIMessage(str([each.invoke({"city": "Rome"}) for each in self.tools if each.name == "weather"]))


BEFORE = {
    "ignores": lambda tools: EXISTING,
    "within a graph": lambda tools: create_agent(scripted(ANSWER), [think]) | RunnableLambda(EXISTING.invoke),
    "a node": lambda tools: node([weather, *tools[:1]]),
    "a closure": lambda tools: RunnableLambda(lambda values: AIMessage(weather.invoke({"city": "Rome"}))),
    "a field": lambda tools: RunnableLambda(Loop(weather)),
    "a function": lambda tools: RunnableLambda(lambda values: AIMessage(str(set_wifi(True)))),
}


@pytest.mark.parametrize("build", BEFORE.values(), ids=BEFORE)
def test_an_agent_that_ignores_its_tools_never_runs(build):
    toolkit = Toolkit.from_tools([set_wifi, weather]).with_contracts(
        {"contracts": {"set_wifi": CONTRACTS["contracts"]["set_wifi"]}}
    )
    with pytest.raises(LeftWorld, match=r"weather|set_wifi"):
        talk(build, Scenario.from_dict(copy.deepcopy(SCENARIO) | {"milestones": [], "minefields": []}), toolkit)
    assert DONE == []


@pytest.mark.parametrize("build", [lambda: EXISTING, lambda *, tools: EXISTING, lambda tools, model: EXISTING])
def test_a_function_that_takes_no_tools_is_refused_where_it_is_given(scenario, build):
    with pytest.raises(GeckoError, match="cannot be called with a list of tools"):
        create_conversation(build, scenario=scenario())


def by_hand(given, **answer):
    """A loop that calls a model, and answers its calls itself."""

    def run(values):
        call = {"name": "weather", "args": {"city": "Rome"}, "id": "1", "type": "tool_call"}
        shown = ToolMessage(given(call), tool_call_id="1", **answer)
        return {"messages": [*values["messages"], AIMessage("", tool_calls=[call]), shown, AIMessage("Sunny.")]}

    return RunnableLambda(run)


class Direct(AgentMiddleware):
    """Runs the real tool where the agent has the given one."""

    async def awrap_tool_call(self, request, handler):
        return ToolMessage(weather.invoke({"city": "Rome"}), tool_call_id=request.tool_call["id"])


AFTER = {
    "answered by hand": lambda tools: by_hand(lambda call: "snow"),
    "middleware": lambda tools: create_agent(scripted(*MODEL_SAYS), tools, middleware=[Direct()]),
    "and fails": lambda tools: RunnableLambda(lambda values: weather.invoke({"city": "Rome"}) / len(tools)),
}


@pytest.mark.parametrize("build", AFTER.values(), ids=AFTER)
def test_what_is_seen_only_afterwards_stops_the_test(scenario, build):
    with pytest.raises(LeftWorld, match="weather"):
        talk(build, scenario())


class Guard(AgentMiddleware):
    """Refuses one call."""

    async def awrap_tool_call(self, request, handler):
        if request.tool_call["name"] == "note":
            return ToolMessage("not allowed", tool_call_id=request.tool_call["id"])
        return await handler(request)


def wrap(one):
    def run(**args):
        return one.invoke(args)

    return StructuredTool(name=one.name, description=one.name, args_schema=one.args_schema, func=run)


NOTE = {"call": "note", "args": {"text": "x"}}
SAYS = (WIFI, WEATHER, ANSWER)
STAYS = {
    "wrapped": lambda tools: create_agent(scripted(*SAYS), list(map(wrap, tools))),
    "its own tool beside them": lambda tools: create_agent(
        scripted({"call": "think", "args": {"text": "x"}}, *SAYS), [*tools, think]
    ),
    "by hand, with the tool": lambda tools: (
        RunnableLambda(
            lambda values: [each.invoke({"on": True}) for each in tools if each.name == "set_wifi"] and values
        )
        | by_hand(lambda call: next(each for each in tools if each.name == "weather").invoke(call["args"]))
    ),
    "by hand, refused": lambda tools: by_hand(lambda call: tools and "no", status="error"),
    "guarded": lambda tools: create_agent(scripted(NOTE, *SAYS), tools, middleware=[Guard()]),
}


@pytest.mark.parametrize("build", STAYS.values(), ids=STAYS)
def test_an_agent_that_stays_is_left_alone(scenario, build):
    assert talk(build, scenario())["score"]["end"] == "ended"


def test_what_middleware_answers_is_named_and_not_blamed(scenario):
    output = talk(STAYS["guarded"], scenario())
    score = output["score"]
    assert [each["similarity"] for each in score["minefields"]] == [0.0], "what was not let through was not done"
    assert (score["similarity"], score["calls"]) == (1.0, 2)
    answer = next(each for each in output["messages"] if isinstance(each, ToolMessage))
    assert (answer.text, read_envelope(answer)["sender"]) == ("not allowed", "agent")
    assert [each["sender"] for each in describe_messages(output["messages"], output["world"])][:4] == [
        "user", "agent", "agent", "agent",
    ]  # fmt: skip


MINE = """
from langchain.agents import create_agent
from langchain_core.tools import tool
from gecko_graph.testing import scripted

@tool
def note(text: str) -> str:
    "Really note."
    open("REAL.txt", "a").write(text)

graph = create_agent(scripted({"call": "note", "args": {"text": "milk"}}, {"say": "Noted."}), [note])

def build(tools):
    return graph
"""


def test_the_command_stops_at_the_first(folder, capsys):
    (folder / "mine.py").write_text(MINE, encoding="utf-8")
    assert main(["test", "cases", "--agent", "mine:build"]) == 2
    shown = capsys.readouterr()
    assert "def build(tools)" in shown.err
    assert not (folder / "REAL.txt").exists()
