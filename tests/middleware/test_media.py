"""Images that an agent's real tools return: the model sees them, state and journal hold a reference."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import Tool, Toolkit
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.testing import scripted
from tests.tools.test_media import IMAGE, NOWHERE, REFERENCE

SAID = [{"call": "snap", "args": {"room": "hall"}}, {"say": "A hall."}]


@tool
def snap(room: str) -> list:
    """Take a photo."""
    return [{"type": "text", "text": room}, IMAGE]


@pytest.mark.parametrize("mode", ["guard", "shadow", "hybrid", "simulate"])
@pytest.mark.parametrize("own", [True, False], ids=["the agent's tools", "the toolkit's tools"])
def test_the_model_sees_the_image_and_the_state_a_reference(mode, own):
    toolkit = Toolkit.from_tools([Tool(snap, effect="read", contract={"returns": {"pass": True}})])
    toolkit = toolkit.open("snap") if mode == "simulate" else toolkit
    tools: list[Any] = [snap] if own else toolkit.as_tools()
    middleware = [GeckoMiddleware(toolkit, mode=mode, state={"rooms": ["hall"]})]
    agent = create_agent(scripted(*SAID), tools, middleware=middleware, checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    out = agent.invoke({"messages": [("user", "Show me the hall")]}, thread)
    (told,) = [message for message in out["messages"] if isinstance(message, ToolMessage)]
    assert IMAGE in told.content
    assert REFERENCE in out["gecko"]["log"][-1]["outcome"]["result"]
    kept = {key: value for key, value in agent.get_state(thread).values.items() if key != "messages"}
    assert NOWHERE not in json.dumps(kept, default=str)
