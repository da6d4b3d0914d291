"""The toolkit itself: an immutable set of tools, names for providers, opened reads, what is said beside the tools."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from langchain_core.tools import tool

from gecko_graph.errors import ToolkitError
from gecko_graph.tools import ToolExample, Toolkit, ToolSpec

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
    assert repr(Toolkit([read("b")])) == "Toolkit(b)"
    assert "and 2 more" in repr(Toolkit([read(str(number)) for number in range(10)]))


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ([read("a"), read("a")], "two tools are called 'a'"),
        ([read(" ")], "a tool has no name"),
        ([len], "expected a ToolSpec.*Toolkit.from_tools"),
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
        (toolkit, "nope", "unknown tool 'nope'; known tools: look, blind, put"),
    ):
        with pytest.raises(ToolkitError, match=message):
            kit.open(name)


def test_replacing_keeps_order_and_the_rest():
    toolkit = Toolkit([read("a"), read("b")], lets={"x": 1}, title="T")
    changed = toolkit.replace(replace(toolkit["a"], description="new"))
    assert [tool.description for tool in changed] == ["new", "d"]
    assert (changed.title, changed.lets) == ("T", {"x": 1})
    assert toolkit["a"].description == "d"
    with pytest.raises(ToolkitError, match="cannot replace: unknown tool 'c'"):
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


def test_state_keys_come_from_contracts():
    contracts = {
        "a": {"requires": [{"check": "state.tree.x == 1", "error": "no"}]},
        "b": {"returns": "{{ state['cwd'] }}"},
    }
    toolkit = Toolkit.from_tools([{"name": "a"}, {"name": "b"}, {"name": "c"}], contracts=contracts)
    assert toolkit.state_keys == {"tree", "cwd"}
    assert Toolkit([]).state_keys == frozenset()


def test_contracts_functions_effects_and_examples_by_name():
    toolkit = Toolkit.from_tools(
        [{"name": "search"}, {"name": "put", "parameters": {"properties": {"q": {}}}}],
        contracts={"put": {"returns": "{{ here }}"}},
        lets={"here": "{{ state.tree }}"},
        invariants=[{"check": "state.tree is mapping", "error": "gone"}],
        simulate={"search": lambda state, **args: {"found": 1}},
        effects={"search": "read", "put": "write"},
        examples={"search": [{"args": {"query": "a"}, "result": {}}, ToolExample({"query": "b"}, {})]},
        title="Shelf",
    )
    assert toolkit["search"].simulate({}, query="a") == {"found": 1}
    assert toolkit["search"].effect == "read"
    assert toolkit["search"].examples == (ToolExample({"query": "a"}, {}), ToolExample({"query": "b"}, {}))
    assert toolkit["put"].contract.data == {"returns": "{{ here }}"}
    assert toolkit.state_keys == {"tree"}
    assert (toolkit.title, toolkit.lets, len(toolkit.invariants)) == ("Shelf", {"here": "{{ state.tree }}"}, 1)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"effects": {"nope": "read"}}, "effect: unknown tool 'nope'; known tools: search"),
        ({"simulate": {"nope": print}}, "simulate: unknown tool 'nope'"),
        ({"contracts": {"nope": {}}}, "contract: unknown tool 'nope'"),
        ({"examples": {"nope": []}}, "examples: unknown tool 'nope'"),
        ({"effects": {"search": "reads"}}, "must be 'read' or 'write', not 'reads'"),
        ({"examples": {"search": [{"args": 1, "result": 2}]}}, "examples: each of 'search' must be"),
        ({"contracts": {"search": {"reqires": []}}}, "contract of search"),
        ({"simulate": print}, "simulate: expected {'tool name': ...}, got builtin"),
        ({"effects": ["read"]}, "effects: expected {'tool name': ...}, got list"),
        ({"simulate": {"search": "print"}}, "simulate for 'search': expected a function, got str"),
    ],
)
def test_what_is_said_must_be_said_of_a_tool(said, message):
    with pytest.raises(ToolkitError, match=re.escape(message)):
        Toolkit.from_tools([{"name": "search"}], **said)


def put(tray: str, paper: str = "") -> None:
    """Put a paper into a tray."""


@pytest.mark.parametrize(
    ("simulate", "why"),
    [
        (put, "multiple values for argument 'tray'"),
        (lambda tray, paper="": None, "multiple values for argument 'tray'"),
        (lambda state, tray: None, "got an unexpected keyword argument 'paper'"),
        (lambda state, tray, paper: None, "missing a required argument: 'paper'"),
        (lambda state, tray, paper="", *, drawer: None, "missing a required argument: 'drawer'"),
        (lambda: None, "too many positional arguments"),
    ],
)
def test_a_simulate_function_takes_the_state_and_the_tool_s_arguments(simulate, why):
    with pytest.raises(ToolkitError, match=re.escape(why)) as caught:
        Toolkit.from_tools([put], simulate={"put": simulate})
    assert str(caught.value).endswith("def simulate(state, tray, paper=None)")


@pytest.mark.parametrize("simulate", [lambda state, tray, paper="": None, lambda state, **args: None, dict])
def test_a_simulate_function_that_can_be_called_so_is_taken(simulate):
    assert Toolkit.from_tools([put], simulate={"put": simulate})["put"].simulate is simulate


@pytest.mark.parametrize("tools", ["files.yaml", 3, b"x", put, ToolSpec, tool(put), lambda: None])
def test_tools_must_be_a_list(tools):
    with pytest.raises(ToolkitError, match="expected a list of tools"):
        Toolkit.from_tools(tools)


def test_open_takes_names():
    with pytest.raises(ToolkitError, match=re.escape("expected tool names, open('a', 'b'), got list")):
        Toolkit([read("a", real=len)]).open(["a"])


def test_a_documented_result_schema_can_be_corrected():
    function = {"name": "tickets", "parameters": {"type": "object", "properties": {}}, "response": {"type": "object"}}
    corrected = Toolkit.from_tools([function], results={"tickets": {"type": "array"}})
    assert corrected["tickets"].result == {"type": "array"}
    with pytest.raises(ToolkitError, match="did you mean tickets"):
        Toolkit.from_tools([function], results={"ticket": {}})
