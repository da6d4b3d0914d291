"""Result schemas with a branch for errors: a success is made up by the others, and an error body is an error."""

from __future__ import annotations

import pytest

from gecko_graph.schemas.error_bodies import is_error_body, is_error_branch
from gecko_graph.schemas.made_up.maker import make_value
from gecko_graph.world.ladder import climb

TEXT = {"type": "string"}
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
        ({"anyOf": [ERROR, OPEN]}, {"name": "Rex"}, False),
        ({"anyOf": [PET, {**PET, "properties": {"name": TEXT, "error": TEXT}}, ERROR]},
         {"name": "Rex", "error": "thin"}, False),
        ({"anyOf": [PET, BOTH]}, {"name": "Rex", "error": None}, False),
        ({"anyOf": [PET, ERROR]}, {"error": ""}, False),
        (ERROR, {"error": "the only form there is"}, False),
        ({"oneOf": [ERROR, {**ERROR, "title": "Other"}]}, {"error": "no other form"}, False),
        ({"oneOf": 3}, {"error": "x"}, False),
        ({"oneOf": [PET, None, {"$ref": "#/x"}, {"required": 3}]}, {"error": "x"}, False),
        ({"oneOf": [PET, ERROR]}, "error", False),
    ],
)  # fmt: skip
def test_error_bodies(schema, value, is_error):
    assert is_error_body(schema, value) is is_error


def test_a_member_that_is_always_null_tells_no_error():
    result = {"type": "object", "properties": {"error": {"type": "null"}}, "required": ["error"]}
    assert not is_error_branch(result, {})
    assert not is_error_branch({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, {})


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
