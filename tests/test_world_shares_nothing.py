"""A World shares nothing that a caller can change, and costs the same however long its log is."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph import StateError, Tool, Toolkit, World
from gecko_graph.state import JsonObject
from gecko_graph.tools.real import Answer
from gecko_graph.world.reducers import Grown, find

ANY: dict = {"type": "object", "properties": {"key": {"type": "string"}, "value": {}}, "required": ["key"]}
PUT = {"effects": [{"op": "add", "path": ["things", "{{ args.key }}"], "value": "{{ args.value }}"}],
       "returns": {"all": "{{ state.things }}", "made": [{"fixed": [1]}]}}  # fmt: skip
GET = {"requires": [{"check": "args.key in state.things", "error": {"no": ["{{ args.key }}"]}}],
       "returns": "{{ state.things[args.key] }}"}  # fmt: skip
KEPT: list[Any] = [{"shared": [0]}]
"""What a user's function holds on to, gives back and changes later."""


def keep(state: dict, key: str, value: object = None) -> Any:
    state["things"][key] = KEPT[0]
    state["seen"] = [value]
    return KEPT[0]


def tools() -> tuple[Toolkit, JsonObject]:
    """Tools that answer by contract, function, example and schema, and the example."""
    example: JsonObject = {"args": {"key": "a"}, "result": {"seen": [1]}}
    functions = [{"name": name, "parameters": ANY} for name in ("put", "get", "keep", "show", "guess")]
    declared = [
        Tool(functions[0], contract=PUT),
        Tool(functions[1], effect="read", contract=GET),
        Tool(functions[2], simulate=keep),
        Tool(functions[3], effect="read", examples=[example]),
        Tool(functions[4], effect="read", result={"const": {"deep": [{"made": 1}]}}),
    ]
    return Toolkit.from_tools(declared), example


def spoil(value: Any) -> None:
    """Change everything in a value that can be changed."""
    if isinstance(value, dict):
        for each in list(value.values()):
            spoil(each)
        value.clear()
        value["spoilt"] = True
    elif isinstance(value, list):
        for each in value:
            spoil(each)
        value[:] = ["spoilt"]


VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("pq"), inner, max_size=2),
    max_leaves=5,
)
CALLS = st.lists(
    st.builds(
        lambda name, key, value: {"name": name, "args": {"key": key, "value": value}},
        st.sampled_from(["put", "put", "get", "keep", "show", "guess", "nope"]),
        st.sampled_from("abc"),
        VALUES,
    ),
    min_size=1,
    max_size=8,
)
WAYS = st.lists(st.sampled_from(["call", "record", "fork", "snapshot", "records", "undo", "back"]), max_size=8)


def act(world: World, way: str, call: dict) -> tuple[World, list[Any]]:
    """One use of a world: the world to go on with, and all that was given in or handed out."""
    match way:
        case "record" if call["name"] != "nope":
            answer = Answer("ok", {"real": [copy.deepcopy(call["args"])]})
            entry = world.record(call, answer)
            return world, [call, entry, answer.result]
        case "fork":
            return world.fork(), [world.log, world.state]
        case "snapshot":
            snapshot = world.snapshot()
            return world.resume(snapshot), [snapshot]
        case "records":
            records = world.records()
            other = world.begin(world.snapshot()["start"])
            other.replay(records)
            return other, [records]
        case "undo":
            return world, [world.undo()]
        case "back":
            return world.back_to(len(world.log) // 2), []
    step = world.call(call)
    return world, [call, step]


@given(CALLS, WAYS)
@settings(max_examples=60, deadline=None)
def test_whatever_is_changed_outside_the_world_answers_the_same(calls, ways):
    def run(*, spoiling: bool) -> list[Any]:
        KEPT[0] = {"shared": [0]}
        toolkit, example = tools()
        rows: list[JsonObject] = []
        start: dict = {"things": {"a": {"deep": [1]}}}
        world = World(toolkit, state=start, observe=rows.append)
        told: list[Any] = []
        for number, call in enumerate(copy.deepcopy(calls)):
            world, handed = act(world, ways[number] if number < len(ways) else "call", call)
            told.append(json.dumps([[each for each in handed if each is not call], rows]))
            if spoiling:
                spoil([handed, world.log, world.state, world.snapshot(), world.records(), start, example, rows])
                spoil(KEPT)
            rows.clear()
            KEPT[0] = {"shared": [0]}
        return [without_times(told), world.log, world.state, world.snapshot()]

    assert run(spoiling=True) == run(spoiling=False)


def without_times(told: list[str]) -> list[str]:
    """Return what was handed out without the moments at which it was."""
    return [re.sub(r'"(started_at|ended_at|at)": [^,}]*', "", each) for each in told]


def long_world(calls: int, **more: Any) -> World:
    world = World(tools()[0], **{"state": {"things": {"a": 1}}} | more)
    for number in range(calls):
        world.call({"name": "put", "args": {"key": "abc"[number % 3], "value": number}})
    return world


@pytest.mark.parametrize("calls", [1, 64, 130])
def test_back_to_a_step_is_as_if_the_later_ones_were_never_made(calls):
    world, other = long_world(calls), World(tools()[0], state={"things": {"a": 1}})
    world.call({"name": "guess", "args": {"key": "z"}})
    for step in range(calls + 1):
        if step % 7 == 0 or step > calls - 2:
            assert world.back_to(step).snapshot() == other.snapshot()
        other.call({"name": "put", "args": {"key": "abc"[step % 3], "value": step}})
    with pytest.raises(StateError, match="steps"):
        world.back_to(calls + 2)


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=5), max_size=30), st.integers(-40, 40), st.data())
def test_what_grows_is_a_list_and_leaves_what_it_grew_from(parts, at, data):
    lists: list[tuple[list[str], Grown[str]]] = [([], Grown(str))]
    for part in parts:
        items, grown = data.draw(st.sampled_from(lists))
        lists.append((items + part, grown.grow(part)))
    for items, grown in lists:
        assert (list(grown), len(grown), bool(grown)) == (items, len(items), bool(items))
        assert (grown[at:], grown[:at], grown[::3]) == (items[at:], items[:at], items[::3])
        assert [find(grown, each, str) for each in "abz"] == [each if each in items else None for each in "abz"]
        if -len(items) <= at < len(items):
            assert grown[at] == items[at]
        else:
            with pytest.raises(IndexError):
                grown[at]
