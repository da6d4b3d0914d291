"""A service that is too busy is called again within the turn, as by the agent; afterwards the model may do so."""

from __future__ import annotations

import email.utils
import time
from itertools import product
from typing import Any

import pytest

pytest.importorskip("langchain")

import httpx
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import Tool, Toolkit
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.models.failure import read_retry_after, retry_after_of_error
from gecko_graph.real import claims
from tests.middleware.bank import calls, chat

pytestmark = pytest.mark.filterwarnings("ignore:guard")  # its tools have no contract
THREAD: Any = {"configurable": {"thread_id": "1"}}
SENT = httpx.Request("POST", "http://bank.invalid/pay")


@pytest.fixture
def short_pauses():
    """Here pauses are as long as a user's, and nobody sleeps."""


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """The seconds that were waited, without waiting."""
    waited: list[float] = []
    monkeypatch.setattr(claims.time, "sleep", lambda seconds: waited.append(seconds) if seconds >= 0.1 else None)
    return waited


class Service:
    """Answers with a status so many times, then does it."""

    def __init__(self, status: int, times: int, headers: dict | None = None) -> None:
        self.status, self.times, self.headers, self.asked = status, times, headers or {}, 0

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        if self.asked <= self.times:
            return httpx.Response(self.status, json={"message": "no"}, headers=self.headers, request=request)
        return httpx.Response(200, json={"number": self.asked}, request=request)

    def http(self, effect: str) -> tuple[Toolkit, list]:
        parameters = [{"name": "to", "in": "query", "schema": {"type": "string"}}]
        content = {"application/json": {"schema": {"type": "object"}}}
        answers = {"200": {"description": "Done.", "content": content}}
        operation = {"operationId": "pay", "parameters": parameters, "responses": answers}
        paths = {"/pay": {"get" if effect == "read" else "post": operation}}
        document = {"openapi": "3.1.0", "info": {"title": "Bank", "version": "1"}, "paths": paths}
        client = httpx.Client(transport=httpx.MockTransport(self.answer))
        kit = Toolkit.from_openapi(document, server="http://bank.invalid", client=client)
        return kit, kit.as_tools()

    def python(self, effect: Any) -> tuple[Toolkit, list]:
        def pay(to: str) -> dict:
            """Pay."""
            return self.answer(SENT).raise_for_status().json()

        kit = Toolkit.from_tools([Tool(pay, effect=effect)])
        return kit, kit.as_tools()

    def langchain(self, effect: Any) -> tuple[Toolkit, list]:
        kit, _ = self.python(effect)

        @tool
        def pay(to: str) -> dict:
            """Pay."""
            return self.answer(SENT).raise_for_status().json()

        return kit, [pay]


def agent_of(made: tuple[Toolkit, list], saver: Any, *, mode: str = "guard", times: int = 1) -> Any:
    said = [calls(("call_0", "pay", {"to": "ann"})) for _ in range(times)]
    gecko = GeckoMiddleware(made[0], mode=mode, state={}, interrupt_on="none")
    return create_agent(chat(*said, AIMessage("Over.")), tools=made[1], middleware=[gecko], checkpointer=saver)


def task(identifier: str = "m1") -> dict:
    return {"messages": [HumanMessage("Pay ann", id=identifier)]}


def statuses(out: Any) -> list[str]:
    return [each.status for each in out["messages"] if isinstance(each, ToolMessage)]


KINDS = [("write", 429, InMemorySaver), ("read", 429, None), ("read", 503, InMemorySaver)]


@pytest.mark.parametrize(("kind", "mode"), [*product(["http", "python", "langchain"], ["guard", "shadow", "preview"])])
@pytest.mark.parametrize(("effect", "status", "saver"), KINDS)
def test_a_busy_service_is_called_again(run, waits, kind, mode, effect, status, saver):
    service = Service(status, times=2)
    out = run(agent_of(getattr(service, kind)(effect), saver and saver(), mode=mode), task(), THREAD if saver else None)
    assert statuses(out) == ["success"]
    assert service.asked == 3
    assert waits == [0.2, 0.4]


@pytest.mark.parametrize("kind", ["http", "python", "langchain"])
@pytest.mark.parametrize("form", ["seconds", "date"])
def test_it_waits_as_long_as_it_is_told(waits, kind, form):
    at = email.utils.formatdate(time.time() + 9, usegmt=True)
    service = Service(429, times=1, headers={"Retry-After": "8" if form == "seconds" else at})
    assert statuses(agent_of(getattr(service, kind)("write"), InMemorySaver()).invoke(task(), THREAD)) == ["success"]
    (waited,) = waits
    assert 7 < waited < 9.1


@pytest.mark.parametrize("kind", ["http", "python", "langchain"])
@pytest.mark.parametrize("mode", ["guard", "preview", "shadow"])
def test_when_the_tries_are_used_up_the_model_may_call_it_again(kind, mode):
    service = Service(429, times=claims.MOST_TRIES)
    out = agent_of(getattr(service, kind)("write"), InMemorySaver(), mode=mode, times=2).invoke(task(), THREAD)
    assert statuses(out) == ["error", "success"]
    assert service.asked == claims.MOST_TRIES + 1
    assert [each.get("undecided", False) for each in out["gecko_journal"]] == [True, False]


def test_when_the_message_is_delivered_again_it_is_called_again():
    service, saver = Service(429, times=claims.MOST_TRIES), InMemorySaver()
    for expected in (["error"], ["error", "success"], ["error", "success", "success"]):
        assert statuses(agent_of(service.http("write"), saver).invoke(task(), THREAD)) == expected
    assert service.asked == claims.MOST_TRIES + 1


@pytest.mark.parametrize("kind", ["http", "python"])
def test_a_write_that_may_have_been_done_is_in_doubt(kind):
    service = Service(503, times=1)
    out = agent_of(getattr(service, kind)("write"), InMemorySaver()).invoke(task(), THREAD)
    assert "not known whether it took effect" in out["__interrupt__"][0].value["action_requests"][0]["description"]
    assert service.asked == 1


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_refusal_stays_one(status):
    service = Service(status, times=1)
    out = agent_of(service.http("write"), InMemorySaver(), times=2).invoke(task(), THREAD)
    assert statuses(out) == ["error", "error"]
    assert service.asked == 1


def test_retry_after_is_seconds_or_a_date():
    assert read_retry_after("3") == 3
    assert read_retry_after(email.utils.formatdate(time.time() - 9, usegmt=True)) == 0
    assert 50 < (read_retry_after(email.utils.formatdate(time.time() + 60)) or 0) <= 60
    assert [read_retry_after(each) for each in (None, "", "soon", "-1", "9" * 10)] == [None] * 5
    assert retry_after_of_error(ValueError()) == 0
