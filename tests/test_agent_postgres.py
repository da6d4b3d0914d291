"""The agent with Postgres as checkpointer, where a server can be started."""

from __future__ import annotations

import pytest
from langgraph.types import Command

from evals.reality.postgres import start_postgres

from .agents import APPROVE, make_agent, thread
from .test_agent import PLAN, TASK, Shop

postgres = pytest.importorskip("langgraph.checkpoint.postgres")
pytestmark = pytest.mark.slow


def agent_of(shop: Shop, saver):
    return make_agent(shop.toolkit(), PLAN, interrupt_on="writes", checkpointer=saver)


@pytest.fixture(scope="session")
def address() -> str:
    """Where a Postgres of the tests' own listens, on loopback."""
    return start_postgres() or pytest.skip("no Postgres on this machine")


def test_a_call_in_doubt_is_asked_about_after_the_process_has_gone(address):
    shop, where = Shop(), thread("in doubt")
    shop.failing = [TimeoutError()]
    with postgres.PostgresSaver.from_conn_string(address) as saver:
        saver.setup()
        agent_of(shop, saver).invoke(TASK, where)
        agent_of(shop, saver).invoke(Command(resume={"decisions": [APPROVE] * 3}), where)
    with postgres.PostgresSaver.from_conn_string(address) as saver:
        asked = agent_of(shop, saver).get_state(where).tasks[0].interrupts[0].value
        assert asked["review_configs"][0]["action_name"] == "order"
        out = agent_of(shop, saver).invoke(Command(resume={"id": asked["id"], "decisions": [{"type": "skip"}]}), where)
    assert shop.calls == ["order pen"]
    assert out["execution"]["status"] == "in_doubt"
