"""The agent with Postgres as checkpointer, where a server can be started."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage
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


def test_what_a_deleted_thread_has_left_is_asked_about(address):
    shop, where = Shop(), thread("deleted")
    (said,) = TASK["messages"]
    task = {**TASK, "messages": [HumanMessage(said[1], id="m1")]}
    with postgres.PostgresSaver.from_conn_string(address) as saver:
        saver.setup()
        for given in (task, Command(resume={"decisions": [APPROVE] * 3})):
            agent_of(shop, saver).invoke(given, where)
        made = [*shop.calls]
        saver.delete_thread("deleted")
        asked = agent_of(shop, saver).invoke(task, where)["__interrupt__"][0].value
        answer = {"id": asked["id"], "decisions": [APPROVE] * 3}
        out = agent_of(shop, saver).invoke(Command(resume=answer), where)
    assert "before the thread was deleted" in out["__interrupt__"][0].value["action_requests"][0]["description"]
    assert shop.calls == made
