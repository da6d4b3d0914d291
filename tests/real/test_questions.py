"""What the agent needs of LangGraph's inside: where a task stands, its raised question, its answer, and its spending.

These tests fail where LangGraph changes a name or a meaning that `real/questions.py` rests on.
"""

from __future__ import annotations

import operator
import sqlite3
from typing import Annotated, Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.config import get_config
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

from gecko_graph.real import questions
from gecko_graph.real.questions import Standing, find_path, find_raised, raise_question, spend, take_answer

THREAD: Any = {"configurable": {"thread_id": "t"}}


class Log(TypedDict):
    log: Annotated[list, operator.add]


def ask(question: str, seen: list | None = None) -> Any:
    """Ask as `ask_person` does: the answer counts for a question that this task has raised before."""
    known = get_config()["configurable"]
    standing = Standing.of(known)
    if find_raised(standing) == question:
        answer, addressed = take_answer(known)
        if answer is not None:
            spend(standing)
            (seen if seen is not None else []).append(addressed)
            return answer
    raise raise_question(question, known)


def graph_of(seen: list, depth: int, saver: Any) -> Any:
    """Return a graph with two questions, in as many graphs around it."""
    builder = StateGraph(Log)
    builder.add_node("one", lambda state: {"log": [["one", ask("one", seen)]]})
    builder.add_node("two", lambda state: {"log": [["two", ask("two", seen)]]})
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    for number in range(depth):
        inner = builder.compile()
        builder = StateGraph(Log)
        builder.add_node(f"depth{number}", inner)
        builder.add_edge(START, f"depth{number}")
    return builder.compile(checkpointer=saver)


def saver_of(kind: str) -> Any:
    return InMemorySaver() if kind == "memory" else SqliteSaver(sqlite3.connect(":memory:", check_same_thread=False))


@pytest.mark.parametrize(("kind", "depth"), [("memory", 0), ("sqlite", 1), ("memory", 2), ("sqlite", 2)])
def test_an_answer_is_spent_at_every_parent_and_answers_no_second_question(kind, depth):
    graph = graph_of(seen := [], depth, saver_of(kind))

    def asked(given: Any) -> list:
        return [each.value for each in graph.invoke(given, THREAD).get("__interrupt__", ())]

    assert asked({"log": []}) == ["one"]
    assert asked(None) == ["one"]
    assert asked(Command(resume="yes")) == ["two"]
    assert asked(None) == asked(None) == ["two"]
    assert asked(Command(resume="no")) == []
    assert graph.get_state(THREAD).values["log"] == [["one", "yes"], ["two", "no"]]
    assert seen == [False, False]


@pytest.mark.parametrize("depth", [0, 2])
def test_an_answer_by_interrupt_id_is_known_as_such_and_an_old_id_answers_nothing(depth):
    graph = graph_of(seen := [], depth, InMemorySaver())
    (one,) = graph.invoke({"log": []}, THREAD)["__interrupt__"]
    (two,) = graph.invoke(Command(resume={one.id: "yes"}), THREAD)["__interrupt__"]
    assert (one.value, two.value, one.id == two.id) == ("one", "two", False)
    (again,) = graph.invoke(Command(resume={one.id: "yes"}), THREAD)["__interrupt__"]
    assert again.value == "two"
    graph.invoke(Command(resume={two.id: "no"}), THREAD)
    assert seen == [True, True]


def test_a_tools_own_interrupt_behind_a_question_is_not_given_its_answer():
    def node(state: Log) -> Log:
        return {"log": [ask("ours", []), interrupt("the tool's")]}

    builder = StateGraph(Log)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile(checkpointer=InMemorySaver())
    (ours,) = graph.invoke({"log": []}, THREAD)["__interrupt__"]
    (tools,) = graph.invoke(Command(resume={ours.id: "yes"}), THREAD)["__interrupt__"]
    assert tools.value == "the tool's"


def seen_paths(build: Any, *inputs: Any) -> list[list[str]]:
    """Return the paths that the inner node has, run by run; each run begins at the thread's start."""
    found: list[str] = []

    def node(state: MessagesState) -> dict:
        found.append(find_path(Standing.of(get_config()["configurable"])))
        return {}

    builder = StateGraph(MessagesState)
    builder.add_node("inner", node)
    builder.add_edge(START, "inner")
    graph, runs = build(builder.compile()), []
    for given in inputs:
        graph.invoke(given, THREAD)
        runs.append(sorted(found))
        found.clear()
    return runs


SENT = {"messages": [HumanMessage("pay", id="m1")]}


def test_a_path_is_the_same_when_a_message_is_sent_again_and_siblings_differ():
    def build(child: Any) -> Any:
        middle = StateGraph(MessagesState)
        middle.add_node("agent", child)
        middle.add_edge(START, "agent")
        parent = StateGraph(MessagesState)
        parent.add_node("team", middle.compile())
        parent.add_conditional_edges(START, lambda state: [Send("team", state)] * 3, ["team"])
        return parent.compile(checkpointer=InMemorySaver())

    first, again = seen_paths(build, SENT, SENT)
    assert first == again == ["team#0|agent", "team#1|agent", "team#2|agent"]


def test_a_path_within_a_node_a_repeated_run_and_a_task():
    def in_node(child: Any) -> Any:
        parent = StateGraph(MessagesState)
        parent.add_node("tools", lambda state: [child.invoke(state), child.invoke(state)][0])
        parent.add_edge(START, "tools")
        return parent.compile(checkpointer=InMemorySaver())

    def in_task(child: Any) -> Any:
        @task
        def order(state: Any) -> Any:
            return child.invoke(state)

        @entrypoint(checkpointer=InMemorySaver())
        def flow(state: Any) -> Any:
            return order(state).result()

        return flow

    assert seen_paths(in_node, SENT, SENT) == [["tools", "tools"]] * 2
    assert seen_paths(in_task, SENT, SENT) == [["flow|order"]] * 2


def test_outside_of_a_graph_and_without_a_saver_there_is_no_standing():
    assert Standing.of({}) is None
    assert Standing.of({"thread_id": "t", "checkpoint_ns": "node:1"}) is None
    assert questions.NULL_TASK_ID == "00000000-0000-0000-0000-000000000000"
