"""`langgraph dev` opens the graph, shows GeckoContext as its form, and runs a scenario over its API."""

from __future__ import annotations

import importlib

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph import GeckoError
from gecko_graph.scenario import shipped
from tests.studio import ROOT, ask, inputs


@pytest.fixture
def created(monkeypatch):
    """`created(GECKO_MODEL="...")`: the graph for this environment; `name` of another function that creates one."""

    def make(name="create_studio", **environment):
        function = name
        for name in ("TOOLS", "MODEL", "BASE_URL", "SCENARIO", "SERVER"):
            monkeypatch.delenv(f"GECKO_{name}", raising=False)
        studio = importlib.import_module("gecko_graph.studio")  # makes its own graph, of no environment
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return getattr(studio, function)()

    return make


def test_who_types_any_message_sees_the_scenario_from_its_own_state(created):
    run = created().invoke({"messages": [("user", "show me")], "task_state": {}})
    assert [attempt["verdict"]["status"] for attempt in run["rehearsal"]["attempts"]] == ["failed", "accepted"]
    assert run["task_state"] != shipped("files").state


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"GECKO_TOOLS": "x.yaml"}, "GECKO_MODEL is not"),
        ({"GECKO_TOOLS": "x.yaml", "GECKO_MODEL": "openai:x"}, "x.yaml"),
        ({"GECKO_SCENARIO": "none.yaml"}, "none.yaml"),
        ({"GECKO_MODEL": "nonsense"}, "write 'provider:name'"),
    ],
)
def test_a_wrong_environment_is_a_mistake(created, environment, says):
    with pytest.raises(GeckoError, match=says):
        created(**environment)


@pytest.mark.parametrize(
    ("graph", "nodes"),
    [
        ("gecko", {"bootstrapper", "attempt:planner", "judge", "finish"}),
        ("agent", {"rehearse:attempt:planner", "review", "call_tool", "sync", "answer"}),
        ("toolgate", {"bootstrapper", "attempt:reasoner", "attempt:reranker", "attempt:accept", "conclude"}),
    ],
)
def test_the_graphs_are_drawn_with_their_attempts_and_form(studio, graph, nodes):
    (assistant,) = ask(f"{studio}/assistants/search", {"graph_id": graph})
    drawn = ask(f"{studio}/assistants/{assistant['assistant_id']}/graph?xray=true")
    assert nodes <= {node["id"] for node in drawn["nodes"]}
    schemas = ask(f"{studio}/assistants/{assistant['assistant_id']}/schemas")
    assert "max_retries" in schemas["context_schema"]["properties"]
    given = {"messages", "task_state", *([] if graph == "toolgate" else ["checklist"])}
    assert set(schemas["input_schema"]["properties"]) == given


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_the_agent_pauses_with_its_preview_and_goes_on_over_the_api(studio, durability):
    thread = ask(f"{studio}/threads", {})["thread_id"]
    wait = f"{studio}/threads/{thread}/runs/wait"
    body = {"assistant_id": "agent", "durability": durability}
    run = ask(wait, {**body, "input": {"messages": [{"role": "user", "content": "go on"}]}})
    (paused,) = run["__interrupt__"]
    assert [action["name"] for action in paused["value"]["action_requests"]] == [
        "placeOrder",
        "placeOrder",
        "refundOrder",
    ]
    state = ask(f"{studio}/threads/{thread}/state")
    assert state["next"] == ["review"]
    assert [planned["effect"] for planned in state["values"]["preview"]["calls"]] == ["read"] * 2 + ["write"] * 3
    run = ask(wait, {**body, "command": {"resume": {"decisions": [{"type": "approve"}] * 3}}})
    if durability == "exit":
        assert "durability" in run["__error__"]["message"]
        return
    assert "execution" in run, run
    assert run["execution"]["status"] == "done"
    assert run["execution"]["calls"][4]["call"]["args"]["order_id"] == "A-1001"
    assert run["task_state"]["balance"] == 89.8


def test_forward_execution_runs_over_the_api(studio):
    thread = ask(f"{studio}/threads", {})["thread_id"]
    body = {"assistant_id": "toolgate", "input": {"messages": [{"role": "user", "content": "go on"}]}}
    ask(f"{studio}/threads/{thread}/runs/stream", body)
    run = ask(f"{studio}/threads/{thread}/state")["values"]
    assert [call["name"] for call in run["record"]["plan"]] == ["cd", "mkdir", "mv", "ls"]


def test_a_thread_stops_before_a_round_and_is_forked_there(studio):
    thread = ask(f"{studio}/threads", {})["thread_id"]
    body = {"assistant_id": "gecko", "input": inputs(), "interrupt_before": ["start_round"]}
    ask(f"{studio}/threads/{thread}/runs/wait", body)
    assert ask(f"{studio}/threads/{thread}/state")["next"] == ["start_round"]
    body = {"assistant_id": "gecko", "input": None}
    first = ask(f"{studio}/threads/{thread}/runs/wait", body)["rehearsal"]
    history = ask(f"{studio}/threads/{thread}/history", {"limit": 50})
    starts = [snapshot for snapshot in history if snapshot["next"] == ["start_round"]]
    assert len(starts) == len(first["attempts"]) == 2, "the snapshot before each round has a next"
    for snapshot, again in zip(reversed(starts), (2, 2), strict=True):
        place = {"checkpoint": snapshot["checkpoint"], "as_node": "bootstrapper"}
        kept = {"task_state": snapshot["values"]["task_state"]}
        fork = ask(f"{studio}/threads/{thread}/state", {"values": kept, **place})
        run = ask(f"{studio}/threads/{thread}/runs/wait", {**body, "checkpoint": fork["checkpoint"]})
        assert len(run["rehearsal"]["attempts"]) == again


def test_a_mistake_comes_back_over_the_api_in_its_own_words(studio):
    thread = ask(f"{studio}/threads", {})["thread_id"]
    body = {"assistant_id": "gecko", "input": {**inputs(), "messages": [{"role": "user", "content": " "}]}}
    answered = ask(f"{studio}/threads/{thread}/runs/wait", body)
    assert "the task is empty" in answered["__error__"]["message"]


def test_each_thread_of_the_agent_begins_with_the_first_books(created):
    agent = created("create_studio_agent")
    agent.checkpointer = InMemorySaver()
    for name in ("a", "b"):
        thread = {"configurable": {"thread_id": name}}
        agent.invoke({"messages": [("user", "go on")]}, thread)
        run = agent.invoke(Command(resume={"decisions": [{"type": "approve"}] * 3}), thread)
        assert "execution" in run, run
        assert run["execution"]["status"] == "done"
        assert not any(call["drift"] for call in run["execution"]["calls"])
        with pytest.raises(GeckoError, match="at most 1 turn"):
            agent.invoke({"messages": [("user", "and now?")]}, thread)


def test_the_agent_takes_tools_with_an_address_of_their_own(created):
    tools = {
        "OPENAI_API_KEY": "x",
        "GECKO_TOOLS": str(ROOT / "examples" / "order" / "order.openapi.yaml"),
        "GECKO_MODEL": "openai:gpt-5-mini",
    }
    with pytest.raises(GeckoError, match="GECKO_SERVER"):
        created("create_studio_agent", **tools)
    agent = created("create_studio_agent", GECKO_SERVER="http://127.0.0.1:9", **tools)
    assert "call_tool" in agent.get_graph().nodes


def test_a_message_beyond_the_recorded_turns_says_what_to_do(created):
    gecko = created()
    gecko.checkpointer = InMemorySaver()
    thread = {"configurable": {"thread_id": "t"}}
    gecko.invoke({"messages": [("user", "show me")]}, thread)
    with pytest.raises(GeckoError, match=r"at most 1 turn .*got turn 2: open a new thread"):
        gecko.invoke({"messages": [("user", "and now?")]}, thread)
