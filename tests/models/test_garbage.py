"""Nothing that a model says, or raises, makes a run raise; and what is kept of it can be written as UTF-8."""

from __future__ import annotations

import json
import warnings
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from gecko_graph import GeckoContext, Models, create_gecko
from gecko_graph.models import conversation as planner_message
from gecko_graph.models.answer import answer
from gecko_graph.models.ask import PlannerAsk, QuestionId
from gecko_graph.models.conversation import sanitize_message
from gecko_graph.models.failure import failure_of, is_refusal
from gecko_graph.models.reply import raw_text
from gecko_graph.models.usage import count, tokens_of
from tests import desk

text = st.sampled_from(["", "put", "bills", "\ud800", "x\udfffy", "</think>", '{"items": [', "\x00", "a" * 300])
odd = st.sampled_from(
    [None, 3, -1, 2**64, 1e400, float("nan"), b"\xff", object(), [], {}, {"a": "\ud800"}, ["\udc00"], (1, 2)]
)
value = st.recursive(text | odd, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3))
usage = st.none() | st.dictionaries(st.sampled_from(["input_tokens", "output_tokens", "total_tokens"]), odd | text)
call = st.fixed_dictionaries(
    {}, optional={"name": text | odd, "args": value, "id": text | odd, "type": text, "error": text | odd}
)


@st.composite
def garbage(draw):
    """A message with parts that no client should make; some of it is orderly."""
    parts = {
        "content": text | st.lists(text | odd | st.fixed_dictionaries({"type": text, "text": text | odd}), max_size=3),
        "tool_calls": st.lists(call, max_size=3),
        "invalid_tool_calls": st.lists(call, max_size=2),
        "usage_metadata": usage,
        "additional_kwargs": st.dictionaries(text, value, max_size=2) | st.just({"refusal": "no \ud800"}),
        "response_metadata": st.none() | st.dictionaries(st.just("model_name"), value),
        "id": text | odd,
        "name": text | odd,
    }
    chosen = draw(st.sets(st.sampled_from(sorted(parts)), min_size=1))
    return AIMessage("hello").model_copy(update={key: draw(parts[key]) for key in sorted(chosen)})


class Mute(Exception):
    """An error that cannot even say what it is."""

    def __str__(self):
        raise RuntimeError("nor this")

    @property
    def status_code(self):
        return [400]


class Saying(BaseChatModel):
    """A model that says whatever it was given, as a client that checks nothing would hand it on."""

    said: object

    @property
    def _llm_type(self):
        return "saying"

    def bind_tools(self, tools, **kwargs):
        return self

    def with_structured_output(self, schema, **kwargs):
        raise NotImplementedError

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        if isinstance(self.said, Exception):
            raise self.said
        return ChatResult.model_construct(generations=[ChatGeneration.model_construct(message=self.said, text="")])


def run(said):
    gecko = create_gecko(desk.toolkit(), model=Saying(said=said), checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "garbage"}}
    made = gecko.invoke(desk.inputs(), thread, context=GeckoContext(max_retries=0, max_steps=3))
    assert gecko.get_state(thread).values["rehearsal"] == made["rehearsal"]
    json.dumps(made["rehearsal"], ensure_ascii=False, allow_nan=False).encode("utf-8")
    return made["rehearsal"]


@example(AIMessage("", additional_kwargs={"refusal": "no \ud800"}))
@given(said=garbage())
@settings(max_examples=20, deadline=None)
def test_no_message_makes_a_run_raise(said):
    assert run(said)["verdict"]["status"] == "failed"


def test_no_error_makes_a_run_raise():
    assert "Mute" in run(Mute())["attempts"][0]["stop_reason"]


@given(said=garbage())
@settings(max_examples=100, deadline=None)
def test_a_mended_message_stays_as_it_is_and_can_be_written(said):
    kept = sanitize_message(said)
    assert sanitize_message(kept) is kept
    with mock.patch.object(planner_message, "_is_storable", return_value=False):
        assert sanitize_message(said) == kept  # the quick look finds no other faults than the thorough one
    told = {"content": kept.content, "calls": kept.tool_calls, "broken": kept.invalid_tool_calls, "id": kept.id}
    json.dumps(told, ensure_ascii=False, default=str).encode("utf-8")
    with warnings.catch_warnings(action="ignore"):  # pydantic's, of odd counts of tokens
        assert JsonPlusSerializer().dumps_typed(kept)
    assert isinstance(kept.id, str | None)
    assert (1, 2) not in [value for part in kept.tool_calls for value in part["args"].values()]
    assert all(isinstance(part["name"], str) for part in (*kept.tool_calls, *kept.invalid_tool_calls))
    assert all(isinstance(part["args"], dict) for part in kept.tool_calls)


@given(told=usage)
def test_usage_is_counted_where_it_is_a_count(told):
    counted = count(AIMessage("x").model_copy(update={"usage_metadata": told}))
    assert 0 <= counted["input_tokens"] <= 10**9
    assert (counted["cost"] is None) or counted["input_tokens"] == 0


def test_an_error_that_cannot_be_read_is_named():
    assert failure_of(Mute()) == "Mute"
    assert not is_refusal(Mute())
    assert tokens_of(Mute()) == (0, 0)
    assert failure_of(ValueError("half \ud800")) == "ValueError: half ?"


@pytest.mark.parametrize("error", [RuntimeError("odd"), KeyError("text")])
def test_what_no_rule_foresees_is_a_failure(error):
    class Odd(AIMessage):
        @property
        def text(self):
            raise error

    (reply,) = answer([PlannerAsk([HumanMessage("x")], [], QuestionId())], Models(Saying(said=Odd("x"))))
    assert type(error).__name__ in reply.failure


ODD = {"city": "東京都", "half": "\ud800", "break": "a\u2028b"}


def test_what_a_model_wrote_is_shown_to_it_in_its_own_letters():
    broken = sanitize_message(AIMessage("", tool_calls=[{"name": "look", "args": ODD, "id": "c"}])).invalid_tool_calls
    as_call = AIMessage.model_construct(tool_calls=[{"args": ODD}], invalid_tool_calls=[], content="")
    for text in (raw_text(ODD), raw_text(as_call), broken[0]["args"]):
        assert "東京都" in text
        assert len(text.splitlines()) == 1
        assert json.loads(text.encode()) == ODD
