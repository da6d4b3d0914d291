"""Forward execution as a graph: async, streamed, embedded, over turns, after a kill, and with very many tools."""

from __future__ import annotations

import pytest
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver

from evals.reality.killing import Fate, Killed, KillingSaver
from gecko_graph import GeckoContext, Models, Toolkit, create_toolgate
from gecko_graph.retrieval.search import ToolSearch
from gecko_graph.toolgate.graph import create_forward
from gecko_graph.values.notes import notes_of
from tests import shop
from tests.agents import thread
from tests.shop import SELL, Acting, act, one_need

TWO = {
    "reasoner": [{"need": "Open the shop"}, {"need": "Sell a pen for 2"}, {"answer": "Sold."}],
    "reranker": [{"tools": ["open_shop"]}, {"tools": ["gift", "sell"]}],
    "planner": [
        {"call": "open_shop", "args": {}},
        {"call": "gift", "args": {"item": "pan"}},
        {"say": "It is to be sold."},
        SELL,
    ],
}


def given():
    return {"messages": [("user", "Open the shop and sell a pen for 2")], "task_state": shop.start(open=False)}


def graph(**more):
    model = Acting(roles=TWO)
    return create_toolgate(shop.toolkit(), model=Models(**dict.fromkeys(TWO, model)), **more)


def bare(out):
    """The output without what no two runs share."""
    return {**out, "messages": [(message.type, message.content) for message in out["messages"]]}


def test_a_thread_goes_on_from_the_committed_state_and_remembers_its_calls():
    roles = {
        "reasoner": lambda number, text, tool: [{"need": "Sell a pen"}, {"answer": "Done."}][number],
        "planner": lambda number, text, tool: SELL | {"args": {"item": "ink", "price": 3}},
    }
    model, saver = Acting(roles=roles), InMemorySaver()
    toolgate = create_toolgate(shop.toolkit(), model=Models(**dict.fromkeys(roles, model)), checkpointer=saver)
    toolgate.invoke({"messages": [("user", "Sell ink")], "task_state": shop.start()}, thread())
    out = toolgate.invoke({"messages": [("user", "Once more")]}, thread())
    assert out["task_state"]["stock"]["ink"] == 2
    assert len(out["record"]["plan"]) == len(out["record"]["needs"]) == len(out["record"]["steps"]) == 1
    assert 'sell({"item": "ink", "price": 3})' in model.texts("reasoner")[2]
    assert out["record"]["usage"]["reasoner"]["calls"] == 2


def test_killed_at_any_write_it_ends_as_the_whole_run_does():
    whole, ends = bare(graph().invoke(given())), []
    for point in range(3, 200, 4):
        fate = Fate(point)
        toolgate = graph(checkpointer=KillingSaver(fate))
        try:
            toolgate.invoke(given(), thread(), durability="sync")
            break
        except Killed:
            fate.kill_at = 0
        if toolgate.get_state(thread()).values:
            ends.append(bare(toolgate.invoke(None, thread(), durability="sync")))
    assert len(ends) >= 4
    assert all(each == whole for each in ends)


def test_the_record_says_what_its_plan_rests_on():
    roles = {"reasoner": one_need(), "planner": [SELL | {"args": {"item": "pen", "price": 37.5}}]}
    record = act(shop.toolkit(), **roles)[0]["record"]
    assert [(each["where"], each["data"]["value"]) for each in notes_of(record, "made_up")] == [("/price", 37.5)]
    assert record["origins"][record["plan"][0]["id"]]["/item"][0]["from"] == "task"
    given = act(shop.toolkit(), **roles, request="Sell a pen for 37.50")[0]["record"]
    assert notes_of(given, "made_up") == []


def test_what_decides_which_call_is_made_is_no_delta():
    """A delta holds also what another process wrote at a checkpoint that both went on from."""
    search = ToolSearch(shop.toolkit(), None, GeckoContext())
    forward = create_forward(shop.toolkit(), Models(), GeckoContext(), search)
    deltas = {key for key, channel in forward.channels.items() if isinstance(channel, DeltaChannel)}
    assert deltas == {"task_state", "trace", "steps", "needs", "bookkeeping"}
    assert {"pending", "candidates", "need", "stop"} <= forward.channels.keys()


def test_of_very_many_tools_the_index_finds_those_that_fit_and_the_gate_those_that_may():
    pytest.importorskip("bm25s")
    others = [shop.function(f"count_{number}", f"Count drawer {number}.") for number in range(200)]
    sells = [shop.function(f"sell_to_{name}", "Sell one item to a customer.") for name in "abcdefgh"]
    closed = {"requires": [{"check": "state.open", "error": "closed"}], "returns": {}}
    tools = Toolkit.from_tools([*others, *shop.FUNCTIONS, *sells]).with_contracts(
        {"contracts": shop.CONTRACTS | {tool["name"]: closed for tool in sells}}
    )
    out, model = act(
        tools,
        state=shop.start(open=False),
        reasoner=[{"need": "sell or give an item to a customer"}, {"answer": "Done."}],
        reranker=lambda number, text, tool: {"tools": [{"name": "sell", "score": 9}, {"name": "gift", "score": 1}]},
        planner=[{"call": "gift", "args": {"item": "ink"}}],
        context=GeckoContext(top_k=3),
    )
    assert [call["name"] for call in out["record"]["plan"]] == ["gift"]
    assert model.texts("reranker")[0].count("\ncount_") <= 3
    assert "count_" not in model.texts("reasoner")[0]
