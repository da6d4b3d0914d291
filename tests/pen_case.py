"""A small scenario: a pen is put into a box."""

from __future__ import annotations

import copy

PUT = {"call": "put", "args": {"item": "pen"}}
SAY = {"say": "Done."}
CHECK = {"id": "pen", "description": "the pen is in the box", "check": "'pen' in state.box"}
OPENAPI = {
    "openapi": "3.1.0",
    "info": {"title": "Box", "version": "1"},
    "paths": {
        "/box": {
            "post": {
                "operationId": "put",
                "description": "Put an item into the box.",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "properties": {"item": {"type": "string", "minLength": 1}},
                                "required": ["item"],
                                "additionalProperties": False,
                            }
                        }
                    },
                },
                "responses": {
                    "200": {"description": "ok", "content": {"application/json": {"schema": {"type": "integer"}}}}
                },
                "x-contract": {
                    "requires": [{"check": "args.item not in state.box", "error": "it is in the box"}],
                    "effects": [{"op": "add", "path": ["box", "-"], "value": "{{ args.item }}"}],
                    "returns": "{{ len(state.box) }}",
                },
            }
        }
    },
}
FUNCTIONS = [
    {
        "name": "put",
        "description": "Put an item into the box.",
        "parameters": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
    }
]


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
