"""checklist: the model's; one that nobody writes is a failure with its reason."""

from __future__ import annotations

from functools import partial

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from gecko_graph import GeckoContext
from gecko_graph.models.ask import Reply
from gecko_graph.nodes.checklist import HOW, checklist
from gecko_graph.testing import drive
from tests import desk


def write(state, *replies, **context):
    opened = {**state, "items": None}
    return drive(partial(checklist, toolkit=desk.toolkit()), opened, replies, context=GeckoContext(**context))


def test_the_model_writes_it(turn):
    messages = [HumanMessage("what is in bills?"), AIMessage("An invoice."), HumanMessage("add a receipt")]
    driven = write(turn(messages=messages), {"items": [{"description": " filed "}, {"description": "told"}]})
    assert driven.update["items"] == [
        {"id": "item-1", "description": "filed", "by": "model"},
        {"id": "item-2", "description": "told", "by": "model"},
    ]
    assert driven.update["bookkeeping"]["items_failure"] == ""
    (ask,) = driven.asks
    assert ask.variables["task"] == "add a receipt"
    assert ask.variables["conversation"] == "user: what is in bills?\nassistant: An invoice."
    assert ask.where.turn == 1


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (Reply(None, "the server is down"), "no checklist: the server is down"),
        (ValueError("unreadable"), "no checklist: unreadable"),
        (Reply(None, "no model", absent=True), f"no checklist: no model{HOW}"),
    ],
)
def test_a_checklist_that_nobody_writes_is_a_failure_with_its_reason(turn, reply, failure):
    assert write(turn(), reply).update == {"items": [], "bookkeeping": {"items_failure": failure}}


@pytest.mark.parametrize("reply", [{"items": []}, {"items": [{"description": "  "}]}])
def test_a_task_that_asks_for_nothing_has_an_empty_checklist(turn, reply):
    driven = write(turn(messages=[HumanMessage("thanks!")]), reply)
    assert driven.update == {"items": [], "bookkeeping": {"items_failure": ""}}
    (event,) = driven.events
    assert (event["type"], event["attempt"], event["items"]) == ("gecko.checklist", 0, [])


def test_a_model_s_checklist_is_bounded(turn):
    reply = {"items": [{"description": f"{n} " + "x" * 5_000} for n in range(500)]}
    items = write(turn(), reply).update["items"]
    assert len(items) == 40
    assert max(len(item["description"]) for item in items) <= 1_000
