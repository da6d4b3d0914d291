"""checklist: the caller's, checked, else the model's; one that nobody writes is a failure with its reason."""

from __future__ import annotations

from functools import partial

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from gecko_graph import GeckoContext, GeckoError
from gecko_graph.models.ask import Reply
from gecko_graph.nodes.checklist import checklist
from gecko_graph.testing import drive
from tests import desk


def write(state, *replies, **context):
    return drive(partial(checklist, toolkit=desk.toolkit()), state, replies, context=GeckoContext(**context))


def test_the_caller_s_checklist_is_taken_without_a_question(turn):
    driven = write(turn(checklist=desk.CHECKLIST))
    assert driven.update == {"items": desk.CHECKLIST, "items_failure": ""}
    assert driven.asks == []


def test_bare_texts_and_missing_ids_are_filled_in(turn):
    given = ["it is filed", {"description": "and told"}, {"check": "state.trays"}, {"id": "x", "description": "last"}]
    assert write(turn(checklist=given)).update["items"] == [
        {"id": "item-1", "description": "it is filed"},
        {"id": "item-2", "description": "and told"},
        {"id": "item-3", "description": "state.trays", "check": "state.trays"},
        {"id": "x", "description": "last"},
    ]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("the file exists", "checklist is a str: give a list"),
        ({"description": "d"}, "checklist is a dict: give a list"),
        ([{}], "checklist item 1: give it a description"),
        (["fine", "  "], "checklist item 2: give it a description"),
        ([7], "checklist item 1: give it a description"),
        ([{"id": "a", "description": "x"}, {"id": "a", "description": "y"}], "the same id"),
        (["x", {"id": "item-1", "description": "y"}], "the same id"),
        (
            ["x", {"description": "y", "chek": "state.a"}],
            "checklist item 2: 'chek' is no key of an item; keys: id, desc",
        ),
        ([{"description": "x", "check": True}], "item-1: its check is a bool"),
        ([{"description": "x", "check": "1 +"}], "checklist item item-1"),
        ([{"description": "x", "check": "nosuch > 1"}], "unknown name 'nosuch'"),
        ([{"description": "x", "check": "state.__class__"}], "item-1"),
    ],
)
def test_a_wrong_checklist_is_a_user_s_mistake(turn, given, says):
    with pytest.raises(GeckoError, match=says):
        write(turn(checklist=given))


@pytest.mark.parametrize("given", [{}, {"checklist": []}, {"checklist": None}])
def test_without_one_the_model_writes_it(turn, given):
    messages = [HumanMessage("what is in bills?"), AIMessage("An invoice."), HumanMessage("add a receipt")]
    driven = write(turn(messages=messages, **given), {"items": [{"description": " filed "}, {"description": "told"}]})
    assert driven.update["items"] == [
        {"id": "item-1", "description": "filed"},
        {"id": "item-2", "description": "told"},
    ]
    assert driven.update["items_failure"] == ""
    (ask,) = driven.asks
    assert ask.variables["task"] == "add a receipt"
    assert ask.variables["conversation"] == "user: what is in bills?\nassistant: An invoice."
    assert ask.where.turn == 1


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (Reply(None, "the server is down"), "there is no checklist: the server is down"),
        ({"items": [{"description": "  "}]}, "there is no checklist: the model wrote an empty one"),
    ],
)
def test_a_checklist_that_nobody_writes_is_a_failure_with_its_reason(turn, reply, failure):
    assert write(turn(), reply).update == {"items": [], "items_failure": failure}


def test_a_model_s_checklist_is_bounded(turn):
    reply = {"items": [{"description": f"{n} " + "x" * 5_000} for n in range(500)]}
    items = write(turn(), reply).update["items"]
    assert len(items) == 40
    assert max(len(item["description"]) for item in items) <= 1_000


def test_no_part_of_the_prompt_is_unbounded(turn):
    messages = [HumanMessage("x" * 50_000), AIMessage("y" * 50_000), HumanMessage("t" * 500_000)]
    (ask,) = write(turn(messages=messages), {"items": [{"description": "d"}]}, view_chars=4_000).asks
    assert {name: len(text) <= 4_000 for name, text in ask.variables.items()} == dict.fromkeys(ask.variables, True)
