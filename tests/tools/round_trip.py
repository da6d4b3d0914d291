"""Round trips: a toolkit written as an OpenAPI document, validated, and read back."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from openapi_spec_validator import OpenAPIV30SpecValidator, OpenAPIV31SpecValidator

from gecko_graph.tools import Toolkit, ToolSpec
from gecko_graph.tools.openapi.documents import METHODS


def as_data(tool: ToolSpec):
    """Everything that a document can keep of a tool, as text: `True` and `1` are not the same there."""
    binding = tool.binding
    data = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "result": tool.result,
        "effect": tool.effect,
        "contract": tool.contract and [tool.contract.data, tool.contract.lets],
        "examples": [[one.args, one.result] for one in tool.examples],
        "binding": binding and asdict(replace(binding, responses={})),  # which are the document's own
        "idempotency": tool.idempotency,
    }
    return json.loads(json.dumps(data, sort_keys=True), parse_int=str, parse_float=str)


def check(toolkit: Toolkit, *, validate: bool = True):
    """Write, validate, and read back."""
    document = json.loads(json.dumps(toolkit.to_openapi()))
    if validate:
        errors = [f"{error.message[:200]} at {list(error.absolute_path)}" for error in errors_of(document)]
        assert errors == []
    back = Toolkit.from_openapi(document)
    assert {tool.name: as_data(tool) for tool in back} == {tool.name: as_data(tool) for tool in toolkit}
    assert back.title == toolkit.title
    assert [one.data for one in back.invariants] == [one.data for one in toolkit.invariants]
    return document


def errors_of(document):
    kind = OpenAPIV31SpecValidator if document["openapi"].startswith("3.1") else OpenAPIV30SpecValidator
    return kind(document).iter_errors()


def own_words(document):
    """How many operations need a word of ours, by word."""
    operations = [one for item in document["paths"].values() for method, one in item.items() if method in METHODS]
    keys = [key for one in operations for key in one.get("x-gecko", ())]
    return {key: keys.count(key) for key in keys}
