"""The toolkit itself: an immutable set of tools, names for providers, opened reads, problems."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.contracts.contract import Contract
from gecko_graph.errors import ToolkitError
from gecko_graph.toolkit import Problem, ToolExample, Toolkit, ToolSpec
from gecko_graph.toolkit.names import provider_names, valid_name

VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def read(name, **more):
    return ToolSpec(name=name, description="d", effect="read", result={}, **more)


def test_it_is_a_set_in_order():
    toolkit = Toolkit([read("b"), read("a")], title="T")
    assert [tool.name for tool in toolkit] == ["b", "a"] == list(toolkit.names)
    assert len(toolkit) == 2
    assert "a" in toolkit
    assert "c" not in toolkit
    assert toolkit["a"].name == "a"
    assert toolkit.get("c") is None
    with pytest.raises(KeyError):
        toolkit["c"]
    assert repr(toolkit) == "Toolkit('T': b, a)"
    assert "and 2 more" in repr(Toolkit([read(str(number)) for number in range(10)]))


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ([read("a"), read("a")], "two tools are called 'a'"),
        ([read(" ")], "a tool has no name"),
        ([len], "no ToolSpec; use Toolkit.from_tools"),
        ([replace(read("a", real=len), effect="write", opened=True)], "cannot open 'a': only reads"),
        ([read("a", opened=True)], "cannot open 'a': it has no real function"),
    ],
)
def test_what_it_refuses(tools, message):
    with pytest.raises(ToolkitError, match=message):
        Toolkit(tools)


def test_opening_reads_and_nothing_else():
    toolkit = Toolkit([read("look", real=len), read("blind"), ToolSpec(name="put", effect="write", real=len)])
    unclear = Toolkit([ToolSpec(name="what", real=len)])
    opened = toolkit.open("look")
    assert opened["look"].opened
    assert not toolkit["look"].opened
    assert not opened["blind"].opened
    assert toolkit.open().names == toolkit.names
    for kit, name, message in (
        (toolkit, "put", "only reads can be opened"),
        (unclear, "what", "only reads can be opened"),
        (toolkit, "blind", "no real function"),
        (toolkit, "nope", "there is no such tool; there are look, blind, put"),
    ):
        with pytest.raises(ToolkitError, match=message):
            kit.open(name)


def test_replacing_keeps_order_and_the_rest():
    toolkit = Toolkit([read("a"), read("b")], lets={"x": 1}, title="T")
    changed = toolkit.replace(replace(toolkit["a"], description="new"))
    assert [tool.description for tool in changed] == ["new", "d"]
    assert (changed.title, changed.lets) == ("T", {"x": 1})
    assert toolkit["a"].description == "d"
    with pytest.raises(ToolkitError, match="cannot replace 'c'"):
        toolkit.replace(read("c"))


def test_names_for_providers_lead_back():
    toolkit = Toolkit([read("math.hypot"), read("math_hypot"), read("über größe"), read("x" * 70)])
    given_names = [one["function"]["name"] for one in toolkit.as_openai()]
    assert given_names[:3] == ["math_hypot_2", "math_hypot", "ber_gr_e"]
    assert [toolkit.resolve(name) for name in given_names] == list(toolkit.names)
    assert toolkit.resolve("math.hypot") == "math.hypot"
    assert toolkit.resolve("unknown") == "unknown"


def test_function_dicts_for_bind_tools():
    parameters = {"type": "object", "properties": {"a": {"type": "integer"}}}
    (one,) = Toolkit([read("f", parameters=parameters)]).as_openai()
    assert one == {"type": "function", "function": {"name": "f", "description": "d", "parameters": parameters}}


@given(st.lists(st.text(min_size=1, max_size=80), unique=True, max_size=12))
def test_every_provider_takes_the_names_and_each_is_given_once(names):
    found = provider_names(names)
    assert list(found) != [] or names == []
    assert set(found) == set(names)
    assert len(set(found.values())) == len(names)
    assert all(VALID.fullmatch(one) for one in found.values())
    assert all(found[name] == name for name in names if VALID.fullmatch(name))


@given(st.text(max_size=200))
def test_a_name_is_valid_and_stays_so(name):
    assert VALID.fullmatch(valid_name(name))
    assert valid_name(valid_name(name)) == valid_name(name)


def test_state_keys_come_from_contracts():
    contracts = {
        "a": {"requires": [{"check": "state.tree.x == 1", "error": "no"}]},
        "b": {"returns": "{{ state['cwd'] }}"},
    }
    toolkit = Toolkit.from_tools([{"name": "a"}, {"name": "b"}, {"name": "c"}], contracts=contracts)
    assert toolkit.state_keys == {"tree", "cwd"}
    assert Toolkit([]).state_keys == frozenset()


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
    (problem,) = Toolkit([tool]).problems
    assert problem.kind == "contract"
    assert message in problem.message


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
