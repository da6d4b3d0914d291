"""A conversation that goes on in its thread, and one whose tools fail."""

from __future__ import annotations

import threading

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import Tool, Toolkit, create_conversation
from gecko_graph.testing import scripted

END = {"end": True}


def toolkit(**simulate) -> Toolkit:
    tools = [{"name": name, "description": name, "parameters": {"type": "object"}} for name in simulate]
    return Toolkit.from_tools(tools).declare(
        *(Tool(name, effect="write", simulate=function) for name, function in simulate.items())
    )


def count(state: dict) -> int:
    state["count"] = state.get("count", 0) + 1
    return state["count"]


def test_the_next_run_of_a_thread_goes_on_in_the_world_that_the_last_one_left():
    pytest.importorskip("scipy")
    call, saver, thread = {"call": "count", "args": {}}, InMemorySaver(), {"configurable": {"thread_id": "1"}}
    for number in (1, 2):
        lines, agent = ["Count", "Again"][:number], scripted(*[call, {"say": "Counted."}] * number)
        graph = create_conversation(agent, toolkit(count=count), user=[*lines, END], checkpointer=saver)
        out = graph.invoke({"task_state": {}} if number == 1 else {}, thread)
        assert out["world"]["state"]["count"] == number
        assert len(out["world"]["log"]) == number


def test_a_tool_that_never_answers_ends_the_conversation():
    done = threading.Event()
    graph = create_conversation(
        scripted({"call": "hang", "args": {}}, {"say": "Done."}),
        toolkit(hang=lambda state: done.wait(30)),
        user=["Go", END],
        timeout_s=0.1,
    )
    out = graph.invoke({"task_state": {}})
    done.set()
    assert out["score"]["end"] == "tools_failed"
    assert "the tools failed" in out["score"]["reason"]
    assert "0.1" in out["score"]["reason"]
    assert out["world"]["log"] == []
