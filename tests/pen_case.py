"""A small scenario: a pen is put into a box."""

from __future__ import annotations

import copy

PUT = {"call": "put", "args": {"item": "pen"}}
SAY = {"say": "Done."}
CHECK = {"id": "pen", "description": "the pen is in the box", "check": "'pen' in state.box"}
TEXT = {"type": "string", "minLength": 1}
BODY = {"type": "object", "properties": {"item": TEXT}, "required": ["item"], "additionalProperties": False}
CONTRACT = {
    "requires": [{"check": "args.item not in state.box", "error": "it is in the box"}],
    "effects": [{"op": "add", "path": ["box", "-"], "value": "{{ args.item }}"}],
    "returns": "{{ len(state.box) }}",
}


def json_of(schema):
    return {"content": {"application/json": {"schema": schema}}}


OPERATION = {
    "operationId": "put",
    "description": "Put an item into the box.",
    "requestBody": {"required": True, **json_of(BODY)},
    "responses": {"200": {"description": "ok", **json_of({"type": "integer"})}},
    "x-contract": CONTRACT,
}
OPENAPI = {"openapi": "3.1.0", "info": {"title": "Box", "version": "1"}, "paths": {"/box": {"post": OPERATION}}}
PARAMETERS = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
FUNCTIONS = [{"name": "put", "description": "Put an item into the box.", "parameters": PARAMETERS}]


def case(**changes):
    data = {
        "version": 1,
        "name": "box",
        "tools": OPENAPI,
        "state": {"box": []},
        "turns": [{"user": "Put the pen away.", "checklist": [CHECK], "replies": {"planner": [[PUT, SAY]]}}],
        "limits": {"max_retries": 1},
    }
    return copy.deepcopy(data) | changes


def turn(**changes):
    return [case()["turns"][0] | changes]


def words_of(output):
    return output["rehearsal"]["verdict"]["status"]
