"""`time_budget_s` bounds the models' replies: a server that stalls does not hold a turn."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel

from gecko_graph import GeckoContext, create_gecko
from gecko_graph.models.node import NodeScope, find_deadline, silent
from tests import desk

LONG = 30


class Stalled(BaseChatModel):
    """A model that does not answer, however often its client tries."""

    over: Any

    @property
    def _llm_type(self):
        return "stalled"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.over.wait(LONG)
        raise AssertionError("it was waited for")

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        await asyncio.sleep(LONG)
        raise AssertionError("it was waited for")


@pytest.fixture
def stalled():
    model = Stalled(over=Event())
    yield model
    model.over.set()


def invoke(gecko, how, given, config=None):
    if how == "sync":
        return gecko.invoke(given, config)
    return asyncio.run(asyncio.wait_for(gecko.ainvoke(given, config), LONG))


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("checklist", [True, False])
def test_a_stalled_model_ends_the_turn_when_its_time_is_over(stalled, how, checklist):
    context = GeckoContext(time_budget_s=0.3)
    gecko = create_gecko(desk.toolkit(), model=stalled, context=context)
    given = {key: value for key, value in desk.inputs().items() if checklist or key != "checklist"}
    begun = time.monotonic()
    run = invoke(gecko, how, given)
    assert time.monotonic() - begun < LONG / 2
    rehearsal = run["rehearsal"]
    assert rehearsal["verdict"]["status"] == "failed"
    assert "time_budget_s" in rehearsal["attempts"][-1]["stop_reason"]
    assert len(rehearsal["attempts"]) == 1


def test_the_node_that_opens_a_turn_has_the_whole_time():
    scope = NodeScope(GeckoContext(time_budget_s=60), silent, bool, opens_turn=True)
    old = {"ledger": {"turn": 1, "started_at": 100.0}}
    assert find_deadline(old, scope) > time.time()
    assert find_deadline({}, replace(scope, opens_turn=False)) > time.time()
    assert find_deadline(old, replace(scope, opens_turn=False)) == 160.0
    assert find_deadline({**old, "deadline": 120.0}, replace(scope, opens_turn=False)) == 120.0
    assert find_deadline(old, replace(scope, context=GeckoContext())) is None
