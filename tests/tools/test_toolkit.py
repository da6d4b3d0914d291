"""The toolkit itself: an immutable set of tools, names for providers, opened reads, what is said beside the tools."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import tool

from gecko_graph.errors import GeckoError, ToolkitError
from gecko_graph.tools import Tool, Toolkit, ToolSpec
from gecko_graph.tools.spec import provider_names, valid_name

VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def read(name, **more):
    return ToolSpec(name=name, description="d", effect="read", result={}, **more)


@pytest.mark.parametrize(("tools", "message"), [
    ([read("a"), read("a")], "two tools are called 'a'"), ([read(" ")], "a tool has no name"),
    ([len], "expected a ToolSpec.*Toolkit.from_tools"),
    ([replace(read("a", real=len), effect="write", opened=True)], "cannot open 'a': only reads"),
    ([read("a", opened=True)], "cannot open 'a': it has no real function"),
])  # fmt: skip
def test_what_it_refuses(tools, message):
    with pytest.raises(ToolkitError, match=message):
        Toolkit(tools)


@pytest.mark.parametrize(("name", "hint"), [("pays", r" \(did you mean pay\?\)"), ("nope", "; known tools: pay, look")])
def test_an_unknown_tool_is_a_key_error_that_names_it_and_the_nearest_or_known_ones(name, hint):
    with pytest.raises(KeyError, match=f"unknown tool '{name}'{hint}"):
        Toolkit([read("pay"), read("look")])[name]


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
    with pytest.raises(ToolkitError, match="expected tool names"):
        toolkit.open(["look"])


def test_state_keys_come_from_contracts():
    guard = {"requires": [{"check": "state.tree.x == 1", "error": "no"}]}
    contracts = {"a": guard, "b": {"returns": "{{ state['cwd'] }}"}}
    toolkit = Toolkit.from_tools([{"name": "a"}, {"name": "b"}, {"name": "c"}]).with_contracts({"contracts": contracts})
    assert toolkit.state_keys == {"tree", "cwd"}
    assert Toolkit([]).state_keys == frozenset()


@pytest.mark.parametrize(("said", "message"), [
    (Tool("nope", effect="read"), "unknown tool 'nope'; known tools: search"),
    (Tool(print, effect="read"), "expected Tool('name', ...)"),
    (Tool("search", effect="reads"), "must be 'read' or 'write', not 'reads'"),
    (Tool("search", examples=[{"args": 1, "result": 2}]), "examples: each of 'search' must be"),
    (Tool("search", contract={"reqires": []}), "contract of search"),
    (Tool("search", simulate="print"), "simulate for 'search': expected a function, got str"),
])  # fmt: skip
def test_what_is_declared_must_hold_of_a_tool(said, message):
    with pytest.raises(GeckoError, match=re.escape(message)):
        Toolkit.from_tools([{"name": "search"}]).declare(said)


def put(tray: str, paper: str = "") -> None:
    """Put a paper into a tray."""


@pytest.mark.parametrize(("simulate", "why"), [
    (put, "multiple values for argument 'tray'"),
    (lambda state, tray: None, "got an unexpected keyword argument 'paper'"),
    (lambda state, tray, paper: None, "missing a required argument: 'paper'"),
    (lambda state, tray, paper="", *, drawer: None, "missing a required argument: 'drawer'"),
    (lambda: None, "too many positional arguments"),
])  # fmt: skip
def test_a_simulate_function_takes_the_state_and_the_tool_s_arguments(simulate, why):
    with pytest.raises(ToolkitError, match=re.escape(why)) as caught:
        Toolkit.from_tools([Tool(put, simulate=simulate)])
    assert str(caught.value).endswith("def simulate(state, tray, paper=None)")
    for simulate in (lambda state, tray, paper="": None, lambda state, **args: None, dict):
        assert Toolkit.from_tools([Tool(put, simulate=simulate)])["put"].simulate is simulate


@given(st.lists(st.text(min_size=1, max_size=80), unique=True, max_size=12))
def test_every_provider_takes_the_names_and_each_is_given_once(names):
    found = provider_names(names)
    assert list(found) != [] or names == []
    assert set(found) == set(names)
    assert len(set(found.values())) == len(names)
    assert all(valid_name(one) == one for one in found.values())
    assert all(VALID.fullmatch(one) for one in found.values())
    assert all(found[name] == name for name in names if VALID.fullmatch(name))


def test_a_coroutine_function_runs_in_the_callers_event_loop():
    """Sessions of an async client belong to one loop: in another one they hang or raise."""
    loops = []

    async def look(x: int) -> dict:
        """Look."""
        loops.append(asyncio.get_running_loop())
        return {"x": x}

    async def call() -> bool:
        (tool,) = Toolkit.from_tools([Tool(look, effect="read")]).as_tools()
        return (await tool.ainvoke({"x": 1})) == '{"x": 1}' and loops == [asyncio.get_running_loop()]

    assert asyncio.run(call())


@pytest.mark.parametrize("tools", ["files.yaml", 3, put, ToolSpec, tool(put)])
def test_tools_must_be_a_list(tools):
    with pytest.raises(ToolkitError, match="expected a list of tools"):
        Toolkit.from_tools(tools)
