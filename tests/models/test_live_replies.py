"""The structured replies of a live model: read as they are, in 200 other shapes without a repair, broken ones never."""

import json
import random

import pytest
from langchain_core.messages import AIMessage

from gecko_graph.models.reply import Unreadable, read_reply
from gecko_graph.models.roles import REPLIES, match_id

CLASSES = {each.__name__: each for some in REPLIES.values() for each in some}


@pytest.fixture(scope="module")
def replies(read_jsonl):
    """Each structured reply with its class, and the ids that it was asked about."""
    return [
        (row["reply"]["json"], CLASSES[row["request"]["response_format"]["json_schema"]["name"]], ids_of(row))
        for row in read_jsonl("live_replies.jsonl.gz")
        if row["role"] != "planner"
    ]


def ids_of(row):
    reply = row["reply"]["json"]
    return [item["id"] for item in reply["items"]] if row["role"] == "judge" else []


def read(text, reply, ids):
    return read_reply(AIMessage(text), reply, ids=ids)


def test_all_601_are_read_as_they_are(replies):
    assert len(replies) == 601
    for said, reply, ids in replies:
        fitted = read(json.dumps(said), reply, ids)
        assert read_reply(said, reply, ids=ids) == fitted
        assert fitted.model_dump(exclude_unset=True, by_alias=False).keys() >= set(said) - {"ask_user"}


def nulls(said):
    """The value with a null for each empty text or list that may be left out."""
    if isinstance(said, list):
        return [nulls(each) for each in said]
    if not isinstance(said, dict):
        return said
    optional = {"reason", "feedback", "patch", "runtime_state"}
    return {key: None if key in optional and not each else nulls(each) for key, each in said.items()}


def ids(spell):
    return lambda said: respelt(said, {"id": spell})


def respelt(said, how):
    if isinstance(said, list):
        return [respelt(each, how) for each in said]
    if not isinstance(said, dict):
        return said
    spell = lambda key, each: how[key](each) if key in how and isinstance(each, str) else respelt(each, how)  # noqa: E731
    return {key: spell(key, each) for key, each in said.items()}


def alone(said):
    """A reply without its wrapping, where nothing is lost by that."""
    if "items" in said and not said.get("ask_user") and not said.get("feedback"):
        return said["items"]
    if "problems" in said:
        return said["problems"]
    bare = said.get("result")
    if said.get("status") == "ok" and not said.get("patch") and isinstance(bare, dict) and bare:
        return bare if not {"status", "result", "patch"} & bare.keys() and [*bare] != ["error"] else said
    return {**said["domain"], "runtime_state": said["runtime_state"]} if "domain" in said else said


SHAPES = {
    "fence": lambda said: f"```json\n{json.dumps(said, indent=1)}\n```",
    "prose": lambda said: f'I looked at "it" {{closely}} [1]. My answer: {json.dumps(said)} - that is all.',
    "thought": lambda said: f'<think>{{"items": []}} or {json.dumps(said)[:40]}</think>{json.dumps(said)}',
    "twice": lambda said: f"{json.dumps(said)}\nOnce more: {json.dumps(said, indent=2)}",
    "nulls": lambda said: json.dumps(nulls(said)),
    "case": lambda said: json.dumps(respelt(said, {"status": str.title})),
    "unwrapped": lambda said: json.dumps(alone(said)),
    "wrapped": lambda said: json.dumps({"reply": said}),
    "a call in words": lambda said: json.dumps({"name": "reply", "arguments": said}),
    "ids: Item-1": lambda said: json.dumps(ids(str.title)(said)),
    "ids: item_1": lambda said: json.dumps(ids(lambda each: each.replace("-", "_"))(said)),
    "ids: 1": lambda said: json.dumps(ids(lambda each: each.rpartition("-")[2])(said)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_in_other_shapes_they_read_equal(replies, shape):
    judged = [each for each in replies if each[2]] if shape.startswith("ids") else replies
    for said, reply, known in random.Random(shape).sample(judged, 60):
        assert read(SHAPES[shape](said), reply, known) == read(json.dumps(said), reply, known)


def broken(said, known, other):
    """What must be repaired, with what stands in it: cut off at three places, two answers, items left out."""
    text = json.dumps(said)
    yield from (text[: len(text) * part // 4] for part in (1, 2, 3))
    yield text[:-1]
    yield f"{text}\nNo, rather: {text[: len(text) // 2]}"
    yield f"```json\n{text}\n```\nOn second thoughts:\n```json\n{json.dumps(other)}\n```"
    if len(known) > 1:
        yield json.dumps({**said, "items": said["items"][:-1]})
        yield json.dumps({key: value for key, value in said.items() if key != "items"})


def test_broken_ones_are_repaired_and_none_is_guessed(replies):
    picked = [each for each in replies if len(json.dumps(each[0])) > 30]
    for said, reply, known in random.Random(4).sample(picked, 40):
        others = (one for one, kind, ids in replies if kind is reply and one != said and known in ([], ids))
        for text in broken(said, known, next(others)):
            with pytest.raises(Unreadable) as problem:
                read(text, reply, known)
            assert "\n" not in str(problem.value)


@pytest.mark.parametrize(("given", "ids", "meant"), [
    ("item-1", ["item-1", "Item-1"], "item-1"), ("ITEM 1", ["item-1", "item-11"], "item-1"),
    ("1", ["item-1", "item-11"], "item-1"), ("01", ["item-1", "item-11"], "item-1"), ("ab", ["a-b", "a_b"], "ab"),
    ("2", ["item-1", "item-11"], "2"), ("#11", ["item-1", "item-11"], "item-11"), ("x", [], "x"),
    ("1", ["a-1", "b-1"], "1"), ("", ["a"], ""),
])  # fmt: skip
def test_ids_are_matched_where_only_one_can_be_meant(given, ids, meant):
    assert match_id(given, ids) == meant
