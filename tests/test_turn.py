"""What one turn is about, and what it may cost."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from gecko_graph import GeckoError
from gecko_graph.errors import TaskError
from gecko_graph.world.turn import earlier, human_turns, read_checklist, task_of

TALK = [SystemMessage("s"), HumanMessage("first"), AIMessage("a"), HumanMessage(" second "), AIMessage("b")]


def test_the_task_is_the_last_human_turn():
    assert task_of(TALK) == "second"
    assert [message.text for message in earlier(TALK)] == ["s", "first", "a"]
    assert human_turns(TALK) == 2


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [SystemMessage("s")],
        [AIMessage("x"), ToolMessage("y", tool_call_id="1")],
        [HumanMessage("x"), HumanMessage("")],
        [HumanMessage([{"type": "image", "url": "https://example.org"}])],
    ],
)
def test_without_a_task_there_is_nothing_to_do(messages):
    with pytest.raises(TaskError):
        task_of(messages)
    assert earlier([]) == []


def test_bare_texts_and_missing_ids_are_filled_in():
    given = ["it is filed", {"description": "and told"}, {"check": "state.trays"}, {"id": "x", "description": "last"}]
    assert read_checklist(given) == [
        {"id": "item-1", "description": "it is filed"},
        {"id": "item-2", "description": "and told"},
        {"id": "item-3", "description": "state.trays", "check": "state.trays"},
        {"id": "x", "description": "last"},
    ]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("the file exists", "checklist: expected a list of items.*, got str"),
        ({"description": "d"}, "checklist: expected a list of items.*, got dict"),
        ([{}], "checklist item 1: give it a description"),
        (["fine", "  "], "checklist item 2: give it a description"),
        ([{"id": "a", "description": "x"}, {"id": "a", "description": "y"}], "the same id"),
        (["x", {"description": "y", "chek": "state.a"}], "checklist item 2: unknown key 'chek'; keys: id, desc"),
        ([{"description": "x", "check": True}], "item 1: expected an expression as check, got bool"),
        ([{"description": "x", "check": "nosuch > 1"}], "unknown name 'nosuch'"),
        ([{"description": "x", "check": "state.__class__"}], "item-1"),
    ],
)
def test_a_wrong_checklist_is_a_user_s_mistake(given, says):
    with pytest.raises(GeckoError, match=says):
        read_checklist(given)
