"""Problems: what a source of tools leaves unsaid, or says in a way that no rule can use."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from gecko_graph.contracts.contract import Contract
from gecko_graph.tools import Problem, ToolExample, Toolkit, ToolSpec


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
    tool = ToolSpec(
        name="t",
        parameters=parameters,
        examples=(ToolExample({"a": "x"}, 1), ToolExample({"a": 3}, 1)),
    )
    toolkit = Toolkit([tool, read("fine")])
    assert [(one.tool, one.kind) for one in toolkit.problems] == [
        ("t", "result"),
        ("t", "description"),
        ("t", "effect"),
        ("t", "parameter"),
        ("t", "default"),
        ("t", "pattern"),
        ("t", "default"),
        ("t", "example"),
    ]
    messages = [one.message for one in toolkit.problems]
    assert messages[3] == "the parameter 'd' has no description"
    assert messages[4] == 'the default "y" is outside its own enum: it is never filled in'
    assert messages[6] == "the default 1.0 is outside its own enum: it is never filled in"
    assert messages[7].startswith("the arguments of example 2 do not fit the parameters: ")


def test_an_example_that_does_not_fit_the_result_is_a_problem():
    tool = replace(read("t"), result={"type": "integer"}, examples=(ToolExample({}, "a"),))
    (problem,) = Toolkit([tool]).problems
    assert (problem.kind, problem.message[:43]) == ("example", "the result of example 1 does not fit its sc")


RESULT = {"type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "integer"}}, "required": ["id"]}


@pytest.mark.parametrize(
    ("contract", "message"),
    [
        ({"returns": {"n": "{{ args.n }}"}}, "expected a string; it is required at $.id"),
        ({"returns": {"id": 7}}, "expected a string at $.id"),
        ({"returns": "all of {{ args.n }}"}, "expected an object at $"),
        ({"returns": {"cases": [{"when": "args.n", "value": {"id": "a"}}, {"value": 0}]}}, "expected an object at $"),
        ({"effects": [{"op": "add", "path": ["n"], "value": 1}]}, "no `returns`, and null can never fit"),
    ],
)
def test_a_contract_whose_result_can_never_fit_is_a_problem(contract, message):
    tool = replace(read("t"), result=RESULT, contract=Contract.load(contract, where="t"))
    problems = Toolkit([tool]).problems
    assert {problem.kind for problem in problems} == {"contract"}
    assert any(message in problem.message for problem in problems)


@pytest.mark.parametrize(
    ("contract", "effect", "message"),
    [
        ({"effects": [{"op": "add", "path": ["n"], "value": 1}]}, "read", "its effects are dropped"),
        ({"let": {"a": "{{ args.n }}"}, "returns": {"id": "x"}}, "write", "the let 'a' is never used"),
        ({"requires": [{"check": "1 < 2", "error": "no"}]}, "write", "the check '1 < 2' names nothing"),
        ({"returns": {"id": "state.user.id"}}, "write", 'write "{{ state.user.id }}" for its value'),
        ({"effects": [{"op": "add", "path": ["x"], "value": "args.n"}]}, "write", 'write "{{ args.n }}"'),
        ({"returns": {"id": "x", "nn": 1}}, "write", "'nn', which the result schema does not name (did you mean n?)"),
    ],
)
def test_what_loads_and_comes_to_nothing_is_a_problem(contract, effect, message):
    schema = {key: value for key, value in RESULT.items() if key != "required"}
    tool = replace(read("t"), effect=effect, result=schema, contract=Contract.load(contract, where="t"))
    assert any(message in problem.message for problem in Toolkit([tool]).problems), Toolkit([tool]).problems


def test_the_contracts_that_are_shipped_have_none_of_these_problems():
    for path in ("calendar/calendar", "files/files", "shop/shop"):
        toolkit = Toolkit.from_openapi(f"examples/{path}.openapi.yaml")
        assert [problem for problem in toolkit.problems if problem.kind == "contract"] == []


@pytest.mark.parametrize(
    "contract",
    [
        {"returns": {"id": "{{ args.id }}", "n": "{{ args.n }}"}},
        {"returns": {"{{ args.key }}": 1}},
        {"returns": "{{ args }}"},
        {"requires": [{"check": "args.n", "error": "no"}]},
    ],
)
def test_a_contract_whose_result_may_fit_is_none(contract):
    tool = replace(read("t"), result=RESULT, contract=Contract.load(contract, where="t"))
    assert Toolkit([tool]).problems == []


def test_problems_are_frozen():
    problem = Problem("t", "result", "m")
    with pytest.raises(FrozenInstanceError):
        problem.tool = "u"


def test_problems_of_real_documents(shared_data):
    toolkit = Toolkit.from_openapi(shared_data / "openapi" / "prism_petstore.oas3.yaml")
    unsaid = {one.tool for one in toolkit.problems if one.kind == "result"}
    assert unsaid == {tool.name for tool in toolkit if tool.result is None}


def test_examples_under_branches_that_allow_nothing_are_told_too():
    tool = replace(read("t"), result={"anyOf": [False, False]}, examples=(ToolExample({}, "a"),))
    assert [one.kind for one in Toolkit([tool]).problems] == ["example"]
