"""A repair shows the model what it wrote, within bounds and as something that every provider takes."""

from __future__ import annotations

import json

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from pydantic import PrivateAttr

from gecko_graph.models.factory import Models

FINE = '{"problems": []}'


class Mending(BaseChatModel):
    """Says what it is given, then what is right; keeps what it was told."""

    said: object
    own_parser: bool = False
    _heard: list = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self):
        return "mending"

    def bind_tools(self, tools, **kwargs):
        return self

    def with_structured_output(self, schema, **kwargs):
        return RunnableLambda(lambda messages: self._next(messages)) if self.own_parser else self

    def _next(self, messages):
        self._heard.append(messages)
        return self.said if len(self._heard) == 1 else AIMessage(FINE)

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])


def call(**args):
    return {"name": "SemanticVerdict", "args": args, "id": "1", "type": "tool_call"}


BROKEN = {"name": "SemanticVerdict", "args": '{"problems": [', "id": "1", "error": None, "type": "invalid_tool_call"}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (AIMessage('{"problems": 3}'), '{"problems": 3}'),
        (AIMessage("", tool_calls=[call(problems=3)]), '{"problems": 3}'),
        (AIMessage("", invalid_tool_calls=[BROKEN]), '{"problems": ['),
        (AIMessage("", tool_calls=[call(problems=3), call(problems=4)]), '{"problems": 3}\n{"problems": 4}'),
        (AIMessage("half \ud800"), "half ?"),
        (AIMessage(""), "(nothing)"),
        (AIMessage([{"type": "text", "text": "well"}]), "well"),
    ],
)
async def test_what_the_model_wrote_stands_in_the_repair(ask_for, answer_all, said, shown):
    model = Mending(said=said)
    (reply,) = await answer_all([ask_for("validator")], Models.bind(model))
    assert reply.failure is None
    first, again = model._heard
    assert [message.type for message in again] == ["system", "human", "ai", "human"]
    assert again[1] == first[1]
    assert again[2].text == shown
    assert "cannot be used" in again[3].text


async def test_what_a_parser_of_the_model_s_own_made_of_it_stands_there_too(ask_for, answer_all):
    model = Mending(said={"problems": 3}, own_parser=True)
    await answer_all([ask_for("validator")], Models.bind(model))
    assert json.loads(model._heard[1][2].text) == {"problems": 3}


async def test_a_long_reply_is_shown_by_its_ends(ask_for, answer_all):
    model = Mending(said=AIMessage('{"problems": "' + "x" * 90_000 + '", "end": 1}'))
    await answer_all([ask_for("validator")], Models.bind(model))
    shown = model._heard[1][2].text
    assert len(shown) <= 4_000
    assert shown.startswith('{"problems": "x')
    assert shown.endswith('x", "end": 1}')


async def test_two_answers_are_repaired(ask_for, answer_all):
    twice = AIMessage("", tool_calls=[call(problems=[]), call(problems=[{"argument": "a", "problem": "b"}])])
    model = Mending(said=twice)
    (reply,) = await answer_all([ask_for("validator")], Models.bind(model))
    assert reply.value.problems == []
    assert "2 different answers" in model._heard[1][3].text
