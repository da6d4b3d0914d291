"""Reading structured replies: whatever a model wraps around the JSON, and whatever it writes instead."""

import json

import pytest
from hypothesis import example, given
from jsonschema import Draft202012Validator
from langchain_core.messages import AIMessage

from gecko_graph.models.reply import MAX_REPLY_CHARS, Unreadable, find_storage_problem, read_reply, schema_of
from gecko_graph.models.roles import (
    Checklist,
    InitialState,
    Judgement,
    SemanticVerdict,
    SimulatedEffect,
    SimulatedResponse,
    StateChange,
    ToolSchema,
)
from tests.any_schema import JSON

ALL = (SemanticVerdict, SimulatedEffect, SimulatedResponse, StateChange, InitialState, Checklist, Judgement, ToolSchema)

DEEP = "too deeply|does not fit Checklist"  # from 3.14 on Python reads JSON of any depth


def read(text, reply=Checklist):
    return read_reply(AIMessage(text), reply)


@pytest.mark.parametrize(("text", "words"), [
    ("", "empty"), ("<think>hm</think>", "empty"), ("true", "does not fit Checklist"),
    ("{}", "items: Field required"),
    ('{"items": [{"description": 1}]}', "items.0.description"),
    ('{"items": [{}, {}, {}, {}, {}]}', "and 2 more"), ('{"items": [', "begins at character 0 has no end"),
    ("[" * 50_000, "no end"), ("[" * 50_000 + "]" * 50_000, DEEP), ('{"a":' * 50_000 + "1" + "}" * 50_000, DEEP),
    ("x" * (MAX_REPLY_CHARS + 1), "1,000,001 characters"),
])  # fmt: skip
def test_what_is_no_reply_is_told_in_one_line(text, words):
    with pytest.raises(Unreadable, match="(?s)" + words) as raised:
        read(text)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    "result", ["NaN", "Infinity", "-Infinity", "1e999", str(2**64), str(-(2**63) - 1), '"\\ud800"', '{"\\udfff": 1}']
)
def test_what_no_checkpoint_can_keep_is_refused(result):
    with pytest.raises(Unreadable):
        read(f'{{"status": "ok", "result": {result}}}', SimulatedResponse)


@example(value={"</think>": None, "[": ',"'})
@example(value="<think>{</think>")
@example(value={"least": -(2**63), "most": 2**64 - 1, "é": [1e300, -0.5, "\u2028", {"": True}]})
@given(value=JSON)
def test_every_json_value_survives_as_a_result(value):
    text = json.dumps({"status": "ok", "result": value}, ensure_ascii=False)
    for wrapped in (text, f"```json\n{text}\n```", f"So: {text}"):
        assert read(wrapped, SimulatedResponse).result == value
    assert find_storage_problem(value) is None


def test_models_with_parsers_of_their_own_are_understood():
    assert read_reply({"items": [{"description": "a"}]}, Checklist).items
    assert read_reply(Checklist.model_validate({"items": [{"description": "a"}]}), Checklist).items
    with pytest.raises(Unreadable, match="replied with int"):
        read_reply(3, Checklist)


EXAMPLES = {
    SemanticVerdict: {"problems": [{"argument": "city", "problem": "is a country"}]},
    SimulatedEffect: {"status": "ok", "result": [1, None], "patch": [{"op": "add", "path": "/a", "value": {}}],
                      "unchanged": False, "may_refuse": "must a be there?"},
    SimulatedResponse: {"status": "error", "result": "no such file"},
    StateChange: {"patch": [{"op": "move", "from": "/a", "path": "/b"}, {"op": "remove", "path": "/c"}],
                  "unchanged": False},
    InitialState: {"domain": {"files": []}, "runtime_state": {"cwd": "/"}},
    Checklist: {"items": [{"description": "a"}]},
    Judgement: {"items": [{"id": "1", "status": "failed", "reason": "r"}], "unasked_changes": [],
                "stopping_was_right": False, "feedback": "f"},
    ToolSchema: {"description": "d", "result": {"type": "object"}, "effect": "read"},
}  # fmt: skip


@pytest.mark.parametrize("reply", ALL)
def test_the_schema_told_and_the_class_agree(reply):
    schema = schema_of(reply)
    assert (schema["title"], schema["type"]) == (reply.__name__, "object")
    assert [word for word in ("$ref", "$defs", '"default"', "appendix") if word in json.dumps(schema)] == []
    validator = Draft202012Validator(schema)
    validator.validate(EXAMPLES[reply])
    fitted = read_reply(EXAMPLES[reply], reply)
    assert fitted.model_dump(exclude_unset=True) == EXAMPLES[reply]
    wrong = dict.fromkeys(EXAMPLES[reply], 3)
    assert not validator.is_valid(wrong)
    with pytest.raises(Unreadable, match="does not fit"):
        read_reply(wrong, reply)


@pytest.mark.parametrize(("operation", "words"), [
    ({"op": "put", "path": "/a"}, "op must be one of"), ({"op": "add", "path": "/a"}, "add needs 'value'"),
    ({"op": "move", "path": "/a"}, "move needs 'from'"), ({"op": "remove"}, "path must be a JSON Pointer"),
    ({"op": "remove", "path": 3}, "path must be a JSON Pointer"),
    ({"op": "copy", "path": "/a", "from": "b"}, "from must be a JSON Pointer"),
])  # fmt: skip
def test_operations_are_checked_so_that_a_repair_round_can_mend_them(operation, words):
    with pytest.raises(Unreadable, match=words):
        read(json.dumps({"patch": [{"op": "add", "path": "/b", "value": None}, operation]}), StateChange)


@pytest.mark.parametrize("named", [[], [""], ["None."], [" ", "n/a", "- nothing"]])
def test_a_list_that_says_nothing_names_no_change(named):
    given = {"items": [{"id": "1", "status": "success"}], "unasked_changes": [*named, "a.txt\n is gone"]}
    assert read_reply(given, Judgement).unasked_changes == ["a.txt is gone"]
