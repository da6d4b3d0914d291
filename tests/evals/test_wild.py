"""The suite `wild`: what it counts of a document, and that `jsonschema` judges beside it."""

from __future__ import annotations

import json

from evals.harness.figures import Case
from evals.wild import documents
from evals.wild.documents import Judge, flagged

CODE = {
    "type": "object",
    "required": ["id", "title"],
    "properties": {"id": {"readOnly": True}, "title": {"type": "string"}},
}
DOCUMENT = {
    "openapi": "3.0.0",
    "info": {"title": "t", "version": "1"},
    "components": {"schemas": {"Code": CODE}},
    "paths": {
        "/a": {
            "post": {
                "operationId": "add",
                "requestBody": {
                    "content": {
                        "application/json": {
                            "schema": {"$ref": "#/components/schemas/Code"},
                            "examples": {"good": {"value": {"title": "a", "id": 1}}, "bad": {"value": {"title": 7}}},
                        }
                    }
                },
                "responses": {"200": {"description": "", "content": {"application/json": {"schema": {"enum": []}}}}},
            }
        },
        "/b": {"get": 7},
    },
}


def test_what_is_counted_of_a_document(tmp_path):
    path = tmp_path / "api.json"
    path.write_text(json.dumps(DOCUMENT))
    found = documents.run(Case("api", path))
    assert (found["operations"], found["loaded"], found["corners"]) == (1, 1, 1)
    assert (found["request_examples"], found["request_by_jsonschema"], found["request_accepted"]) == (2, 1, 1)
    assert found["request_refused"] == ["post /a application/json bad: /title: expected a string"]
    assert found["request_refused_alone"] == []
    assert found["read_back"] == found["requests"] == 2


def test_what_is_no_document_is_refused_and_said(tmp_path):
    path = tmp_path / "part.yaml"
    path.write_text("type: object")
    assert "no key 'openapi'" in documents.run(Case("part", path))["refused"]


def test_the_judge_follows_references_and_leaves_out_what_is_read_only():
    judge = Judge(DOCUMENT)
    reference = {"$ref": "#/components/schemas/Code"}
    assert judge.accepts(reference, {"title": "a"}, "request") is True
    assert judge.accepts(reference, {"title": "a"}, "response") is False
    assert judge.accepts({"$ref": "#/nowhere"}, {}, "request") is None
    assert judge.accepts({"type": "string", "nullable": True}, None, "request") is True
    assert [*flagged(DOCUMENT, "readOnly")] == ["id"]
