"""Worlds whose tools have nothing but what was derived of their document."""

import pytest

from gecko_graph import GeckoContext, Toolkit, World, derive_contracts
from gecko_graph.context import LADDER
from gecko_graph.tools.function_dicts import tool_descriptions

RULES = GeckoContext(semantic_validation=False, ladder=tuple(rung for rung in LADDER if rung != "model"))


@pytest.fixture
def living():
    """Return a function: a world of a document, empty if no state is given, and a function that calls its tools."""

    def begin(document, state=None, **more):
        is_list = isinstance(document, list)
        described = tool_descriptions(document, where="tools") if is_list else None
        toolkit = Toolkit.from_tools(described) if is_list else Toolkit.from_openapi(document)
        derived = derive_contracts(toolkit, state)
        start = {key: {} for key in derived.made} if state is None else state
        world = World(toolkit.with_contracts(derived.file), state=start, context=RULES, **more)

        def call(tool, /, **args):
            step = world.call({"name": tool, "args": args})
            assert "outcome" in step, step
            return step["outcome"]

        call.world = world
        return call

    return begin
