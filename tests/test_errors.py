"""What a user's mistake is to those who catch it."""

from __future__ import annotations

import pytest

from gecko_graph import GeckoError, Toolkit, World, create_gecko
from gecko_graph.errors import ContractError, ModelError, RunFailure, ScenarioError, StateError, TaskError, ToolkitError


@pytest.mark.parametrize(
    "kind", [GeckoError, ToolkitError, ContractError, ScenarioError, StateError, TaskError, ModelError]
)
def test_a_mistake_is_a_value_error_whose_message_a_langgraph_server_passes_on(kind):
    assert issubclass(kind, ValueError)
    assert not issubclass(kind, RunFailure)


@pytest.mark.parametrize("wrong", [{"rungs": 5}, {"model": 5}, {"rungs": ["cache"]}])
def test_a_wrong_argument_is_a_mistake_that_says_what_was_expected(wrong):
    toolkit = Toolkit.from_tools([{"name": "note", "parameters": {"type": "object", "properties": {}}}])
    for create in (create_gecko, World):
        with pytest.raises(GeckoError, match="expected"):
            create(toolkit, **wrong)
