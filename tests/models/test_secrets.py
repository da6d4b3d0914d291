"""Secrets in prompts: roles that only judge see that two are the same, and never what they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph import Tool, Toolkit
from gecko_graph.models import prompts
from gecko_graph.models.prompts import hide_secrets, is_secret
from tests.test_prompts_in_runs import listen

SECRETS = ["password", "user_password", "newPassword", "card_number", "cardNumber", "cvv", "PIN"]


@pytest.mark.parametrize("name", [*SECRETS, "passenger", "spin", "card", "token", "key", "pinned", "number"])
def test_names_of_secrets_and_of_none(name):
    assert is_secret(name) is (name in SECRETS)


@given(st.from_regex(prompts._NAMED, fullmatch=True).filter(str.isascii))
def test_the_quick_look_passes_by_no_name_of_a_secret(name):
    assert hide_secrets({"steps": f'{{"{name}": "hunter2!"}}'}) == {"steps": f'{{"{name}": "(secret 1)"}}'}


def test_one_secret_has_one_name_in_all_parts_of_a_prompt():
    shown = hide_secrets(
        {
            "task": "Log in with hunter2!, then pay with 4111 1111 1111 1111, order 4111111111111112",
            "steps": '1. login({"user": "ann", "password": "hunter2!"}) -> ok: {"pin_code": 4711}',
            "state": "the pin is 4711 of 47110",
        }
    )
    assert shown == {
        "task": "Log in with (secret 2), then pay with (secret 1), order 4111111111111112",
        "steps": '1. login({"user": "ann", "password": "(secret 2)"}) -> ok: {"pin_code": (secret 3)}',
        "state": "the pin is (secret 3) of 47110",
    }


@given(st.text(), st.text())
def test_any_text_can_be_looked_through_and_what_holds_no_secret_stays(one, two):
    shown = hide_secrets({"one": one, "two": two})
    assert shown == {"one": one, "two": two} or "(secret 1)" in "".join(shown.values())


def log_in(user: str, password: str) -> dict:
    """Log in."""
    return {}


def test_the_judge_is_not_shown_a_password_and_the_planner_and_simulator_are():
    said = {
        "messages": [("user", "Log ann in, password hunter2!")],
        "task_state": {"users": ["ann"]},
        "checklist": ["in"],
    }
    model, _ = listen(
        said,
        tools=Toolkit.from_tools([Tool(log_in, effect="write")]),
        planner=[[{"call": "log_in", "args": {"user": "ann", "password": "hunter2!"}}, {"say": "Done."}]],
        simulator=[{"status": "ok", "result": {}, "patch": [{"op": "add", "path": "/user", "value": "ann"}]}],
        judge=[{"items": [{"id": "item-1", "status": "success", "reason": "ok"}]}],
    )
    assert "hunter2!" in model.last("simulator")
    assert "hunter2!" not in model.last("judge")
    assert "(secret 1)" in model.last("judge")
