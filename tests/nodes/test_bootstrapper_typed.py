"""bootstrapper: under `x-state` no turn begins from a state that breaks it, whoever made it."""

from __future__ import annotations

from functools import partial

import pytest
from langchain_core.messages import HumanMessage

from gecko_graph import Toolkit
from gecko_graph.errors import StateError
from gecko_graph.models.ask import Reply
from gecko_graph.nodes.bootstrapper import bootstrapper
from gecko_graph.testing import drive
from gecko_graph.tools.spec import ToolSpec

RUNTIME = {"type": "object", "properties": {"user": {"type": "string"}}, "required": ["user"]}
SCHEMA = {
    "type": "object",
    "properties": {"stock": {"type": "object", "additionalProperties": {"type": "integer"}}, "runtime_state": RUNTIME},
    "required": ["stock", "runtime_state"],
}
FULL = {"check": "state.stock | values | sum < 10", "error": "the room is full"}
SHOP = Toolkit.from_tools([ToolSpec(name="look", effect="read")], state_schema=SCHEMA, invariants=[FULL])
GOOD = {"domain": {"stock": {"tea": 3}}, "runtime_state": {"user": "ann"}}
WHOLE = {"stock": {"tea": 3}, "runtime_state": {"user": "ann"}}


def boot(*replies, given=None, roles=("bootstrapper",), **more):
    state = {"messages": [HumanMessage("Sell tea")], "task_state": given, **more}
    return drive(partial(bootstrapper, toolkit=SHOP), state, replies, roles=roles)


def test_the_model_is_shown_the_schema():
    (ask,) = boot(GOOD).asks
    assert '"stock"' in ask.variables["schema"]
    assert boot(GOOD).update["task_state"] == WHOLE


@pytest.mark.parametrize(
    ("domain", "fault"),
    [
        ({"stock": {"tea": "3"}}, '$.stock.tea: expected an integer, got "3"'),
        ({"stock": {"tea": 30}}, "the room is full"),
        ({}, "$.stock: expected an object; it is required"),
    ],
)
def test_what_breaks_the_schema_is_repaired_once_then_left_out(domain, fault):
    bad = {"domain": domain, "runtime_state": {"user": "ann"}}
    driven = boot(bad, GOOD)
    assert fault in driven.asks[1].variables["problems"]
    assert driven.update["task_state"] == WHOLE
    update, _, (event,) = boot(bad, bad)
    assert update["task_state"] == {}
    assert fault in update["supposed_state"]["unclear"][0]
    assert event["unclear"] == update["supposed_state"]["unclear"]
    assert boot(bad, Reply(None, "the server is down")).update["task_state"] == {}


def test_a_given_state_that_breaks_a_rule_is_refused_before_a_model_is_asked():
    for given, message in [({"stock": {"tea": "3"}}, r"task_state: at \$.stock.tea"), ({"stock": {"tea": 12}}, "full")]:
        with pytest.raises(StateError, match=message):
            boot(given=given)
        with pytest.raises(StateError, match=message):
            boot(given={**given, "runtime_state": {"user": "ann"}}, roles=())


def test_without_a_state_and_a_model_the_error_says_what_is_missing():
    with pytest.raises(StateError, match=r"task_state: at \$.stock: expected an object; it is required"):
        boot(roles=())


def test_runtime_variables_are_the_model_s_to_add_and_its_to_repair():
    given = {"stock": {"tea": 3}}
    assert boot(GOOD, given=given).update["task_state"] == WHOLE
    bad = {"runtime_state": {"user": 7}}
    driven = boot(bad, GOOD, given=given)
    assert "$.runtime_state.user: expected a string" in driven.asks[1].variables["problems"]
    assert driven.update["task_state"] == WHOLE
    kept = boot(bad, bad, given=given).update
    assert kept["task_state"] == given
    assert "$.runtime_state.user" in kept["supposed_state"]["unclear"][0]


def test_what_reality_has_left_is_not_refused():
    real = {"stock": {"tea": "3"}, "runtime_state": {"user": "ann"}}
    going_on = {"steps": [], "lesson": None, "attempts": 0, "real": True}
    assert boot(given=real, continued=going_on).update["task_state"] == real
