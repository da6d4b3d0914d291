"""The rung `model`: what the simulator is asked, how its reply is read and repaired, and what becomes of a bad one."""

from __future__ import annotations

import json
import math

import pytest
from jsonschema import Draft202012Validator

from gecko_graph.models.ask import Reply
from gecko_graph.models.roles import SimulatedEffect, SimulatedResponse, SimulatedWrite
from gecko_graph.models.structured import schema_of
from gecko_graph.world.ladder import climb
from gecko_graph.world.model import model_rung
from gecko_graph.world.reply_schema import form_of, reply_schema
from gecko_graph.world.rung import NO_ANSWER, Answer, Pass

ADD = [{"op": "add", "path": "/trays/letters/-", "value": "bill"}]


def test_no_model_passes_and_asks_nothing(question, told):
    assert told(model_rung(question())) == (Pass("no model configured for role 'simulator'"), [])


def test_a_write_s_result_and_change_come_in_one_reply(question, told):
    reply = {"status": "ok", "result": {"papers": 2}, "patch": ADD}
    value, (ask,) = told(model_rung(question(has_simulator=True)), [reply])
    assert value == Answer("ok", {"papers": 2}, ADD)
    assert ask.reply is SimulatedEffect
    assert ask.variables["wants"] == "effect"


@pytest.mark.parametrize(("effect", "simulation", "patch"), [("read", "fused", []), ("write", "separate", None)])
def test_reads_and_separate_simulation_ask_for_the_response_only(question, told, effect, simulation, patch):
    asked = question(has_simulator=True, effect=effect, simulation=simulation)
    value, (ask,) = told(model_rung(asked), [{"status": "ok", "result": 1}])
    assert value == Answer("ok", 1, patch)
    assert ask.reply is (SimulatedResponse if effect == "read" else SimulatedWrite)


def test_an_error_changes_nothing(question, told):
    reply = {"status": "error", "result": "no tray", "patch": ADD}
    assert told(model_rung(question(has_simulator=True)), [reply]).value == Answer("error", "no tray", [])


def test_a_read_with_a_patch_changes_nothing(question, told):
    reply = SimulatedEffect(status="ok", result=1, patch=ADD)
    assert told(model_rung(question(has_simulator=True, effect="read")), [reply]).value == Answer("ok", 1, [])


RESULT = {"type": "object", "properties": {"papers": {"type": "integer"}}, "required": ["papers"]}


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        ({"status": "ok", "result": {"papers": "two"}, "patch": []}, "$.papers"),
        ({"status": "ok", "result": {"papers": 2}, "patch": [{"op": "remove", "path": "/none"}]}, "/none"),
        ({"status": "ok", "result": {"papers": 2}, "patch": []}, "unchanged"),
        ({"status": "ok", "result": {"papers": 2}}, "unchanged"),
    ],
)
def test_an_answer_that_does_not_fit_is_repaired_once(question, told, first, problem):
    good = {"status": "ok", "result": {"papers": 2}, "patch": ADD}
    value, asks = told(model_rung(question(has_simulator=True, result=RESULT)), [first, good])
    assert value == Answer("ok", {"papers": 2}, ADD)
    assert asks[0].variables["problems"] == ""
    assert problem in asks[1].variables["problems"]
    assert asks[1].variables["problems"].startswith(json.dumps(first)[:-1]), "a repair is told the answer"


def test_an_error_need_not_be_of_the_result_s_schema(question, told):
    asked = question(has_simulator=True, result=RESULT, effect=None)
    value, (ask,) = told(model_rung(asked), [{"status": "error", "result": "no tray"}])
    assert value == Answer("error", "no tray", [])
    assert '"effect": "unknown"' in ask.variables["tool"]
    assert ask.reply is SimulatedEffect, "unknown means write: it may change something"


def test_an_answer_that_never_fits_passes_for_a_read_and_ends_a_write(question, told):
    bad = {"status": "ok", "result": {"papers": math.nan}, "patch": []}
    said = told(model_rung(question(has_simulator=True, effect="read", result=RESULT)), [bad, bad]).value
    assert isinstance(said, Pass)
    assert not said.final
    assert said.reason.startswith("the simulator gave no usable answer: ")
    assert told(model_rung(question(has_simulator=True, result=RESULT)), [bad, bad]).value.final


def test_a_simulator_that_fails_is_not_asked_again(question, told):
    value, asks = told(model_rung(question(has_simulator=True)), [Reply(None, "the server is down")])
    assert value == Pass("the simulator gave no usable answer: no reply: the server is down", final=True)
    assert len(asks) == 1


@pytest.mark.parametrize("effect", ["write", None])
def test_where_the_model_fails_for_a_write_the_call_fails_and_the_reason_is_only_in_the_record(question, told, effect):
    """The planner saw `receipt "orchard"` where the state said something else: noise of the rung `schema`."""
    bad = {"status": "ok", "result": {"papers": 2}, "patch": [{"op": "remove", "path": "/none"}]}
    outcome = told(climb(question(has_simulator=True, result=RESULT, effect=effect)), [bad, bad]).value
    assert (outcome["status"], outcome["result"], outcome["rung"], outcome["patch"]) == (
        "error",
        NO_ANSWER,
        "model",
        [],
    )
    assert "/none" in outcome["passed"][-1]["reason"]
    assert "/none" not in outcome["result"]


def test_where_the_model_fails_for_a_read_another_rung_answers_and_the_outcome_says_so(question, told):
    bad = {"status": "ok", "result": {"papers": "two"}}
    outcome = told(climb(question(has_simulator=True, result=RESULT, effect="read")), [bad, bad]).value
    assert (outcome["status"], outcome["rung"], outcome["invented"]) == ("ok", "schema", True)
    assert outcome["passed"][-1]["rung"] == "model"
    assert "$.papers" in outcome["passed"][-1]["reason"]


def test_a_result_that_is_json_in_a_text_is_read(question, told):
    reply = {"status": "ok", "result": '{"papers": 2}', "patch": ADD}
    assert told(model_rung(question(has_simulator=True, result=RESULT)), [reply]).value == Answer(
        "ok", {"papers": 2}, ADD
    )
    text = {**reply, "result": "2"}
    plain = question(has_simulator=True, result={"type": "string"})
    assert told(model_rung(plain), [text]).value.result == "2", "a text stays one where a text is wanted"


def test_a_good_result_is_kept_while_its_patch_is_repaired(question, told):
    first = {"status": "ok", "result": {"papers": 2}, "patch": [{"op": "remove", "path": "/none"}]}
    second = {"status": "ok", "result": {"papers": "two"}, "patch": ADD}
    value, (_, again) = told(model_rung(question(has_simulator=True, result=RESULT)), [first, second])
    assert value == Answer("ok", {"papers": 2}, ADD)
    assert "Keep status and result" in again.variables["problems"]
    refused = {"status": "error", "result": "the desk is locked", "patch": []}
    value = told(model_rung(question(has_simulator=True, result=RESULT)), [first, refused]).value
    assert value == Answer("error", "the desk is locked", []), "it may think better of it"


@pytest.mark.parametrize("given", [{"patch": []}, {}])
def test_a_write_without_a_change_is_asked_about_once_then_an_error(question, told, given):
    empty = {"status": "ok", "result": 1, **given}
    asked = question(has_simulator=True)
    assert told(model_rung(asked), [empty, empty]).value.final
    assert told(model_rung(asked), [empty, {**empty, "unchanged": True}]).value == Answer("ok", 1, [])
    assert told(model_rung(asked), [{**empty, "unchanged": True}]).value == Answer("ok", 1, [])


def test_where_nobody_said_that_a_tool_writes_an_empty_patch_is_taken_and_a_missing_one_is_not(question, told):
    asked = question(has_simulator=True, effect=None)
    assert told(model_rung(asked), [{"status": "ok", "result": 1, "patch": []}]).value == Answer("ok", 1, [])
    assert len(told(model_rung(asked), [{"status": "ok", "result": 1}, {"status": "error", "result": "no"}]).asks) == 2


def crowded():
    return {"users": [{"id": f"user {n}", "mail": "lorem ipsum " * 4} for n in range(400)], "count": 400}


def test_what_was_not_shown_is_not_lost(question, told):
    """One patch made 400 users to 1, accepted."""
    lost = {"status": "ok", "result": 1, "patch": [{"op": "replace", "path": "/users", "value": [{"id": "user 1"}]}]}
    asked = question(has_simulator=True, given=crowded(), args={"user": "user 1"})
    value, (_, again) = told(model_rung(asked), [lost, lost])
    assert value.final
    assert "would lose parts that the view leaves out" in again.variables["problems"]


def test_after_a_refused_patch_its_places_are_shown(question, told):
    state = crowded() | {"rooms": {f"room{n}": {f"k{n}_{m}": m for m in range(9)} for n in range(90)}}
    clear = {"status": "ok", "result": 1, "patch": [{"op": "replace", "path": "/rooms/room37", "value": {}}]}
    asked = question(has_simulator=True, given=state, args={"user": "user 1"}, view_chars=1_500)
    value, (first, again) = told(model_rung(asked), [clear, clear])
    assert "k37_5" not in first.variables["state"]
    assert "k37_5" in again.variables["state"]
    assert value == Answer("ok", 1, clear["patch"])


# the reply's schema


def test_the_reply_s_schema_holds_the_form_of_the_tool_s_result(question, told):
    asked = question(
        has_simulator=True, result={**RESULT, "description": "d", "properties": {"papers": {"minimum": 1}}}
    )
    (ask,) = told(model_rung(asked), [{"status": "ok", "result": {"papers": 2}, "patch": ADD}]).asks
    form = {"type": "object", "required": ["papers"], "properties": {"papers": {}}}
    assert ask.schema["properties"]["result"] == {"anyOf": [form, {"type": "string"}]}
    assert ask.schema | {"properties": None} == schema_of(SimulatedEffect) | {"properties": None}
    assert ask.schema is reply_schema(SimulatedEffect, asked.tool.result), "the same object: it is bound once"


@pytest.mark.parametrize(
    "result",
    [
        None, {}, {"description": "anything"}, {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}},
        {"type": "object", "properties": {f"name {n}": {"type": "string"} for n in range(900)}},
    ],
)  # fmt: skip
def test_where_the_form_is_unknown_or_too_long_the_class_s_schema_is_used(result):
    assert reply_schema(SimulatedResponse, result) is None


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (
            {"oneOf": [{"type": "null"}, {"type": "object", "properties": {"a": {"type": "string"}}}]},
            [None, {"a": "x"}],
        ),
        ({"type": "array", "items": {"type": "integer", "minimum": 3}}, [[3, 4]]),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": False}, [["a"]]),
        ({"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": False}, [{"x1": 1}]),
        ({"allOf": [{"type": "object"}, {"required": ["a"]}]}, [{"a": 1}]),
        ({"type": ["string", "null"], "enum": ["a", None]}, ["a", None]),
    ],
)
def test_the_form_allows_whatever_the_schema_allows(schema, values):
    for value in values:
        Draft202012Validator(schema).validate(value)
        Draft202012Validator(form_of(schema)).validate(value)


def test_no_part_of_the_simulator_s_prompt_is_unbounded(question, told):
    schema = {
        "type": "object",
        "properties": {f"a{n}": {"type": "string", "description": "d" * 200} for n in range(900)},
    }
    asked = question(
        has_simulator=True,
        given={"files": {f"f{n}": "x" * 500 for n in range(2_000)}},
        args={"text": "y" * 500_000},
        description="z" * 100_000,
        parameters=schema,
        result=schema,
        facts={
            str(n): {"tool": "put", "args": {"n": n}, "status": "ok", "result": "w" * 9_000, "digest": "d"}
            for n in range(99)
        },
    )
    fits = {"status": "ok", "result": {}, "unchanged": True}
    (ask,) = told(model_rung(asked), [fits]).asks
    assert sum(map(len, ask.variables.values())) < 45_000
    assert {name for name, text in ask.variables.items() if len(text) > 500} == {"tool", "call", "state", "facts"}
