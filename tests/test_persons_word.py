"""A person's word holds: what was rejected is not asked about again, and what was not done is not told as done."""

from __future__ import annotations

import contextlib
from typing import Any, ClassVar

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from evals.reality.killing import Fate, Killed, KillingSaver
from gecko_graph import GeckoError, Models, create_gecko, create_gecko_agent
from gecko_graph.testing import recorded
from tests.test_agent import APPROVE, PLAN, TASK, Shop, agent_of, answer, shop, thread
from tests.test_agent_answers import Parent
from tests.test_review import INK, REJECT, ask, decide, words

__all__ = ["shop"]

ALL_THREE = {"description": "all three", "check": "len(state.orders) == 3"}


def test_a_rejected_call_is_not_asked_about_again_in_its_turn_but_in_the_next_where_the_user_wants_it(shop):
    pen, insists = PLAN[0], [PLAN[0], PLAN[0], *INK]  # it is refused, and made again
    model = Models(planner=recorded({"planner": [[pen, *INK], insists]}, {"planner": [insists]}))
    agent = create_gecko_agent(shop.toolkit(), model=model, checkpointer=InMemorySaver())
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
    class Watch(BaseCallbackHandler):
        seen: ClassVar[list[tuple[bool, bool]]] = []

        def on_chat_model_start(self, _: Any, messages: Any, **more: Any) -> None:
            text = "\n".join(str(each.content) for each in messages[0])
            self.seen.append((text.startswith("You judge"), "no pens" in text))

    judged = [{"items": [{"id": "item-1", "status": word}]} for word in ("success", "failed", "success")]
    models = Models(planner=recorded(planner=[PLAN, INK, INK]), judge=recorded(judge=judged))
    agent = create_gecko_agent(shop.toolkit(), model=models, checkpointer=InMemorySaver())
    ask(agent, {**TASK, "checklist": ["the user is content"]})
    Watch.seen.clear()
    agent.invoke(answer(agent, REJECT, APPROVE, APPROVE), {**thread(), "callbacks": [Watch()]})
    assert [is_judge for is_judge, _ in Watch.seen].count(True) == 2
    assert all(told for _, told in Watch.seen)


ASKS = [*INK[:1], {"say": "Ink is ordered. Which pens shall I order?"}]
HALF: dict = {
    "items": [{"id": "item-1", "status": "success"}, {"id": "item-2", "status": "unknown", "reason": "Which?"}]
}
HALF |= {"stopping_was_right": True}
BOTH = ["ink is ordered", "pens are ordered"]


def half_of(shop: Shop, judged: dict, *plans: list, **more: Any) -> Any:
    """Return an agent whose plan orders ink, and asks about the pens."""
    models = Models(planner=recorded(planner=[ASKS, *plans]), judge=recorded(judge=[judged] * 2))
    return create_gecko_agent(shop.toolkit(), model=models, **more)


@pytest.mark.parametrize("as_node", [False, True])
def test_a_plan_that_asks_about_the_rest_is_asked_about_and_its_question_reaches_the_user(shop, as_node):
    agent = half_of(shop, HALF, **({} if as_node else {"checkpointer": InMemorySaver()}))
    if as_node:
        builder = StateGraph(Parent)
        builder.add_node("agent", agent)
        builder.add_edge(START, "agent")
        agent = builder.compile(checkpointer=InMemorySaver())
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
            asked = ask(half_of(shop, HALF, checkpointer=saver), {**TASK, "checklist": BOTH})
            half_of(shop, HALF, checkpointer=saver).invoke(
                Command(resume={"id": asked["id"], "decisions": [APPROVE]}), thread()
            )
        fate.kill_at = 0
        for _ in range(4):
            out = half_of(shop, HALF, checkpointer=saver).invoke(
                None if list(saver.list(thread())) else {**TASK, "checklist": BOTH}, thread()
            )
            if not (asked := out.get("__interrupt__")):
                break
            words = asked[0].value["review_configs"][0]["allowed_decisions"]
            made = [{"type": "happened", "message": '{"id": "real-1001"}'}] if shop.calls else [{"type": "make_now"}]
            decided = {"id": asked[0].value["id"], "decisions": made if "happened" in words else [APPROVE]}
            out = half_of(shop, HALF, checkpointer=saver).invoke(Command(resume=decided), thread())
            if "__interrupt__" not in out:
                break
        assert out["execution"]["status"] == "partial"
        return shop

    run(whole := Fate())
    for number in range(1, whole.count, 5):
        assert run(Fate(number)).calls == ["order ink"], number


def test_what_was_only_rehearsed_is_not_told_as_done(shop):
    agent = half_of(shop, HALF, *[[{"say": "Which pens?"}]] * 3, checkpointer=InMemorySaver())
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
