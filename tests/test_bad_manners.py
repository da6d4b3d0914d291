"""Tools and models that behave badly: each ends in a recorded step and a verdict, and no state is half changed."""

from __future__ import annotations

import datetime
import time

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.tool import tool_call
from pydantic import BaseModel

from gecko_graph import GeckoContext, Models, create_gecko
from tests import desk
from tests.middleware.bank import Chat


class Receipt(BaseModel):
    paper: str
    at: datetime.datetime


def leaves(state):
    raise SystemExit(1)


def raises(state):
    raise type("Odd", (Exception,), {"__str__": 1})


def deep(levels):
    return [deep(levels - 1)] if levels else []


def spoil(state, value):
    state["trays"]["letters"] = value


NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)

TOOLS = {
    "exits": (leaves, "python", "error"),
    "recurses": (lambda state: deep(10**6), "python", "error"),
    "raises what cannot be told": (raises, "python", "error"),
    "returns a model with a date": (lambda state: Receipt(paper="bill", at=NOON), "python", "ok"),
    "returns five megabytes": (lambda state: "x" * 5_000_000, "python", "ok"),
    "returns no number": (lambda state: float("nan"), "schema", "ok"),
    "returns half a character": (lambda state: "\ud800", "schema", "ok"),
    "returns what is no JSON": (lambda state: object(), "schema", "ok"),
    "returns what is too deep": (lambda state: deep(500), "schema", "ok"),
    "spoils the state": (lambda state: spoil(state, {1, 2}), "schema", "ok"),
    "puts the state into itself": (lambda state: spoil(state, state), "schema", "ok"),
    "hangs": (lambda state: time.sleep(1), "schema", "ok"),
}


@pytest.mark.parametrize("manners", TOOLS)
async def test_a_tool_of_bad_manners_is_a_recorded_step(manners):
    function, rung, status = TOOLS[manners]
    gecko = desk.gecko(
        [{"call": "look"}, *desk.RIGHT],
        tools=desk.toolkit(look=function),
        context=GeckoContext(max_retries=0, tool_timeout_s=0.1),
    )
    is_async = [*TOOLS].index(manners) % 2
    run = await gecko.ainvoke(desk.inputs()) if is_async else gecko.invoke(desk.inputs())
    (attempt,) = run["rehearsal"]["attempts"]
    first = attempt["steps"][0]["outcome"]
    assert (first["rung"], first["status"]) == (rung, status)
    assert first["patch"] == []
    assert attempt["verdict"]["status"] == "accepted"
    assert run["task_state"]["trays"] == {"letters": ["from mum"], "bills": ["invoice"]}


def rehearse(*messages, given=None, **context):
    context = GeckoContext(**{"max_retries": 0, **context})
    gecko = create_gecko(desk.toolkit(), model=Models(planner=Chat(messages=iter(messages))), context=context)
    return gecko.invoke(given or desk.inputs())["rehearsal"]["attempts"][0]


def call(name, identifier, /, **args):
    return tool_call(name=name, args=args, id=identifier)


def test_fifty_calls_in_one_message():
    many = [call("put", "same", tray="letters", paper=str(number)) for number in range(50)]
    attempt = rehearse(AIMessage("", tool_calls=many), AIMessage("Done."), max_steps=20)
    assert len(attempt["steps"]) == 20
    assert len({step["call"]["id"] for step in attempt["steps"]}) == 20
    assert attempt["stop_reason"] == "max_steps: 20 calls were made, 30 more of one message were not"
    assert (attempt["stop"]["code"], attempt["answer"]) == ("max_steps", "Done.")


@pytest.mark.parametrize(
    "said", [AIMessage(""), AIMessage([]), AIMessage("x" * 2_000_000), RuntimeError("no connection")]
)
def test_a_planner_that_says_nothing_of_use(said):
    attempt = rehearse(said)
    assert attempt["steps"] == []
    assert attempt["verdict"]["status"] == "failed"
    assert attempt["stop_reason"] != "answered"
