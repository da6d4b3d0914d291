"""The recorded model: the same words for the same place, however often, in whatever order, by whatever path."""

from __future__ import annotations

from typing import Annotated

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from gecko_graph import Models
from gecko_graph.models.ask import QuestionId
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.testing import recorded

TURNS = [
    {
        "planner": [
            [{"call": "mkdir", "args": {"name": "temp"}}, {"say": "Done."}],
            [{"calls": [{"call": "cd", "args": {"folder": "a"}}, {"call": "ls"}]}, {"say": "Done again."}],
        ],
        "validator": [{"problems": []}, {"problems": [{"argument": "name", "problem": "odd"}]}],
        "judge": [{"items": [], "feedback": "first"}, {"items": [], "feedback": "second"}],
    },
    {"planner": [[{"say": "Turn two."}]]},
]


@pytest.fixture
def models():
    return Models(RecordedModel(turns=TURNS))


async def test_the_planner_has_one_list_an_attempt(models, plan_for, answer_all):
    asks = [plan_for(attempt=a, question=q, turn=t) for t, a, q in [(0, 1, 0), (0, 1, 1), (0, 2, 0), (1, 1, 0)]]
    first, said, both, turn_two = [reply.value for reply in await answer_all(asks, models)]
    assert [(call["name"], call["args"]) for call in first.tool_calls] == [("mkdir", {"name": "temp"})]
    assert said.text == "Done."
    assert [(call["name"], call["args"]) for call in both.tool_calls] == [("cd", {"folder": "a"}), ("ls", {})]
    assert len({call["id"] for message in (first, both) for call in message.tool_calls}) == 3
    assert turn_two.text == "Turn two."


async def test_the_judge_has_one_reply_an_attempt_and_other_roles_one_a_question(models, ask_for, answer_all):
    asked = [("judge", (0, 1, 0)), ("judge", (0, 2, 0)), ("validator", (0, 2, 1))]
    one, two, odd = await answer_all([ask_for(role, where=QuestionId(*at)) for role, at in asked], models)
    assert (one.value.feedback, two.value.feedback) == ("first", "second")
    assert odd.value.problems[0].argument == "name"


@pytest.mark.parametrize(("role", "where", "words"), [
    ("planner", QuestionId(0, 1, 2), "the planner's reply 3 in attempt 1 of turn 1: only 2 replies"),
    ("planner", QuestionId(0, 3, 0), "the planner's attempt 3 of turn 1: only 2 replies"),
    ("planner", QuestionId(2, 1, 0), "nothing recorded for turn 3: only 2 replies"),
    ("simulator", QuestionId(0, 1, 0), "the simulator's question 1 of turn 1: only 0 replies"),
])  # fmt: skip
async def test_what_is_not_recorded_is_a_clear_failure(models, ask_for, plan_for, answer_all, role, where, words):
    asked = plan_for(turn=where.turn, attempt=where.attempt, question=where.question)
    (reply,) = await answer_all([asked if role == "planner" else ask_for(role, where=where)], models)
    assert reply.failure == f"nothing recorded for {words}" or reply.failure == words


async def test_arguments_written_as_text_are_what_a_model_wrote_instead_of_json(plan_for, answer_all):
    (reply,) = await answer_all([plan_for()], Models(recorded(planner=[[{"tool": "mkdir"}]])))
    assert reply.failure == "expected a planner's recorded reply with 'call', 'calls' or 'say', got {'tool': 'mkdir'}"
    (reply,) = await answer_all([plan_for()], Models(recorded(planner=[[{"call": "mkdir", "args": '{"name": '}]])))
    assert reply.value.tool_calls == []
    assert reply.value.invalid_tool_calls[0]["args"] == '{"name": '


async def test_prompt_tokens_are_counted_by_characters_with_the_tools(plan_for, answer_all):
    models = Models(RecordedModel(turns=TURNS))
    (bare,) = await answer_all([plan_for(tools=[], messages=[HumanMessage("x" * 400)])], models)
    assert bare.usage["input_tokens"] == 100
    (with_tools,) = await answer_all([plan_for(messages=[HumanMessage("x" * 400)])], models)
    assert with_tools.usage["input_tokens"] > 130


def test_it_serves_a_plain_agent_by_its_place_in_the_conversation():
    @tool
    def mkdir(name: str) -> str:
        """Make a folder."""
        return f"made {name}"

    class Chat(TypedDict):
        messages: Annotated[list, add_messages]

    model = RecordedModel(turns=TURNS).bind_tools([mkdir])
    asked = [HumanMessage("make temp")]
    first = model.invoke(asked)
    assert first.tool_calls[0]["name"] == "mkdir"
    asked += [first, ToolMessage("made temp", tool_call_id=first.tool_calls[0]["id"])]
    second = model.invoke(asked)
    assert second.text == "Done."
    assert model.invoke([*asked, second, HumanMessage("and now?")]).text == "Turn two."
