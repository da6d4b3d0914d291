"""Forward execution through the true client: structured replies, and one tool bound for its arguments."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from gecko_graph import Models, create_toolgate
from tests import shop
from tests.models.conftest import Server


def behave(body):
    text = json.dumps(body["messages"])
    if "Rank tools" in text:
        return {"content": json.dumps({"tools": [{"name": "sell", "score": 9}, {"name": "gift", "score": 1}]})}
    if "one step at a time" in text:
        done = "Done so far" in text
        return {"content": json.dumps({"answer": "Sold."} if done else {"need": "Sell a pen for 2."})}
    (tool,) = body["tools"]
    assert tool["function"]["name"] == "sell"
    tried = any(message["role"] == "tool" for message in body["messages"])
    args = {"item": "pen", "price": 2 if tried else "two"}
    call = {"id": f"c{len(body['messages'])}", "type": "function"}
    return {"tool_calls": [{**call, "function": {"name": "sell", "arguments": json.dumps(args)}}]}


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_a_request_through_the_openai_client(mode):
    server = Server(behave)
    models = dict.fromkeys(("reasoner", "reranker", "planner"), server.chat())
    toolgate = create_toolgate(shop.toolkit(), model=Models(**models))
    given = {"messages": [("user", "Sell a pen for 2")], "task_state": shop.start()}
    out = await toolgate.ainvoke(given) if mode == "async" else toolgate.invoke(given)
    record = out["record"]
    assert (record["status"], record["answer"]) == ("answered", "Sold.")
    assert record["rejected"] == {"schema": 1}
    assert out["task_state"]["till"] == 2
    assert {role: used["calls"] for role, used in record["usage"].items()} == {
        "reasoner": 2, "reranker": 1, "planner": 2,
    }  # fmt: skip
    for body in server.bodies:
        roles = [message["role"] for message in body["messages"]]
        assert roles.count("system") == 1
        assert not [pair for pair in pairwise(roles) if pair == ("user", "user")]
