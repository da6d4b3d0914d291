"""A call by hand: LangChain's form and OpenAI's are read; a key that neither has never passes as no arguments."""

import asyncio
import json
from typing import Any

import pytest

from gecko_graph import Tool, Toolkit, World
from gecko_graph.errors import ToolkitError
from gecko_graph.world.rung import Answer

REQUIRES = [{"check": "args.amount <= state.left", "error": "only {{ state.left }} left"}]
EFFECTS = [{"op": "replace", "path": ["left"], "value": "{{ state.left - args.amount }}"}]
PARAMETERS = {"type": "object", "properties": {"amount": {"type": "integer", "default": 1}}}
PAY = {"name": "bank.pay", "description": "Pay.", "parameters": PARAMETERS}


def forms(**args: Any) -> dict[str, dict]:
    """The ways to write a call."""
    text = json.dumps(args)
    return {
        "plain": {"name": "bank.pay", "args": args},
        "langchain": {"name": "bank_pay", "args": args, "id": "c1", "type": "tool_call"},
        "block": {"name": "bank_pay", "args": args, "id": "c1", "type": "tool_call", "index": 0, "extras": {}},
        "chat": {"id": "c1", "type": "function", "function": {"name": "bank_pay", "arguments": text}},
        "chat's object": {"id": "c1", "function": {"name": "bank_pay", "arguments": args}, "index": 0},
        "function": {"function": {"name": "bank_pay", "arguments": text}},
        "responses": {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "bank_pay", "arguments": text},
        "plain text": {"name": "bank.pay", "arguments": text},
        "plain object": {"name": "bank.pay", "arguments": args},
    }


def wrong(**args: Any) -> dict[str, dict]:
    """What is no call."""
    keys = ("input", "parameters", "kwargs", "params", "tool_input", "arg", "Args", "argument")
    return {
        **{key: {"name": "bank.pay", key: args} for key in keys},
        "anthropic": {"type": "tool_use", "id": "c1", "name": "bank.pay", "input": args},
        "twice": {"name": "bank.pay", "args": {}, "arguments": args},
        "two names": {"name": "bank.pay", "args": {}, "function": {"name": "bank.pay", "arguments": args}},
        "inside": {"function": {"name": "bank.pay", "parameters": args}},
        "outside": {"function": {"name": "bank.pay"}, "input": args},
    }


def world() -> World:
    tool = Tool(PAY, effect="write", contract={"requires": REQUIRES, "effects": EFFECTS})
    return World(Toolkit.from_tools([tool]), state={"left": 100})


@pytest.mark.parametrize("form", forms())
def test_every_form_is_the_same_call(form):
    one = world()
    assert one.check(forms(amount=101)[form])["error"] == "only 100 left"
    assert one.toolkit.check(forms(amount=101)[form], {"left": 100})["error"] == "only 100 left"
    assert one.check(forms(amount=100)[form]) is None
    assert "an integer" in str(one.check(forms(amount="x")[form])["complaints"])
    step = one.call(forms(amount=60)[form])
    assert (step["call"]["name"], step["call"]["args"]) == ("bank.pay", {"amount": 60})
    assert step["call"]["id"] == ("c1" if "c1" in str(forms()[form]) else "call_1")
    assert one.state == {"left": 40}
    entry = asyncio.run(one.arecord(forms(amount=30)[form], Answer("ok", None, [])))
    assert (entry["call"]["args"], one.state) == ({"amount": 30}, {"left": 10})
    again = asyncio.run(world().acall_all([forms(amount=1)[form], {**forms(amount=2)[form], "type": "x"}]))
    assert [each["call"]["args"]["amount"] for each in again] == [1, 2]


@pytest.mark.parametrize("form", wrong())
def test_another_key_is_an_error_that_names_the_right_one(form):
    one, given = world(), wrong(amount=101)[form]
    for complaint in (*one.check(given)["complaints"], *one.call(given)["complaints"]):
        assert "`args`" in complaint["expected"]
        assert "the key '" in complaint["got"]
    assert asyncio.run(one.acall(given))["complaints"]
    assert one.toolkit.check(given, {"left": 100})["complaints"]
    with pytest.raises(ToolkitError, match="under `args`"):
        one.record(given, Answer("ok", None, []))
    assert one.state == {"left": 100}


@pytest.mark.parametrize("text", ["{", "[1]", "5", '"x"', "null", "none"])
def test_arguments_that_are_no_object_are_refused(text):
    one = world()
    for given in ({"name": "bank.pay", "arguments": text}, {"name": "bank.pay", "args": text}):
        assert "one JSON object" in str(one.check(given)["complaints"])
        step = one.call(given)
        assert "one JSON object" in str(step["complaints"])
        assert "one JSON object" in str(one.check(step["call"])["complaints"]), "a step's call is not taken for another"
        with pytest.raises(ToolkitError, match="one JSON object"):
            one.record(given, Answer("ok", None, []))


def test_a_call_without_arguments_has_none():
    for given in ({"name": "bank.pay"}, {"name": "bank.pay", "args": {}}, {"name": "bank.pay", "arguments": ""}):
        assert world().check(given) is None
        assert world().call(given)["call"]["args"] == {}


@pytest.mark.parametrize("given", [None, 5, [], "bank.pay", {}, {"name": 5}, {"function": "bank.pay"}])
def test_what_is_no_call_is_refused(given):
    assert world().call(given)["complaints"]
    assert world().check(given)["complaints"]
    with pytest.raises(ToolkitError):
        world().record(given, Answer("ok", None, []))
