"""What baselines remember over turns: what LangChain's own agent does, and no judge's word on it."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from evals.baselines.methods import BASELINES
from evals.bfcl.rehearse import play_turns
from gecko_graph import GeckoContext, Models, Scenario
from gecko_graph.scenario import examples
from gecko_graph.testing import _FakeModel

SHOP = Scenario.load(examples()["shop"])
SAID = [[("user", "Put two teas into my cart. What does it cost?")], [("user", "Order that.")], [("user", "Thanks?")]]
REPLIES = (
    {"calls": [{"call": "findProducts", "args": {"text": "mint"}}, {"call": "showAccount", "args": {}}]},
    {"call": "setCartLine", "args": {"sku": "TEA-100", "quantity": 2}},
    {"say": "Two teas are in the cart."},
    {"call": "setCartLine", "args": {"sku": "NO-SUCH", "quantity": 1}},
    {"call": "placeOrder", "args": {"quantity": "what"}},
    {"call": "placeOrder", "args": {}},
    {"say": "It is ordered."},
    {"say": "You are welcome."},
)


class Hearing(_FakeModel):
    """A scripted model that keeps what it was shown."""

    heard: list = Field(default_factory=list)

    def _generate(self, messages, *given, **more):
        self.heard.append([each for each in messages if each.type != "system"])
        return super()._generate(messages, *given, **more)


def play(name):
    model = Hearing(replies=REPLIES)

    def graph(turn, saver):
        default = GeckoContext(max_retries=0, max_steps=10)
        return BASELINES[name](SHOP.tools, models=Models(planner=model), default=default, checkpointer=saver)

    return asyncio.run(play_turns("t", SAID, SHOP.state, graph)), model.heard


def read(message):
    made = [(call["name"], call["args"]) for call in getattr(message, "tool_calls", ())]
    return message.type, message.text, made, getattr(message, "status", "")


def test_plain_and_langchains_agent_are_shown_and_do_the_same_over_turns():
    (plain, shown), (agent, heard) = play("plain"), play("create_agent")
    assert [[read(each) for each in one] for one in shown] == [[read(each) for each in one] for one in heard]
    assert len(shown) == len(REPLIES)
    for one, other in zip(plain, agent, strict=True):
        assert one.rehearsal["answer"] == other.rehearsal["answer"] != ""
        ours, theirs = ([(c["name"], c["args"]) for c in each.rehearsal["plan"]] for each in (one, other))
        assert ours == theirs
        assert one.after == other.after
    assert plain[1].after != plain[0].after != SHOP.state  # each turn went on from the one before
    assert [each.rehearsal["usage"]["planner"]["calls"] for each in agent] == [3, 4, 1]


@pytest.mark.parametrize("name", [name for name in BASELINES if name != "create_agent"])
def test_a_baselines_next_turn_has_the_calls_results_and_answer_of_its_chosen_trial(name):
    _, heard = play(name)
    second = next(each for each in heard if any("Order that." in one.text for one in each))
    before = second[: next(at for at, one in enumerate(second) if "Order that." in one.text)]
    assert not any("Rehearsal failed" in each.text for each in before)
    made = {call["id"] for each in before if isinstance(each, AIMessage) for call in each.tool_calls}
    assert made == {each.tool_call_id for each in before if isinstance(each, ToolMessage)} != set()
    assert before[-1].text == "Two teas are in the cart."


def test_the_arm_stops_at_its_limit_and_counts_what_was_done():
    model = Hearing(replies=[{"call": "showCart", "args": {}}] * 50)
    default = GeckoContext(max_steps=3)
    graph = BASELINES["create_agent"](
        SHOP.tools, models=Models(planner=model), default=default, checkpointer=InMemorySaver()
    )
    inputs = {"messages": [HumanMessage("Look.")], "task_state": SHOP.state}
    run = asyncio.run(graph.ainvoke(inputs, {"configurable": {"thread_id": "1"}}))
    (attempt,) = run["rehearsal"]["attempts"]
    assert len(attempt["steps"]) in (3, 4)
    assert attempt["stop_reason"] == "max_steps"
    assert run["rehearsal"]["answer"] == ""
