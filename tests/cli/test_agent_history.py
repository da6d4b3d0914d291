"""`history` of an agent's thread: what it asks, what it really did, and how far reality left the plan."""

from contextlib import contextmanager

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from gecko_graph import Models, Refused
from gecko_graph.agent.graph import create_gecko_agent
from gecko_graph.display.words import format_execution
from gecko_graph.testing import recorded
from tests.test_agent import PLAN, TASK, Shop

THREAD = {"configurable": {"thread_id": "t"}}
AGAIN = [{"call": "order", "args": {"item": "ink", "quantity": 1}}, {"say": "Ordered."}]
APPROVED = Command(resume={"decisions": [{"type": "approve"}] * 3})


@pytest.fixture
def opened(tmp_path):
    """`with opened(shop, attempts) as agent`: an agent whose thread is saved in `runs.sqlite`."""

    @contextmanager
    def make(shop, *turns, interrupt_on="writes"):
        with SqliteSaver.from_conn_string(str(tmp_path / "runs.sqlite")) as saver:
            models = {"planner": recorded(*({"planner": [*attempts]} for attempts in turns))}
            yield create_gecko_agent(
                shop.toolkit(), model=Models(**models), interrupt_on=interrupt_on, checkpointer=saver
            )

    return make


def shown(run, tmp_path, *more):
    code, out, _ = run("history", tmp_path / "runs.sqlite", *more)
    assert code == 0
    return out


def test_a_paused_turn_shows_what_it_asks_and_a_finished_one_what_was_done(run, tmp_path, opened):
    with opened(Shop(), [PLAN]) as agent:
        agent.invoke(TASK, THREAD)
        told = shown(run, tmp_path, "t")
        assert "accepted, 1 of 1" in told
        assert told.count("asks         ") == 3
        assert "carried out" not in told
        assert "1 turn, not finished" in shown(run, tmp_path)
        out = agent.invoke(APPROVED, THREAD)
        told = shown(run, tmp_path, "t")
    assert told.startswith("Turn 1  Order 3 pens")
    assert 'real         cancel(id: "real-1001")' in told
    assert f"carried out  {format_execution(out['execution'])}" in told
    assert "asks" not in told
    assert "order: 2 real calls in this thread, 0 drifted" in told
    assert f"; {format_execution(out['execution'])}: Order 3 pens" in shown(run, tmp_path)


def test_a_turn_that_was_rehearsed_again_shows_all_its_attempts_and_the_thread_its_drift(run, tmp_path, opened):
    shop = Shop()
    shop.failing = [Refused("no pens")]
    page = tmp_path / "page.html"
    with opened(shop, [PLAN, AGAIN], [[{"say": "You are welcome."}]], interrupt_on="none") as agent:
        agent.invoke(TASK, THREAD)
        agent.invoke({"messages": [("user", "Thank you")], "checklist": []}, THREAD)
    told = shown(run, tmp_path, "t", "--html", page)
    assert "[1] verdict" in told
    assert "[2] verdict" in told
    assert "error        order: no pens" in told
    assert "drift        order: status: predicted → real" in told
    assert "; 2 rehearsals" in told
    assert told.count("Turn ") == 2
    assert told.count("real         ") == 2, "only the first turn has done anything"
    assert "order: 2 real calls in this thread, 1 drifted" in told
    text = page.read_text()
    assert text.index("Carried out") < text.index("Turn 2")
    assert "predicted → real" in text
