"""Replies that were paid for: asked once, told apart by item and place, booked once."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from gecko_graph.models.answer import aanswer, answer
from gecko_graph.models.ask import PlannerAsk, QuestionId
from gecko_graph.models.cache import forget_replies, of_item
from gecko_graph.models.factory import Models
from gecko_graph.models.recorded import RecordedModel


class Counting(RecordedModel):
    """Says how many questions it was asked."""

    asked: list

    def _reply(self, *given):
        self.asked.append(1)
        return self._counted(AIMessage(f"reply {len(self.asked)}"), input_tokens=7, output_tokens=2)


def ask(models, *, attempt=1, uncached=False):
    (reply,) = answer([PlannerAsk([HumanMessage("Hi")], [], QuestionId(0, attempt, 0), uncached=uncached)], models)
    return reply.value.text, reply.usage["input_tokens"]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "replies"


async def test_what_was_paid_for_is_not_asked_or_booked_again(file):
    first, second = (Models(Counting(asked=[])).caching(file) for _ in range(2))
    assert ask(first) == ("reply 1", 7)
    assert ask(second) == ("reply 1", 0)
    (reply,) = await aanswer([PlannerAsk([HumanMessage("Hi")], [], QuestionId(0, 1, 0))], second)
    assert (reply.value.text, reply.usage["calls"]) == ("reply 1", 0)
    assert second.get("planner").asked == []
    forget_replies(file)
    assert list(file.parent.iterdir()) == []


def test_samples_attempts_and_items_have_replies_of_their_own(file):
    models = Models(Counting(asked=[])).caching(file)
    assert [ask(models, attempt=at, uncached=True)[0] for at in (1, 2, 1, 2)] == ["reply 1", "reply 2"] * 2
    with of_item("a"):
        assert ask(models)[0] == "reply 3"
        with of_item("b"):
            assert ask(models)[0] == "reply 4"
    with of_item("a"):
        assert ask(models)[0] == "reply 3"
    assert models.caching(file.with_name("other")) is models
