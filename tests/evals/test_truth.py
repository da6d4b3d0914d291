"""The suite `truth`: its parts on recorded turns, and how questions are read back."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from evals.truth.judging import MOST_QUESTIONS
from evals.truth.questions import _known_by, _read_messages, read_questions, replaced


def test_of_the_recorded_questions_few_are_left(read_jsonl):
    questions = list(read_questions(read_jsonl("live_replies_3.jsonl.gz")))
    assert len(questions) == 64
    assert sum(bool(each.ask()) for each in questions) <= MOST_QUESTIONS


def test_a_recorded_conversation_is_read_as_the_planner_had_it():
    messages = [
        {"role": "system", "content": "Today is 1 May 2026.\n\nCarry out the user's latest request with your tools."},
        {"role": "user", "content": "Find a room."},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "content": '["R1"]', "tool_call_id": "a"},
        {"role": "user", "content": "Book it.\n\n(A note, not from the user.) R9"},
        {"role": "tool", "content": '{"error": "no"}', "tool_call_id": "b"},
    ]
    known = _read_messages(messages, "Book it.")
    assert [type(each) for each in known["conversation"]] == [SystemMessage, HumanMessage, ToolMessage, HumanMessage]
    assert [each.text for each in known["conversation"]][::3] == ["Today is 1 May 2026.", "Book it."]
    assert [step["outcome"]["status"] for step in known["steps"]] == ["error"]


def test_where_the_planner_is_not_kept_the_question_itself_is_read():
    said = "user: Hi\n    there\nassistant: Yes?\ntool: 3"
    text = f"<task-00>\nGo.\n</task-00>\n<conversation-0a>\n{said}\n</conversation-0a>"
    known = _known_by(text, ['1. look({}) -> ok: {"n": 1}', "2. look({}) -> error: no"])
    assert [type(each) for each in known["conversation"]] == [HumanMessage, AIMessage, ToolMessage, HumanMessage]
    assert [step["outcome"]["result"] for step in known["steps"]] == [{"n": 1}]


def test_a_twin_is_another_value():
    assert replaced({"a": [1, {"b": 2}]}, "/a/1/b", 3) == {"a": [1, {"b": 3}]}
    with pytest.raises(AssertionError, match="equals the value"):
        replaced({"a": 1}, "/a", 1)
