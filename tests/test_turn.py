"""What one turn is about, and what it may cost."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import ValidationError

from gecko_graph import GeckoContext
from gecko_graph.errors import TaskError
from gecko_graph.turn import earlier, human_turns, next_turn, task_of

TALK = [SystemMessage("s"), HumanMessage("first"), AIMessage("a"), HumanMessage(" second "), AIMessage("b")]


def test_the_task_is_the_last_human_turn():
    assert task_of(TALK) == "second"
    assert [message.text for message in earlier(TALK)] == ["s", "first", "a"]
    assert human_turns(TALK) == 2


def test_a_task_may_be_made_of_blocks():
    blocks = [{"type": "text", "text": "see "}, {"type": "image", "url": "https://example.org"}, "and do"]
    assert task_of([HumanMessage(blocks)]) == "see and do"


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


def test_every_run_opens_a_turn():
    assert next_turn({}) == 1
    assert next_turn({"ledger": {"turn": 4, "usage": {}, "asked": {}}}) == 5


def test_a_knob_that_was_renamed_is_still_taken_by_its_old_name():
    assert GeckoContext(**{"calls": "strict"}).parallel_calls == "strict"
    assert GeckoContext.model_validate({"calls": "snapshot", "max_retries": 1}).parallel_calls == "snapshot"
    with pytest.raises(ValidationError):
        GeckoContext(**{"calls": "strict", "parallel_calls": "serial"})
