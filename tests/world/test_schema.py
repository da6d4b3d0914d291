"""The schema rung answers any call, the same call alike; the body of an error is an error, whoever gave it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.schemas.complaints import find_faults, is_error_body
from gecko_graph.schemas.made_up import make_value
from gecko_graph.world.ladder import climb
from gecko_graph.world.rung import Answer, Pass
from gecko_graph.world.rungs import schema_rung
from tests.any_schema import JUNK
from tests.world.conftest import rung_request

TEXT = {"type": "string"}
USER = {
    "type": "object",
    "properties": {"user_id": TEXT, "name": TEXT, "joined_at": {"type": "string", "format": "date-time"}},
    "required": ["user_id", "name", "joined_at"],
}


def answer(name, result, args, *, effect="read", state=None):
    return schema_rung(rung_request(name=name, result=result, args=args, effect=effect, state=state or {}))


def test_equal_arguments_get_one_answer_whatever_their_order_and_the_state():
    one = answer("get_user", USER, {"user_id": "u1", "full": True})
    assert one == answer("get_user", USER, {"full": True, "user_id": "u1"}, state={"now": "2031-01-01", "a": [1]})
    assert find_faults(USER, one.result) == []
    assert one != answer("get_user", USER, {"user_id": "u2"})


@given(JUNK, st.text(max_size=2))
def test_no_schema_breaks_a_run(schema, key):
    said = answer("get_thing", schema, {"a": key})
    assert isinstance(said, Answer | Pass)
    if isinstance(said, Answer) and schema is not None:
        assert find_faults(schema, said.result) == []


@pytest.mark.parametrize(
    ("name", "effect", "patch"), [("get_car", "read", []), ("send", "write", None), ("a", None, None)]
)
def test_without_a_result_schema_a_call_is_done_and_says_no_more(name, effect, patch):
    assert answer(name, None, {"to": "ann"}, effect=effect) == Answer("ok", {"status": "ok"}, patch)


ERROR = {"type": "object", "properties": {"error": TEXT}, "required": ["error"]}
PET = {"type": "object", "properties": {"name": TEXT}, "required": ["name"]}
OPEN = {"type": "object", "properties": {"name": TEXT}}
BOTH = {"type": "object", "properties": {"name": TEXT, "error": {"type": ["string", "null"]}}, "required": ["error"]}
REFERRED = {"$ref": "#/$defs/Answer", "$defs": {"Answer": {"oneOf": [{"$ref": "#/$defs/E"}, PET]}, "E": ERROR}}


@pytest.mark.parametrize(
    ("schema", "value", "is_error"),
    [
        ({"oneOf": [PET, ERROR]}, {"error": "no such pet"}, True),
        ({"anyOf": [ERROR, OPEN]}, {"error": "no such pet"}, True),
        (REFERRED, {"error": "no such pet"}, True),
        ({"oneOf": [PET, ERROR]}, {"name": "Rex"}, False),
        ({"anyOf": [PET, {**PET, "properties": {"name": TEXT, "error": TEXT}}, ERROR]},
         {"name": "Rex", "error": "thin"}, False),
        ({"anyOf": [PET, BOTH]}, {"name": "Rex", "error": None}, False),
        (ERROR, {"error": "the only form there is"}, False),
        ({"oneOf": [PET, None, {"$ref": "#/x"}, {"required": 3}]}, {"error": "x"}, False),
    ],
)  # fmt: skip
def test_error_bodies(schema, value, is_error):
    assert is_error_body(schema, value) is is_error


@pytest.mark.parametrize("schema", [{"oneOf": [ERROR, PET]}, {"anyOf": [PET, ERROR]}, REFERRED])
def test_a_made_up_result_is_a_success(schema):
    for number in range(20):
        assert "name" in make_value(schema, seed=number, key="get_pet", subject="get_pet")
    inside = {"type": "object", "properties": {"pet": {"oneOf": [ERROR, PET]}}, "required": ["pet"]}
    assert "name" in make_value(inside, seed=1, key="get_pet", subject="get_pet")["pet"]


BODY = {"error": "no such pet"}
REPLY = {"status": "ok", "result": BODY, "patch": [{"op": "add", "path": "/x", "value": 1}]}


@pytest.mark.parametrize(
    ("more", "replies", "changes"),
    [
        ({"contract": {"returns": BODY}}, [], False),
        ({"simulate": lambda state: state.update(tries=1) or BODY}, [], True),
        ({"real": lambda: BODY, "opened": True, "effect": "read"}, [], False),
        ({"has_simulator": True}, [REPLY], False),
    ],
)
def test_the_body_of_an_error_is_an_error_whoever_gave_it(question, told, more, replies, changes):
    outcome = told(climb(question(result={"oneOf": [PET, ERROR]}, **more)), replies).value
    assert (outcome["status"], outcome["result"]) == ("error", BODY)
    assert bool(outcome["patch"]) is changes, "only rules know what a failed call changes"
