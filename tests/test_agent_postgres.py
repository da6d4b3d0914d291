"""The agent with Postgres as checkpointer, where a server can be started."""

from __future__ import annotations

import pytest
from langgraph.types import Command

from evals.reality.postgres import start_postgres
from gecko_graph import Models, create_gecko_agent
from gecko_graph.testing import recorded

from .test_agent import APPROVE, PLAN, TASK, Shop, thread

postgres = pytest.importorskip("langgraph.checkpoint.postgres")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def address() -> str:
    """Where a Postgres of the tests' own listens, on loopback."""
    return start_postgres() or pytest.skip("no Postgres on this machine")


def agent_of(shop: Shop, saver):
    return create_gecko_agent(shop.toolkit(), model=Models(planner=recorded(planner=[PLAN])), checkpointer=saver)


def test_a_call_in_doubt_is_asked_about_after_the_process_has_gone(address):
    shop, where = Shop(), thread("in doubt")
    shop.failing = [TimeoutError()]
    with postgres.PostgresSaver.from_conn_string(address) as saver:
        saver.setup()
        agent_of(shop, saver).invoke(TASK, where)
        agent_of(shop, saver).invoke(Command(resume={"decisions": [APPROVE] * 3}), where)
    with postgres.PostgresSaver.from_conn_string(address) as saver:
        state = agent_of(shop, saver).get_state(where)
        asked = state.tasks[0].interrupts[0].value
        assert asked["review_configs"][0]["action_name"] == "order"
        out = agent_of(shop, saver).invoke(Command(resume={"id": asked["id"], "decisions": [{"type": "skip"}]}), where)
    assert shop.calls == ["order pen"]
    assert out["execution"]["status"] == "in_doubt"


async def test_async(address):
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    shop, where = Shop(), thread("async")
    async with AsyncPostgresSaver.from_conn_string(address) as saver:
        await saver.setup()
        agent = agent_of(shop, saver)
        await agent.ainvoke(TASK, where)
        out = await agent.ainvoke(Command(resume={"decisions": [APPROVE] * 3}), where)
    assert out["task_state"]["orders"] == shop.orders
