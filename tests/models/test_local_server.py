"""End to end over a socket: an OpenAI-compatible server on this machine, a model by name, a graph of asking nodes."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from gecko_graph.context import GeckoContext
from gecko_graph.models import factory
from gecko_graph.models.answer import answer
from gecko_graph.models.ask import Ask, PlannerAsk, Where
from gecko_graph.models.factory import Models
from gecko_graph.models.node import as_node
from gecko_graph.models.roles import Judgement
from gecko_graph.models.usage import add_usage

USAGE = {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}


def reply_to(body):
    """A small model of its own: calls mkdir, then answers; as judge it speaks prose around its JSON."""
    system = body["messages"][0]["content"]
    if "You judge" in system:
        status = "success" if "-> ok" in body["messages"][1]["content"] else "failed"
        verdict = {"items": [{"id": "made", "status": status}], "ask_user": False, "feedback": ""}
        return {"content": f"My verdict:\n```json\n{json.dumps(verdict)}\n```"}
    if any(message["role"] == "tool" for message in body["messages"]):
        return {"content": "The folder is there."}
    function = {"name": "mkdir", "arguments": '{"name": "temp"}'}
    return {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, self.headers["Authorization"], body))
        if "response_format" in body or body.get("tool_choice") not in (None, "auto"):
            return self.send(400, {"error": {"message": "this server knows no structured output"}})
        choice = {"index": 0, "message": {"role": "assistant", **reply_to(body)}, "finish_reason": "stop"}
        head = {"id": "r", "object": "chat.completion", "created": 1, "model": "local-model"}
        return self.send(200, {**head, "choices": [choice], "usage": USAGE})

    def send(self, status, body):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@pytest.fixture
def address():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.seen = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server, f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()
        thread.join()


class S(TypedDict, total=False):
    messages: Annotated[list, add_messages]
    usage: Annotated[dict, add_usage]
    asked: dict
    verdict: str


MKDIR = {"type": "function", "function": {"name": "mkdir", "description": "Make", "parameters": {"type": "object"}}}


def planner(state, scope):
    (reply,) = yield [PlannerAsk(state["messages"], [MKDIR], Where(attempt=1))]
    results = [ToolMessage("made", tool_call_id=call["id"]) for call in reply.value.tool_calls]
    return {"messages": [reply.value, *results]}


def judge(state, scope):
    texts = dict.fromkeys(("items", "task", "tools", "conversation", "policy", "answer", "change", "state"), "x")
    ask = Ask("judge", {**texts, "steps": "1. mkdir -> ok: made"}, Judgement, Where(attempt=1))
    (reply,) = yield [ask]
    return {"verdict": reply.value.items[0].status}


def build(models):
    builder = StateGraph(S)
    builder.add_node("planner", as_node(planner, models=models, default=GeckoContext()))
    builder.add_node("judge", as_node(judge, models=models, default=GeckoContext()))
    builder.add_edge(START, "planner")
    builder.add_conditional_edges(
        "planner", lambda state: "judge" if state["messages"][-1].type == "ai" else "planner", ["planner", "judge"]
    )
    builder.add_edge("judge", END)
    return builder.compile()


async def test_a_model_by_name_over_a_socket(address):
    server, url = address
    graph = build(Models.bind("openai:local-model", base_url=url))
    for done in (
        graph.invoke({"messages": [("user", "make temp")]}),
        await graph.ainvoke({"messages": [("user", "again")]}),
    ):
        assert done["messages"][-1].text == "The folder is there."
        assert done["verdict"] == "success"
        assert done["usage"]["planner"] == {"calls": 2, "input_tokens": 100, "output_tokens": 10, "cost": None}
        assert done["usage"]["judge"]["input_tokens"] == 50
    paths = {path for path, _, _ in server.seen}
    assert paths == {"/v1/chat/completions"}
    assert {key for _, key, _ in server.seen} == {"Bearer none"}
    assert len(server.seen) == 2 + 3 + 2 + 1  # the judge's first ask finds the way, the second knows it
    assert server.seen[0][2]["temperature"] == 0


def test_a_server_that_is_not_there_is_a_failure(monkeypatch):
    monkeypatch.setattr(factory, "MAX_RETRIES", 0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        (reply,) = answer([PlannerAsk([HumanMessage("hi")], [], Where())], Models.bind("openai:local", base_url=url))
    assert reply.value is None
    assert "onnection" in reply.failure
