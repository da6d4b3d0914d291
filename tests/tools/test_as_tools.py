"""A toolkit's tools as LangChain tools."""

from __future__ import annotations

import asyncio

from gecko_graph import Toolkit


def test_a_coroutine_function_runs_in_the_callers_event_loop():
    """Sessions of an async client belong to one loop: in another one they hang or raise."""
    loops = []

    async def look(x: int) -> dict:
        """Look."""
        loops.append(asyncio.get_running_loop())
        return {"x": x}

    async def call() -> bool:
        (tool,) = Toolkit.from_tools([look], effects={"look": "read"}).as_tools()
        return (await tool.ainvoke({"x": 1})) == '{"x": 1}' and loops == [asyncio.get_running_loop()]

    assert asyncio.run(call())
