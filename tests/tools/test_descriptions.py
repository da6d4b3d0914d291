"""Tools in words: the converter's questions, tools in brief, and the problems of what is left unsaid."""

from dataclasses import replace

import pytest
from pydantic import ValidationError

from gecko_graph import Models
from gecko_graph.contracts.contract import Contract
from gecko_graph.models.answer import answer
from gecko_graph.testing import recorded
from gecko_graph.tools import Tool, ToolExample, Toolkit, ToolSpec
from gecko_graph.tools.descriptions import (
    TOOL_CHARS,
    TOOLS_CHARS,
    CheckedToolSchema,
    convert,
    describe_tool,
    format_tools,
    strip_boilerplate,
)
from gecko_graph.tools.spec import HttpBinding

NUMBER = {"type": "object", "properties": {"area": {"type": "number"}}, "required": ["area"]}


def tools():
    parameters = {"properties": {"r": {"type": "float"}}}
    area = {"name": "area", "description": "Area of a circle.", "parameters": parameters}
    known = {"name": "known", "response": {"type": "string"}}
    return Toolkit.from_tools([Tool(area, effect="read"), Tool(known, effect="read"), {"name": "book"}])


def run(toolkit, model):
    """Drive the generator as a command line would."""
    asking = convert(toolkit)
    try:
        asks = next(asking)
        asking.send(answer(asks, Models(model), None))
    except StopIteration as done:
        return done.value
    raise AssertionError("it asks once")


def test_what_is_missing_is_filled_in_and_what_is_said_stays():
    replies = [
        {"description": "Computes.", "result": NUMBER, "effect": "write"},
        {"description": "Books a room.", "result": {"type": "boolean"}, "effect": "write"},
    ]
    toolkit, failures = run(tools(), recorded(converter=replies))
    assert failures == []
    area, book = ((tool.result, tool.description, tool.effect) for tool in (toolkit["area"], toolkit["book"]))
    assert area == (NUMBER, "Area of a circle.", "read")
    assert book == ({"type": "boolean"}, "Books a room.", "write")
    assert toolkit["known"] == tools()["known"]
    assert [one for one in toolkit.problems if one.kind == "result"] == []
    assert Toolkit.from_openapi(toolkit.to_openapi())["area"].result == NUMBER


@pytest.mark.parametrize(("result", "words"), [
    ({"title": "A", "examples": [1]}, "must constrain the result"),
    ({"type": "integer", "minimum": 3, "maximum": 2}, "no value fits"),
    ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "no value fits"),
    *(({"type": "circle"}, "'circle'"), ({"minLength": "1"}, "result"), ({"properties": []}, "result")),
    *(({"$ref": ref}, "result") for ref in ("#/$defs/none", "https://example.com/schema.json", "file.json")),
])  # fmt: skip
def test_a_schema_that_is_none_says_nothing_or_allows_nothing_is_refused(result, words):
    with pytest.raises(ValidationError, match=words):
        CheckedToolSchema.model_validate({"description": "d", "result": result})


def test_failures_are_reported_and_the_tool_stays():
    replies = [{"description": "d", "result": {"type": "circle"}}, {"description": "d", "result": NUMBER}]
    toolkit, failures = run(tools(), recorded(converter=replies))
    assert toolkit["area"] == tools()["area"]
    assert toolkit["book"].result == NUMBER
    (failure,) = failures
    assert failure.startswith("area: no result schema: ")
    assert "circle" in failure


def test_no_prompt_is_unbounded():
    properties = {f"field_{n}": {"type": "string", "description": "d" * 200} for n in range(1_000)}
    parameters, binding = {"type": "object", "properties": properties}, HttpBinding("get", "/pets")
    told = describe_tool(ToolSpec(name="huge", description="Does much.", parameters=parameters, binding=binding))
    assert "GET /pets" in told
    assert len(told) <= TOOL_CHARS
    assert "Does much." in told
    assert "field_0" in told
    many = [spec(f"tool_{n}", "words " * 500, **{f"p{m}": "x" * 500 for m in range(20)}) for n in range(300)]
    assert len(format_tools(many, called=[f"tool_{n}" for n in range(50)])) <= TOOLS_CHARS


COMMON = "This tool belongs to the travel system, which allows users to book flights. Tool description: "


def spec(name, description, **parameters):
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    parameters = {"type": "object", "properties": properties}
    return ToolSpec(name=name, description=COMMON + description, parameters=parameters)


FEW = [
    spec("book_flight", "Book a flight. Codes are IATA.", origin="airport code", to=""),
    spec("cancel_booking", "Cancel a booking."),
    spec("get_balance", "Get the balance of a card."),
]


def test_what_was_called_comes_first_with_its_parameters_and_the_rest_in_brief():
    assert format_tools(FEW, called=["get_balance", "book_flight", "fly"]).splitlines() == [
        "book_flight(origin: airport code, to): Book a flight. Codes are IATA.",
        "get_balance(): Get the balance of a card.",
        "cancel_booking: Cancel a booking.",
    ]


def test_what_three_or_more_begin_with_is_left_out_and_what_has_no_description_is_shown_by_its_path():
    told = ["Shop. Buy a thing.", "Shop. Sell a thing.", "Shop. Look.", "Mail. Send it.", "Mail. Read it.", "Shop."]
    assert strip_boilerplate(told) == ["Buy a thing.", "Sell a thing.", "Look.", *told[3:]]
    tools = Toolkit.from_openapi({"openapi": "3.1.0", "paths": {"/pens/{id}": {"get": {"operationId": "a"}}}})
    assert tools.as_openai()[0]["function"]["description"] == "GET /pens/{id}"
    assert format_tools(tools) == "a: GET /pens/{id}"
    assert tools.to_openapi()["paths"]["/pens/{id}"]["get"].get("description") is None


def read(name, **more):
    return ToolSpec(name=name, description="d", effect="read", result={}, **more)


def test_problems_say_what_is_unsaid():
    parameters = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "enum": ["x"], "default": "y", "description": "d"},
            "b": {"$ref": "#/$defs/B"},
            "c": {"type": "string", "pattern": r"(?<=a)\1", "description": "d"},
            "d": True,
            "e": {"type": "array", "items": {"enum": [1], "default": 1.0}, "description": "d"},
            "f": {"enum": [None, 1], "default": None, "description": "d"},
        },
        "$defs": {"B": {"type": "integer", "description": "said here"}},
    }
    tool = ToolSpec(name="t", parameters=parameters, examples=(ToolExample({"a": "x"}, 1), ToolExample({"a": 3}, 1)))
    toolkit = Toolkit([tool, read("fine")])
    kinds = ["result", "description", "effect", "parameter", "default", "pattern", "default", "example"]
    assert [(one.tool, one.kind) for one in toolkit.problems] == [("t", kind) for kind in kinds]
    messages = [one.message for one in toolkit.problems]
    for number, words in {3: "parameter 'd'", 4: 'default "y"', 6: "default 1.0", 7: "arguments of example 2"}.items():
        assert words in messages[number]


RESULT = {"type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "integer"}}, "required": ["id"]}


@pytest.mark.parametrize(("contract", "message"), [
    ({"returns": {"n": "{{ args.n }}"}}, "expected a value at /id: it is required"),
    ({"returns": {"id": 7}}, "expected a text at /id"), ({"returns": "all of {{ args.n }}"}, "expected an object"),
    ({"returns": {"cases": [{"when": "args.n", "value": {"id": "a"}}, {"value": 0}]}}, "expected an object"),
    ({"effects": [{"op": "add", "path": ["n"], "value": 1}]}, "no `returns`, and null can never fit"),
])  # fmt: skip
def test_a_contract_whose_result_can_never_fit_is_a_problem(contract, message):
    tool = replace(read("t"), result=RESULT, contract=Contract.load(contract, where="t"))
    problems = Toolkit([tool]).problems
    assert {problem.kind for problem in problems} == {"contract"}
    assert any(message in problem.message for problem in problems)


@pytest.mark.parametrize(("contract", "effect", "message"), [
    ({"effects": [{"op": "add", "path": ["n"], "value": 1}]}, "read", "its effects are dropped"),
    ({"returns": {"id": "state.user.id"}}, "write", 'write "{{ state.user.id }}" for its value'),
    ({"effects": [{"op": "add", "path": ["x"], "value": "args.n"}]}, "write", 'write "{{ args.n }}"'),
    ({"returns": {"id": "x", "nn": 1}}, "write", "'nn', which the result schema does not name (did you mean n?)"),
])  # fmt: skip
def test_what_loads_and_comes_to_nothing_is_a_problem(contract, effect, message):
    schema = {key: value for key, value in RESULT.items() if key != "required"}
    tool = replace(read("t"), effect=effect, result=schema, contract=Contract.load(contract, where="t"))
    assert any(message in problem.message for problem in Toolkit([tool]).problems), Toolkit([tool]).problems


@pytest.mark.parametrize("contract", [{"returns": {"{{ args.key }}": 1}}, {"returns": "{{ args }}"}])
def test_a_contract_whose_result_may_fit_is_none(contract):
    tool = replace(read("t"), result=RESULT, contract=Contract.load(contract, where="t"))
    assert Toolkit([tool]).problems == []
