"""Sync and async."""

from __future__ import annotations

import asyncio

import pytest


@pytest.fixture(params=["sync", "async"])
def run(request):
    """Run an agent with its input."""

    def run(agent, given, config=None):
        if request.param == "sync":
            return agent.invoke(given, config)
        return asyncio.run(agent.ainvoke(given, config))

    return run
