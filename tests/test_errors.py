"""What a user's mistake is to those who catch it, and what it says."""

from __future__ import annotations

import pytest

from gecko_graph import GeckoContext, GeckoError, Toolkit, World, create_gecko
from gecko_graph.errors import ContractError, ModelError, RunFailure, ScenarioError, StateError, TaskError, ToolkitError


def test_a_mistake_is_a_value_error_whose_message_a_langgraph_server_passes_on():
    for kind in (GeckoError, ToolkitError, ContractError, ScenarioError, StateError, TaskError, ModelError):
        assert issubclass(kind, ValueError), kind
        assert not issubclass(kind, RunFailure), kind


@pytest.mark.parametrize("wrong", [{"rungs": 5}, {"model": 5}, {"rungs": ["cache"]}])
def test_a_wrong_argument_is_a_mistake_that_says_what_was_expected(wrong):
    toolkit = Toolkit.from_tools([{"name": "note", "parameters": {"type": "object", "properties": {}}}])
    for create in (create_gecko, World):
        with pytest.raises(GeckoError, match="expected"):
            create(toolkit, **wrong)


@pytest.mark.parametrize(
    ("knobs", "parts"),
    [
        ({"max_retry": 1}, ("'max_retry'", "did you mean max_retries?")),
        ({"max_retries": -1}, ("max_retries", "greater than or equal to 0", "-1")),
        ({"seed": "x", "max_steps": 0}, ("seed", "integer", "max_steps")),
    ],
)
def test_a_mistake_in_a_knob_is_told_with_the_knob_what_it_takes_and_what_was_given(knobs, parts):
    with pytest.raises(GeckoError) as caught:
        GeckoContext(**knobs)
    assert [part for part in parts if part not in str(caught.value)] == []
