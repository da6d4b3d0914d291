"""Every graph takes a name: what traces call it, and the node that it is in another graph."""

from __future__ import annotations

from gecko_graph import Toolkit, create_conversation, create_gecko, create_gecko_agent, create_toolgate
from gecko_graph.testing import recorded


def pay(amount: float) -> str:
    """Pay an amount."""
    return "paid"


def test_every_graph_takes_a_name():
    tools = Toolkit.from_tools([pay], effects={"pay": "write"})
    models = dict.fromkeys(("planner", "reasoner"), recorded(planner=[[{"say": "Hello."}]]))
    assert create_gecko(tools, models=models, name="rehearse").get_name() == "rehearse"
    assert create_gecko_agent(tools, models=models, name="act").get_name() == "act"
    assert create_toolgate(tools, models=models, name="gates").get_name() == "gates"
    assert create_conversation(models["planner"], tools, user=["Hello"], name="talk").get_name() == "talk"
