"""Fakes of this room: a ChatOpenAI over a local transport, and asks that are easy to write."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx
import pytest
from langchain_core.messages import HumanMessage

from gecko_graph.models.ask import Ask, PlannerAsk, QuestionId
from gecko_graph.models.prompts import variables_of
from gecko_graph.models.roles import REPLIES

USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
MODEL = "gpt-5-mini-2025-08-07"


class Server:
    """What an OpenAI-compatible server does, in process. `behave(body)` returns a message dict or an httpx.Response."""

    def __init__(self, behave: Callable[[dict], dict | httpx.Response]):
        self.behave = behave
        self.bodies: list[dict] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.bodies.append(body)
        said = self.behave(body)
        if isinstance(said, httpx.Response):
            return said
        return stream(said) if body.get("stream") else whole(said)

    def chat(self, **options):
        from langchain_openai import ChatOpenAI

        transport = httpx.MockTransport(self)
        return ChatOpenAI(
            model="gpt-5-mini",
            api_key="unused",
            max_retries=0,
            stream_usage=True,
            http_client=httpx.Client(transport=transport),
            http_async_client=httpx.AsyncClient(transport=transport),
            **options,
        )


def whole(message: dict) -> httpx.Response:
    finish = message.pop("finish", "stop")
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": finish}
    head = {"id": "r", "object": "chat.completion", "created": 1, "model": MODEL}
    return httpx.Response(200, json={**head, "choices": [choice], "usage": USAGE})


def stream(message: dict) -> httpx.Response:
    head = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    text = message.get("content") or ""
    calls = [{"index": number, **call} for number, call in enumerate(message.get("tool_calls", []))]
    deltas = [{"role": "assistant", "content": ""}, *({"content": text[i : i + 6]} for i in range(0, len(text), 6))]
    deltas += [{"tool_calls": [call]} for call in calls]
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    chunks.append({**head, "choices": [], "usage": USAGE})
    lines = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=f"{lines}data: [DONE]\n\n")


@pytest.fixture
def server():
    return Server


@pytest.fixture
def ask_for():
    """`ask_for(role, "text")`: an ask of the role with every variable set to that text."""

    def make(role, text="x", *, reply=None, where=None):
        variables = dict.fromkeys(variables_of(role), text)
        return Ask(role, variables, reply or REPLIES[role][0], where or QuestionId(attempt=1))

    return make


TOOLS = [
    {"type": "function",
     "function": {"name": "mkdir", "description": "Make a folder",
                  "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}},
]  # fmt: skip


@pytest.fixture
def plan_for():
    """`plan_for(attempt=1)`: an ask of the planner with one tool."""

    def make(*, tools=TOOLS, messages=None, **where):
        return PlannerAsk(messages or [HumanMessage("file it")], tools, QuestionId(**{"attempt": 1, **where}))

    return make


@pytest.fixture(params=["sync", "async"])
def answer_all(request):
    """`await answer_all(asks, models)`: the same test over `answer` and over `aanswer`."""
    from gecko_graph.models.answer import aanswer, answer

    async def run(asks, models, config=None):
        if request.param == "sync":
            return answer(asks, models, config)
        return await aanswer(asks, models, config)

    return run
