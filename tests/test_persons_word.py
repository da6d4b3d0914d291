"""A person's word holds: what was rejected is not asked about again, and what was not done is not told as done."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from evals.reality.killing import Fate, Killed, KillingSaver
from gecko_graph import GeckoError, Models, create_gecko
from gecko_graph.testing import recorded
from tests.agents import APPROVE, embed, make_agent, thread
from tests.test_agent import PLAN, TASK, Shop, agent_of, answer, shop
from tests.test_prompts_in_runs import Listener
from tests.test_review import INK, REJECT, ask, decide, words

__all__ = ["shop"]

ALL_THREE = {"description": "all three", "check": "len(state.orders) == 3"}


def test_a_rejected_call_is_not_asked_about_again_in_its_turn_but_in_the_next_where_the_user_wants_it(shop):
    pen, insists = PLAN[0], [PLAN[0], PLAN[0], *INK]  # it is refused, and made again
    model = Models(planner=recorded({"planner": [[pen, *INK], insists]}, {"planner": [insists]}))
    agent = make_agent(shop.toolkit(), model=model, interrupt_on="writes")
    ask(agent, {**TASK, "checklist": [{"description": "ordered", "check": "state.orders"}]})
    again = ask(agent, Command(resume={"decisions": [REJECT, APPROVE]}))
    assert [each["args"]["item"] for each in again["action_requests"]] == ["ink"]
    out = decide(agent, APPROVE)
    assert shop.calls == ["order ink"]
    assert words(out) == ["order refused", "order ok"]
    assert "Not done: order (item pen, quantity 3): rejected by the user: no pens" in out["messages"][-1].text
    (rejected, *_) = out["rehearsal"]["attempts"][-1]["steps"]
    assert rejected["outcome"]["result"] == "rejected by the user: no pens"
    more = {"messages": [("user", "Order 3 pens and ink all the same")], "checklist": [ALL_THREE]}
    asked = ask(agent, more)
    assert [each["args"]["item"] for each in asked["action_requests"]] == ["pen", "ink"]


def test_the_reason_of_a_reject_is_shown_to_planner_and_judge_on_every_retry(shop):
    judged = [{"items": [{"id": "item-1", "status": word}]} for word in ("success", "failed", "success")]
    model = Listener(turns=[{"planner": [PLAN, INK, INK], "judge": judged}])
    models = Models(**dict.fromkeys(("planner", "judge"), model))
    agent = make_agent(shop.toolkit(), model=models, interrupt_on="writes")
    ask(agent, {**TASK, "checklist": ["the user is content"]})
    model.heard.clear()
    agent.invoke(answer(agent, REJECT, APPROVE, APPROVE), thread())
    assert len(model.told("judge")) == 2
    assert all("no pens" in str([each.content for each in messages]) for _, messages in model.heard)


ASKS = [*INK[:1], {"say": "Ink is ordered. Which pens shall I order?"}]
HALF: dict = {
    "items": [{"id": "item-1", "status": "success"}, {"id": "item-2", "status": "unknown", "reason": "Which?"}]
}
HALF |= {"stopping_was_right": True}
BOTH = ["ink is ordered", "pens are ordered"]


def half_of(shop: Shop, saver: Any = None, *plans: list) -> Any:
    """Return an agent whose plan orders ink, and asks about the pens."""
    models = Models(planner=recorded(planner=[ASKS, *plans]), judge=recorded(judge=[HALF] * 2))
    return make_agent(shop.toolkit(), model=models, interrupt_on="writes", checkpointer=saver)


@pytest.mark.parametrize("as_node", [False, True])
def test_a_plan_that_asks_about_the_rest_is_asked_about_and_its_question_reaches_the_user(shop, as_node):
    agent = embed(half_of(shop), InMemorySaver()) if as_node else half_of(shop, InMemorySaver())
    asked = ask(agent, {**TASK, "checklist": BOTH})
    assert [each["args"]["item"] for each in asked["action_requests"]] == ["ink"]
    approve = Command(resume={"id": asked["id"], "decisions": [APPROVE]})
    out = agent.invoke(approve, thread())
    assert (shop.calls, out["execution"]["status"], out["execution"]["left"]) == (["order ink"], "partial", [])
    assert out["messages"][-1].text == ASKS[1]["say"]
    agent.invoke(approve, thread())
    assert shop.calls == ["order ink"]


def test_what_asks_about_the_rest_is_made_once_wherever_the_process_ends():
    def run(fate: Fate) -> Shop:
        shop, saver = Shop(), KillingSaver(fate)
        with contextlib.suppress(Killed, GeckoError):
            asked = ask(half_of(shop, saver), {**TASK, "checklist": BOTH})
            decided = Command(resume={"id": asked["id"], "decisions": [APPROVE]})
            half_of(shop, saver).invoke(decided, thread())
        fate.kill_at, given = 0, None if list(saver.list(thread())) else {**TASK, "checklist": BOTH}
        while asked := (out := half_of(shop, saver).invoke(given, thread())).get("__interrupt__"):
            words = asked[0].value["review_configs"][0]["allowed_decisions"]
            made = [{"type": "happened", "message": '{"id": "real-1001"}'}] if shop.calls else [{"type": "make_now"}]
            decided = {"id": asked[0].value["id"], "decisions": made if "happened" in words else [APPROVE]}
            given = Command(resume=decided)
        assert out["execution"]["status"] == "partial"
        return shop

    run(whole := Fate())
    for number in range(2, whole.count, 7):
        assert run(Fate(number, after=number % 2 == 1)).calls == ["order ink"], number


def test_what_was_only_rehearsed_is_not_told_as_done(shop):
    agent = half_of(shop, InMemorySaver(), *[[{"say": "Which pens?"}]] * 3)
    ask(agent, {**TASK, "checklist": BOTH})
    out = decide(agent, {"type": "reject"})
    assert not shop.calls
    assert words(out) == ["order refused"]
    judged = recorded(judge=[HALF])
    alone = create_gecko(shop.toolkit(), model=Models(planner=recorded(planner=[ASKS]), judge=judged))
    told = alone.invoke({**TASK, "checklist": BOTH})["messages"][-1].text
    assert told == 'Not done: order({"item": "ink", "quantity": 1})\nWhich pens shall I order?'


def test_a_failed_plan_names_what_was_not_done_and_says_nothing_else_of_it(shop):
    out = agent_of(shop, *[INK] * 5, interrupt_on="none").invoke({**TASK, "checklist": [ALL_THREE]}, thread())
    assert [each["name"] for each in out["execution"]["left"]] == ["order"]
    assert "Ordered." not in out["messages"][-1].text
    assert "Not done: order (item ink, quantity 1)" in out["messages"][-1].text
