"""The converter: one question for each tool without a result schema, and replies that must be JSON Schema."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr, ValidationError

from gecko_graph.models.answer import answer
from gecko_graph.models.factory import Models
from gecko_graph.models.prompts import Prompts
from gecko_graph.testing import failing, recorded
from gecko_graph.tools import Toolkit, ToolSpec
from gecko_graph.tools.converter import TOOL_CHARS, ToolSchema, convert, describe_tool
from gecko_graph.tools.spec import HttpBinding

NUMBER = {"type": "object", "properties": {"area": {"type": "number"}}, "required": ["area"]}


def tools():
    return Toolkit.from_tools(
        [
            {
                "name": "area",
                "description": "Area of a circle.",
                "parameters": {"properties": {"r": {"type": "float"}}},
            },
            {"name": "known", "response": {"type": "string"}},
            {"name": "book"},
        ],
        effects={"area": "read", "known": "read"},
    )


def run(toolkit, model):
    """Drive the generator as a command line would."""
    asking = convert(toolkit)
    try:
        asks = next(asking)
        asking.send(answer(asks, Models.bind(model), None))
    except StopIteration as done:
        return done.value
    raise AssertionError("it asks once")


def test_it_asks_at_once_for_what_has_no_result():
    asks = next(convert(tools()))
    assert [(ask.role, ask.where.question, ask.reply) for ask in asks] == [
        ("converter", 0, ToolSchema),
        ("converter", 1, ToolSchema),
    ]
    assert json.loads(asks[0].variables["tool"]) == {
        "name": "area",
        "description": "Area of a circle.",
        "parameters": {"type": "object", "properties": {"r": {"type": "number"}}, "additionalProperties": False},
        "effect": "read",
    }
    assert asks[0].variables["tool"] in Prompts().render("converter", asks[0].variables).user


def test_nothing_to_ask():
    toolkit = Toolkit.from_tools([{"name": "known", "response": {"type": "string"}}], effects={"known": "read"})
    with pytest.raises(StopIteration) as done:
        next(convert(toolkit))
    assert done.value.value == (toolkit, [])


def test_what_is_missing_is_filled_in_and_what_is_said_stays():
    replies = [
        {"description": "Computes.", "result": NUMBER, "effect": "write"},
        {"description": "Books a room.", "result": {"type": "boolean"}, "effect": "write"},
    ]
    toolkit, failures = run(tools(), recorded(converter=replies))
    assert failures == []
    assert (toolkit["area"].result, toolkit["area"].description, toolkit["area"].effect) == (
        NUMBER,
        "Area of a circle.",
        "read",
    )
    assert (toolkit["book"].result, toolkit["book"].description, toolkit["book"].effect) == (
        {"type": "boolean"},
        "Books a room.",
        "write",
    )
    assert toolkit["known"] == tools()["known"]
    assert [one for one in toolkit.problems if one.kind == "result"] == []
    assert Toolkit.from_openapi(toolkit.to_openapi())["area"].result == NUMBER


def test_a_tool_of_which_only_the_effect_is_unsaid_is_asked_about():
    toolkit = Toolkit.from_tools([{"name": "known", "description": "Saves.", "response": {"type": "string"}}])
    (ask,) = next(convert(toolkit))
    assert json.loads(ask.variables["tool"])["result"] == {"type": "string"}
    completed, failures = run(toolkit, recorded(converter=[{"description": "x", "effect": "write"}]))
    assert failures == []
    assert completed["known"].effect == "write"
    assert (completed["known"].result, completed["known"].description) == ({"type": "string"}, "Saves.")
    _, failures = run(toolkit, failing(ValueError("down")))
    assert failures == ["known: no effect: ValueError: down"]


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"description": "just words"}, "must constrain the result"),
        ({"title": "A", "examples": [1]}, "must constrain the result"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "no value fits"),
        ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "no value fits"),
        ({"not": {}}, "no value fits"),
    ],
)
def test_a_schema_that_says_nothing_or_allows_nothing_is_refused(result, words):
    with pytest.raises(ValidationError, match=words):
        ToolSchema.model_validate({"description": "d", "result": result})


def test_an_unknown_effect_stays_unclear():
    replies = [{"description": "", "result": NUMBER}, {"description": "", "result": NUMBER, "effect": "unknown"}]
    toolkit, _ = run(tools(), recorded(converter=replies))
    assert toolkit["book"].effect is None


def test_failures_are_reported_and_the_tool_stays():
    replies = [{"description": "d", "result": {"type": "circle"}}, {"description": "d", "result": NUMBER}]
    toolkit, failures = run(tools(), recorded(converter=replies))
    assert toolkit["area"] == tools()["area"]
    assert toolkit["book"].result == NUMBER
    (failure,) = failures
    assert failure.startswith("area: no result schema: ")
    assert "circle" in failure


@pytest.mark.parametrize("model", [None, failing(ValueError("down"))])
def test_without_a_model_that_answers(model):
    toolkit, failures = run(tools(), model)
    assert [one.split(":")[0] for one in failures] == ["area", "book"]
    assert toolkit.names == tools().names


class Learning(BaseChatModel):
    """Says something broken first, then what is right; keeps what it was told."""

    said: list[str]
    _heard: list[str] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self):
        return "learning"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self._heard.append(str(messages[-1].content))
        text = self.said[min(len(self._heard), len(self.said)) - 1]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def test_a_schema_that_is_none_is_asked_for_once_more():
    good = json.dumps({"description": "d", "result": NUMBER})
    bad = json.dumps({"description": "d", "result": {"properties": {"area": {"type": "flot"}}}})
    model = Learning(said=[bad, good])
    toolkit, failures = run(Toolkit.from_tools([{"name": "area"}]), model)
    assert failures == []
    assert toolkit["area"].result == NUMBER
    assert "'flot' is not a type" in model._heard[-1]


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"type": "circle"},
        {"properties": []},
        {"$ref": "#/$defs/none"},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "file.json"},
        {"minLength": "1"},
        {"required": True, "title": None},
    ],
)
def test_results_that_are_no_schema(result):
    with pytest.raises(ValidationError):
        ToolSchema(description="d", result=result)


def test_the_schema_comes_out_plain():
    said = {
        "$schema": "x",
        "type": "dict",
        "properties": {"a": {"$ref": "#/definitions/A"}},
        "definitions": {"A": {"type": "float"}},
    }
    read = ToolSchema(description="d", result=said).result
    assert read == {"type": "object", "properties": {"a": {"type": "number"}}}
    Draft202012Validator.check_schema(read)


def test_the_reply_has_the_name_that_models_know():
    assert ToolSchema.model_json_schema()["title"] == "ToolSchema"


def test_where_a_tool_lives_is_told():
    tool = ToolSpec(name="t", binding=HttpBinding("get", "/pets"))
    assert json.loads(describe_tool(tool))["endpoint"] == "GET /pets"


def test_no_prompt_is_unbounded():
    properties = {f"field_{n}": {"type": "string", "description": "d" * 200} for n in range(1_000)}
    tool = ToolSpec(name="huge", description="Does much.", parameters={"type": "object", "properties": properties})
    told = describe_tool(tool)
    assert len(told) <= TOOL_CHARS
    assert "Does much." in told
    assert "field_0" in told
