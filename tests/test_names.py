"""Every graph takes a name: what traces call it, and the node that it is in another graph."""

from __future__ import annotations

import pytest

from gecko_graph import Models, Tool, Toolkit, create_conversation, create_gecko, create_gecko_agent, create_toolgate
from gecko_graph.errors import TaskError
from gecko_graph.testing import recorded


def pay(amount: float) -> str:
    """Pay an amount."""
    return "paid"


def graphs():
    tools = Toolkit.from_tools([Tool(pay, effect="write")])
    models = dict.fromkeys(("planner", "reasoner"), recorded(planner=[[{"say": "Hello."}]]))
    yield create_gecko(tools, model=Models(**models), name="rehearse")
    yield create_gecko_agent(tools, model=Models(**models), name="act")
    yield create_toolgate(tools, model=Models(**models), name="gates")
    yield create_conversation(models["planner"], tools, user=["Hello"], name="talk")


def test_every_graph_takes_a_name():
    assert [graph.get_name() for graph in graphs()] == ["rehearse", "act", "gates", "talk"]


@pytest.mark.parametrize("graph", [*graphs()], ids=lambda graph: graph.get_name())
async def test_a_misspelt_input_key_is_refused_at_the_root(graph):
    given = {"messages": [("user", "hello")], "task_stat": {}}
    with pytest.raises(TaskError, match=r"'task_stat'.*task_state"):
        graph.invoke(given)
    with pytest.raises(TaskError, match=r"'task_stat'.*task_state"):
        await graph.ainvoke(given)
