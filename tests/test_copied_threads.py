"""A thread copied or pruned without its older checkpoints: each value is whole, or lost and refused with the reason."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, Overwrite

from evals.reality.postgres import start_postgres
from gecko_graph import Tool, Toolkit, create_conversation
from gecko_graph.errors import StateError
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.state import LOST
from gecko_graph.testing import scripted
from tests import desk, test_toolgate_runs
from tests.agents import call, make_agent

A: Any = {"configurable": {"thread_id": "a"}}
B: Any = {"configurable": {"thread_id": "b"}}
C: Any = {"configurable": {"thread_id": "c"}}
KINDS = ("gecko", "agent", "toolgate", "conversation", "middleware")
STATE = {"accounts": {"mine": 100}}


class Money:
    """A service that pays, and what was paid."""

    def __init__(self) -> None:
        self.paid: list[float] = []

    def toolkit(self) -> Toolkit:
        def pay(amount: float) -> dict:
            """Pay."""
            self.paid.append(amount)
            return {"paid": amount}

        contract = {
            "requires": [{"check": "args.amount <= state.left", "error": "only {{ state.left }} left"}],
            "effects": [{"op": "replace", "path": ["left"], "value": "{{ state.left - args.amount }}"}],
            "returns": {"paid": "{{ args.amount }}"},
        }
        return Toolkit.from_tools([Tool(pay, effect="write", contract=contract)])


PAY = call("pay", amount=30)


def build(kind: str, saver: Any, money: Money, **more: Any) -> tuple[Any, list[Any]]:
    """Return a graph and the inputs of its turns."""
    if kind == "gecko":
        plans = [[call("put", tray="letters", paper=paper), {"say": "Put."}] for paper in "xyz"]
        says: list[Any] = [{"messages": [("user", f"put {paper}")]} for paper in "xyz"]
        graph = desk.gecko(turns=[{"planner": [plan]} for plan in plans], checkpointer=saver)
        return graph, [says[0] | {"task_state": desk.start()}, *says[1:]]
    if kind == "agent":
        graph = make_agent(money.toolkit(), turns=[[PAY, {"say": "Paid."}]] * 3, checkpointer=saver, **more)
        check = [{"description": "paid", "check": "calls"}]
        says = [{"messages": [HumanMessage(f"pay {n}", id=f"m{n}")], "checklist": check} for n in range(3)]
        return graph, [says[0] | {"task_state": {"left": 100}}, *says[1:]]
    if kind == "toolgate":
        return test_toolgate_runs.graph(checkpointer=saver), [test_toolgate_runs.given()] * 1
    if kind == "conversation":
        agent = scripted(PAY, {"say": "Paid."}, PAY, {"say": "Paid."})
        tools = money.toolkit()
        graph = create_conversation(agent, tools, user=["Pay", "Pay", {"end": True}], checkpointer=saver)
        return graph, [{"task_state": {"left": 100}}]
    return guarded(saver, money, *[30] * 4), [say(number) for number in range(3)]


def copy(saver: Any, source: Any, target: Any, *, newest: int = 1, skip: int = 0, writes: bool = True) -> bool:
    """Copy a thread's newest checkpoints in all namespaces, without the `skip` newest; return whether that is all."""
    rest = False
    spaces: dict[str, list[Any]] = {}
    for each in saver.list(source):
        spaces.setdefault(each.config["configurable"]["checkpoint_ns"], []).append(each)
    for space, found in spaces.items():
        kept = found[skip if space == "" else 0 :]
        rest = rest or len(kept) > newest
        for place, each in reversed([*enumerate(kept[:newest])]):
            where = {**target["configurable"], "checkpoint_ns": space}
            if each.parent_config:
                where["checkpoint_id"] = each.parent_config["configurable"]["checkpoint_id"]
            versions = each.checkpoint["channel_versions"]
            put = saver.put({"configurable": where}, each.checkpoint, each.metadata, versions)
            pending = (each.pending_writes or ()) if writes or place else ()
            for task in dict.fromkeys(write[0] for write in pending):
                saver.put_writes(put, [(channel, value) for by, channel, value in pending if by == task], task)
    return not rest


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def saver(request: Any, tmp_path: Any) -> Any:
    if request.param == "memory":
        yield InMemorySaver()
    elif request.param == "sqlite":
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as opened:
            yield opened
    else:
        postgres = pytest.importorskip("langgraph.checkpoint.postgres")
        with postgres.PostgresSaver.from_conn_string(start_postgres() or pytest.skip("no Postgres")) as opened:
            for each in (A, B, C):  # the ledger knows the calls of a thread that was deleted
                each["configurable"]["thread_id"] = str(uuid4())
            yield opened


def is_lost(value: Any) -> bool:
    return isinstance(value, dict) and LOST in value


@pytest.mark.parametrize(
    ("saver", "kind"),
    [*(("memory", kind) for kind in KINDS), ("sqlite", "agent"), ("postgres", "middleware")],
    indirect=["saver"],
)
def test_a_value_of_a_copy_is_that_of_its_checkpoint_or_lost(kind, saver):
    money = Money()
    graph, turns = build(kind, saver, money)
    for turn in turns[:2]:
        graph.invoke(turn, A)
    history, lost = list(graph.get_state_history(A)), 0
    for skip, at in [*enumerate(history[:-2])][:: 3 if isinstance(saver, InMemorySaver) else 6]:
        for newest in (1, 3, len(history)):
            saver.delete_thread(B["configurable"]["thread_id"])
            copy(saver, A, B, newest=newest, skip=skip, writes=False)
            values = graph.get_state(B).values
            for key, value in at.values.items():
                assert is_lost(values[key]) or values[key] == value, (key, skip, newest)
            gone = [key for key in values if is_lost(values[key])]
            lost += bool(gone)
            assert not gone or newest < len(history)
    assert lost


@pytest.mark.parametrize("kind", KINDS)
def test_a_turn_on_such_a_copy_is_refused_and_never_made(kind):
    money, saver = Money(), InMemorySaver()
    graph, turns = build(kind, saver, money)
    graph.invoke(turns[0], A)
    copy(saver, A, B)
    copy(saver, B, C)
    paid = [*money.paid]
    for thread in (B, C):
        for _ in range(12):  # more often than a snapshot is due
            with pytest.raises(StateError, match="has lost its"):
                graph.invoke(turns[-1] | {"messages": [("user", "Pay again")]}, thread)
    copy(saver, B, C)
    with pytest.raises(StateError, match="has lost its"):
        graph.invoke(turns[-1] | {"messages": [("user", "Pay again")]}, C)
    assert money.paid == paid


def guarded(saver: Any, money: Money, *amounts: int, mode: str = "guard") -> Any:
    said = [each for amount in amounts for each in ({"call": "pay", "args": {"amount": amount}}, {"say": "Said."})]
    middleware = [GeckoMiddleware(money.toolkit(), mode=mode, state={"left": 100})]
    tools = money.toolkit().as_tools()
    return create_agent(scripted(*said), tools=tools, middleware=middleware, checkpointer=saver)


def say(number: int) -> Any:
    return {"messages": [HumanMessage("Pay", id=f"m{number}")]}


@pytest.mark.parametrize(("kind", "writes"), [("middleware", True), ("middleware", False), ("agent", True)])
def test_an_approval_on_a_copy_of_a_question_is_refused(kind, writes):
    money, saver = Money(), InMemorySaver()
    if kind == "middleware":
        graph, given = guarded(saver, money, 80, mode="preview"), say(0)
    else:
        graph, (given, *_) = build("agent", saver, money, interrupt_on="writes")
    assert graph.invoke(given, A)["__interrupt__"]
    copy(saver, A, B, writes=writes)
    with pytest.raises(StateError, match="has lost its"):
        graph.invoke(Command(resume={"decisions": [{"type": "approve"}]}), B)
    assert money.paid == []
    graph.invoke(Command(resume={"decisions": [{"type": "approve"}]}), A)
    assert len(money.paid) == 1


def test_a_whole_copy_goes_on_as_the_thread_does(saver):
    money = Money()
    graph = guarded(saver, money, 80, 80)
    graph.invoke(say(0), A)
    assert copy(saver, A, B, newest=100)
    graph.update_state(C, graph.get_state(A).values, as_node="GeckoMiddleware.after_agent")
    for thread in (A, B, C):
        assert "only 20 left" in [each.text for each in graph.invoke(say(1), thread)["messages"]]
    assert money.paid == [80]


def test_a_fork_knows_what_was_really_spent(saver):
    money = Money()
    graph = guarded(saver, money, 30, 60)
    graph.invoke(say(0), A)
    old = graph.get_state(A).config
    graph.invoke(say(1), A)
    fork = graph.update_state(old, {"messages": [HumanMessage("Pay", id="m2")]}, as_node="__start__")
    graph.invoke(None, fork)
    assert graph.get_state(A).values["gecko"]["state"] == {"left": 10}
    graph.invoke(say(3), old)
    assert graph.get_state(A).values["gecko"]["state"] == {"left": 10}  # as the ledger has it
    assert len(graph.get_state(A).values["gecko"]["log"]) == 2
    assert money.paid == [30, 60]


@pytest.mark.parametrize("emptied", [{}, Overwrite({})])
async def test_a_journal_without_a_world_is_refused(emptied):
    money, saver = Money(), InMemorySaver()
    graph = guarded(saver, money, 80, 80)
    graph.invoke(say(0), A)
    graph.update_state(A, {"gecko": emptied})
    with pytest.raises(StateError, match="has lost its 'gecko'"):
        graph.invoke(say(1), A)
    with pytest.raises(StateError, match="has lost its 'gecko'"):
        await graph.ainvoke(say(1), A)
    assert money.paid == [80]


def test_a_copy_of_the_messages_alone_is_refused():
    money, saver = Money(), InMemorySaver()
    graph = guarded(saver, money, 80, 80)
    graph.invoke(say(0), A)
    graph.update_state(B, graph.get_state(A).values)  # as the graph's input, which has no world
    with pytest.raises(StateError, match="copied by its values"):
        graph.invoke(say(1), B)
    assert money.paid == [80]
