"""Toolkits that make it harder: what the agent sees changes, what answers does not."""

from __future__ import annotations

import json

import pytest

from gecko_graph import Toolkit
from gecko_graph.errors import GeckoError, ToolkitError
from gecko_graph.tools import augment as under_test

NAMES = ("get_wifi", "set_wifi", "get_cellular", "set_cellular", "add", "subtract", "find_contact", "wifi_speed")


def toolkit():
    parameters = {
        "type": "object",
        "properties": {"on": {"type": "boolean", "description": "whether it is on"}},
        "required": ["on"],
    }
    tools = [{"name": name, "description": f"The tool {name}.", "parameters": parameters} for name in NAMES]
    return Toolkit.from_tools(tools)


def shown(one):
    return {each["function"]["name"]: each["function"] for each in one.as_openai()}


def test_the_nearest_tools_distract():
    assert under_test.distract(toolkit(), ["set_wifi"], 0).names == ("set_wifi",)
    assert set(under_test.distract(toolkit(), ["set_wifi"], 3).names) == {
        "get_wifi",
        "set_wifi",
        "wifi_speed",
        "set_cellular",
    }
    assert under_test.distract(toolkit(), ["set_wifi"], None).names == NAMES
    with pytest.raises(ToolkitError, match="set_wify"):
        under_test.distract(toolkit(), ["set_wify"], 3)


@pytest.mark.parametrize("name", under_test.AUGMENTATIONS)
def test_each_augmentation_leaves_the_tools_as_they_are(name):
    one = under_test.augment(toolkit(), ["set_wifi"], name)
    assert one["set_wifi"] == toolkit()["set_wifi"]
    assert {one.resolve(each) for each in shown(one)} == set(one.names)
    assert json.dumps(one.to_openapi())


def test_scrambled_names_say_nothing_and_hide_the_own_ones():
    one = under_test.augment(toolkit(), ["set_wifi"], "tool_names_scrambled")
    assert not set(shown(one)) & set(NAMES)
    assert one.resolve("set_wifi") == "hidden tool set_wifi"
    assert one.show("set_wifi: off, set_wifis stays") == f"{one.faces['set_wifi'].name}: off, set_wifis stays"


def test_descriptions_and_types_are_removed():
    bare = shown(under_test.remove_descriptions(toolkit()))["set_wifi"]
    assert (bare["description"], bare["parameters"]) == ("", toolkit()["set_wifi"].parameters)
    plain = shown(under_test.remove_argument_descriptions(toolkit()))["set_wifi"]["parameters"]
    assert plain["properties"]["on"] == {"type": "boolean"}
    untyped = shown(under_test.remove_argument_types(toolkit()))["set_wifi"]["parameters"]
    assert untyped["properties"]["on"] == {"description": "whether it is on"}


def test_augmentations_add_up():
    both = under_test.remove_descriptions(under_test.scramble_names(toolkit()))
    assert all(name.startswith("tool_") and not each["description"] for name, each in shown(both).items())


def test_an_unknown_augmentation_is_named():
    with pytest.raises(GeckoError, match="did you mean all_tools"):
        under_test.augment(toolkit(), [], "all_tool")


def test_a_disguise_stays_when_the_toolkit_is_changed():
    one = under_test.remove_descriptions(under_test.scramble_names(toolkit()))
    other = Toolkit.from_tools([{"name": "tool_0", "parameters": {"type": "object", "properties": {}}}])
    for changed in (one.replace(one["add"]), one.select(names=["add", "set_wifi"]), one.mount("phone"), one + other):
        assert all(shown(changed)[one.faces[name].name]["description"] == "" for name in changed.names if name in one)
    assert (one + other).resolve("tool_0_2") == "tool_0"


def test_langchain_tools_of_a_disguised_toolkit_are_what_the_agent_sees():
    one = under_test.remove_argument_types(under_test.remove_descriptions(under_test.scramble_names(toolkit())))
    for tool in one.as_tools():
        seen = shown(one)[tool.name]
        assert (tool.description, tool.args_schema) == (seen["description"], seen["parameters"])
