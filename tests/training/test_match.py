"""ToolMatch: equation 1, allowed values, and the reward."""

import json

import pytest

from gecko_graph.training.match import tool_match, tool_match_reward
from tests.training.shelf import call

SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "number"},
        "unit": {"type": "string", "default": "m"},
        "box": {"type": "object", "properties": {"w": {"type": "integer", "default": 1}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"k": {"default": 0}}}},
    },
}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}, {"name": "g", "parameters": {}}]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"n": 1}, {"n": 1.0}, True),
        ({"n": 1}, {"n": True}, False),
        ({"n": 1}, {"n": "1"}, False),
        ({"n": 0}, {"n": None}, False),
        ({"n": 1}, {"n": 1, "unit": "m"}, True),
        ({"n": 1}, {"n": 1, "unit": "M"}, False),
        ({"n": 1}, {}, False),
        ({"box": {}}, {"box": {"w": 1}}, True),
        ({"box": {}}, {"box": {"w": 2}}, False),
        ({"list": [{}]}, {"list": [{"k": 0}]}, True),
        ({"list": [1, 2]}, {"list": [2, 1]}, False),
        ({"list": [1]}, {"list": [1, 1]}, False),
        ({"other": 1}, {}, False),
    ],
)
def test_arguments_are_equal_as_json_and_by_default(one, other, same):
    assert tool_match([call("f", **one)], [call("f", **other)], TOOLS) is same
    assert tool_match([call("f", **other)], [call("f", **one)], TOOLS) is same


def test_calls_match_in_any_order_each_as_often():
    a, b = call("f", n=1), call("g", n=1)
    assert tool_match([a, b], [b, a], TOOLS)
    assert not tool_match([a, a, b], [a, b, b], TOOLS)
    assert not tool_match([a], [a, a], TOOLS)
    assert not tool_match([a], [b], TOOLS)
    assert tool_match([], [], TOOLS)
    assert not tool_match([a], [], TOOLS)


def test_allowed_values_count_in_the_place_of_the_labels_and_of_defaults():
    also = [{"f": {"n": [1, 2], "unit": ["", "km"]}}, {"f": {"n": [2], "unit": ["m"], "box": [{"w": [3, 4]}]}}]
    label = [call("f"), call("f")]
    assert tool_match([call("f", n=2), call("f", n=2, unit="m", box={"w": 4})], label, TOOLS, also)
    assert tool_match([call("f", n=2, unit="m", box={"w": 3}), call("f", n=1, unit="km")], label, TOOLS, also)
    assert not tool_match(
        [call("f", n=2), call("f", n=2, box={"w": 4})], label, TOOLS, also
    )  # unit may not be left out
    assert not tool_match([call("f", n=2, x=1), call("f", n=2, unit="m", box={"w": 4})], label, TOOLS, also)
    also = [{"f": {"n": [1, 2]}}, {"f": {"n": [1]}}]  # what fits both must leave the other for what fits one
    assert tool_match([call("f", n=1), call("f", n=2)], label, TOOLS, also)


def test_the_reward_reads_completions_as_trl_has_them():
    right, text = [call("f", n=1)], '<think>so</think><tool_call>{"name": "f", "arguments": {"n": 1}}</tool_call>'
    message = {"role": "assistant", "tool_calls": [{"type": "function", "function": call("f", n=1)}]}
    texts = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '{"n": 2}'}}]}
    said = [text, [message], [texts], "<tool_call>{broken</tool_call>", "I do not know."]
    labels = [json.dumps(right), right, right, right, "[]"]
    rewards = tool_match_reward(said, label=labels, tools=[json.dumps(TOOLS)] * 5, also=["null"] * 5, prompts=[""] * 5)
    assert rewards == [1.0, 1.0, 0.0, 0.0, 1.0]
    assert tool_match_reward(["hm"], label=[right]) == [0.0]
