"""Answers of people and programs: whatever they are, they are read or refused with why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph import Toolkit
from gecko_graph.real.decisions import (
    DECISIONS,
    DOUBT_DECISIONS,
    build_request,
    build_schema,
    read_decisions,
    read_words,
    restore_kinds,
)
from gecko_graph.real.preview import fence


def order(item: str, quantity: int) -> str:
    """Order an item."""
    return item


TOOLS = Toolkit.from_tools([order], effects={"order": "write"})
CALL = {"id": "c1", "name": "order", "args": {"item": "pen", "quantity": 3}}
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(DECISIONS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
actions = st.fixed_dictionaries({"name": st.just("order") | st.text(max_size=5), "args": values}) | values
decisions = st.fixed_dictionaries(
    {"type": st.sampled_from(DECISIONS) | values}, optional={"message": values, "edited_action": actions}
)


@given(values | st.fixed_dictionaries({"decisions": st.lists(decisions | values, max_size=3) | values}))
def test_any_answer_is_read_or_refused_with_why(answer):
    read, problem = read_decisions(answer, [CALL], TOOLS)
    assert bool(problem) != (len(read) == 1)
    if read and read[0]["type"] == "edit":
        assert read[0]["edited_action"]["name"] == "order"


@pytest.mark.parametrize(
    ("text", "words"), [("[1]", [1]), ('{"a": 1}', {"a": 1}), ("12", "12"), ("{", "{"), ('"a"', '"a"'), ("", "")]
)
def test_words_that_spell_an_object_or_list_are_one(text, words):
    assert read_words(text) == words


def test_what_a_form_has_made_texts_of_is_what_it_was():
    old = {"n": 3, "x": 1.5, "b": True, "l": [1], "t": "12", "z": None}
    new = {"n": "4", "x": "2.5", "b": "false", "l": "[2]", "t": "13", "z": "7", "more": "8"}
    assert restore_kinds(new, old) == {"n": 4, "x": 2.5, "b": False, "l": [2], "t": "13", "z": 7, "more": "8"}
    assert restore_kinds({"n": "many", "l": "x"}, old) == {"n": "many", "l": "x"}


def test_two_calls_of_one_tool_share_a_configuration():
    request = build_request([CALL, {**CALL, "id": "c2"}], ["a", "b"], DECISIONS)
    assert [each["description"] for each in request["action_requests"]] == ["a", "b"]
    assert request["review_configs"] == [{"action_name": "order", "allowed_decisions": [*DECISIONS]}]


def test_the_schema_of_an_answer_to_a_doubt_has_its_own_words():
    schema = build_schema("q1", 1, DOUBT_DECISIONS)
    assert schema["$defs"]["Decision"]["properties"]["type"]["enum"] == ["happened", "make_now", "skip"]
    assert schema["required"] == ["decisions"]


def test_a_decision_that_is_not_allowed_is_refused():
    _, problem = read_decisions({"decisions": [{"type": "edit"}]}, [CALL], TOOLS, ("approve", "reject"))
    assert "expected a `type` of approve, reject" in problem


@given(st.text(alphabet="`a\n", max_size=20))
def test_nothing_in_a_text_ends_its_fence(text):
    first, *lines, last = fence(text).split("\n")
    assert first == last
    assert not any(line.startswith(first) for line in lines)
