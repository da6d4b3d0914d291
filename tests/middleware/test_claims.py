"""Real calls under middleware: once, whatever is sent again, killed, cancelled, forked or given up."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from threading import Event, Thread
from typing import Any, ClassVar

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from evals.reality.killing import Fate, Killed, KillingSaver
from gecko_graph import GeckoError
from gecko_graph.errors import StateError
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.middleware.live import look_at_siblings
from tests.middleware.bank import STATE, Bank, calls, chat, pay

THREAD: Any = {"configurable": {"thread_id": "1"}}
APPROVE = Command(resume={"decisions": [{"type": "approve"}]})
TASK = {"messages": [HumanMessage("Pay ann", id="m1")]}
PAID = ("transfer", "ann", 30)


def start(bank: Bank, saver: Any, *said: Any, mode: str = "preview", embedded: bool = False, **more: Any) -> Any:
    """Return the agent of a new process over the same bank and saver."""
    toolkit = bank.toolkit()
    middleware = [GeckoMiddleware(toolkit, mode=mode, state=STATE, **more)]
    agent = create_agent(
        chat(*said), tools=toolkit.as_tools(), middleware=middleware, checkpointer=None if embedded else saver
    )
    if not embedded:
        return agent
    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_edge(START, "agent")
    return builder.compile(checkpointer=saver)


def dying(bank: Bank, fate: Fate) -> Any:
    """Have the process die in the call, after it took effect; return how to bring it back."""
    transfer = bank.transfer

    def pay_and_die(to: str, amount: int) -> dict:
        """Transfer money."""
        result = transfer(to, amount)
        fate.kill_at = 1
        return result

    pay_and_die.__name__ = "transfer"
    bank.transfer = pay_and_die

    def back() -> None:
        fate.kill_at, bank.transfer = 0, transfer

    return back


class SlowBank(Bank):
    def __init__(self):
        super().__init__()
        self.begun, self.goes_on = Event(), Event()

    def transfer(self, to: str, amount: int) -> dict:
        """Transfer money."""
        self.begun.set()
        self.goes_on.wait(20)
        return super().transfer(to, amount)


def question(out: Any) -> Any:
    (asked,) = out["__interrupt__"]
    return asked.value


@pytest.mark.parametrize("embedded", [False, True])
def test_the_same_approval_sent_again_approves_no_call_that_nobody_has_seen(embedded):
    bank, saver = Bank(), InMemorySaver()
    said = calls(pay("a", 30)), calls(("b", "transfer", {"to": "mallory", "amount": 70}))
    agent = start(bank, saver, *said, embedded=embedded)
    agent.invoke(TASK, THREAD)
    first = question(agent.invoke(APPROVE, THREAD))
    again = question(agent.invoke(APPROVE, THREAD))
    assert first["action_requests"][0]["args"]["to"] == "mallory"
    assert again["id"] == first["id"]
    assert bank.calls == [PAID]


@pytest.mark.parametrize("embedded", [False, True])
@pytest.mark.parametrize("mode", ["guard", "preview", "shadow"])
def test_killed_in_the_call_it_is_a_doubt_and_made_once(mode, embedded):
    fate, bank = Fate(), Bank()
    saver, back = KillingSaver(fate), dying(bank, fate)
    if mode == "preview":
        start(bank, saver, calls(pay("a", 30)), mode=mode, embedded=embedded).invoke(TASK, THREAD)
    with contextlib.suppress(Killed, GeckoError):
        given = APPROVE if mode == "preview" else TASK
        start(bank, saver, calls(pay("a", 30)), mode=mode, embedded=embedded).invoke(given, THREAD)
    back()
    for given in (None, APPROVE):
        asked = question(start(bank, saver, mode=mode, embedded=embedded).invoke(given, THREAD))
        assert asked["review_configs"][0]["allowed_decisions"] == ["happened", "make_now", "skip"]
    happened = {"id": asked["id"], "decisions": [{"type": "happened", "message": '{"left": 70}'}]}
    out = start(bank, saver, mode=mode, embedded=embedded).invoke(Command(resume=happened), THREAD)
    assert bank.calls == [PAID]
    assert '{"left": 70}' in next(each.text for each in out["messages"] if isinstance(each, ToolMessage))


async def test_cancelled_in_the_call_it_is_a_doubt_and_made_once():
    bank = Bank()

    async def transfer(to: str, amount: int) -> dict:
        """Transfer money."""
        bank.calls.append(("transfer", to, amount))
        await asyncio.sleep(30)
        return {}

    bank.transfer = transfer
    agent = start(bank, InMemorySaver(), calls(pay("a", 30)), mode="guard")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(agent.ainvoke(TASK, THREAD), 0.5)
    assert (
        "not known whether it took effect"
        in question(await agent.ainvoke(None, THREAD))["action_requests"][0]["description"]
    )
    assert bank.calls == [PAID]


@pytest.mark.parametrize("identifier", ["m1", None])
def test_a_call_that_a_new_message_has_discarded_is_booked_and_told(identifier):
    """The process ended after the call; instead of going on, the client sends its message again."""
    fate, bank = Fate(), Bank()
    saver, back = KillingSaver(fate), dying(bank, fate)
    task = {"messages": [HumanMessage("Pay ann", id=identifier)]}
    with contextlib.suppress(Killed, GeckoError):
        start(bank, saver, calls(pay("a", 30)), mode="guard").invoke(task, THREAD)
    back()
    agent = start(bank, saver, mode="guard")
    asked = question(agent.invoke(task, THREAD))
    assert asked["review_configs"][0]["allowed_decisions"] == ["happened", "make_now", "skip"]
    happened = {"id": asked["id"], "decisions": [{"type": "happened", "message": '{"left": 70}'}]}
    out = agent.invoke(Command(resume=happened), THREAD)
    made, told = next((one, other) for one, other in pairwise(out["messages"]) if isinstance(other, ToolMessage))
    assert [(call["name"], call["args"]) for call in made.tool_calls] == [("transfer", {"to": "ann", "amount": 30})]
    assert told.text == '{"left": 70}'
    assert out["gecko"]["state"]["balance"] == 70
    assert [entry["call"]["args"]["amount"] for entry in out["gecko_journal"]] == [30]
    assert bank.calls == [PAID]
    assert sum(isinstance(each, ToolMessage) for each in agent.invoke(TASK, THREAD)["messages"]) == 1


def test_equal_calls_of_one_message_and_of_the_next_are_all_made():
    bank = Bank()
    said = calls(pay("a", 10), pay("b", 10)), calls(pay("c", 10))
    out = start(bank, InMemorySaver(), *said, mode="guard").invoke(TASK, THREAD)
    assert bank.calls == [("transfer", "ann", 10)] * 3
    assert out["gecko"]["state"]["balance"] == 70
    assert len({entry["key"] for entry in out["gecko_journal"]}) == 3


class StaleSaver(InMemorySaver):
    """A saver that tells a run that begins nothing of what another run of its message has written meanwhile."""

    stale = False

    def get_tuple(self, config: Any) -> Any:
        found, stale, self.stale = super().get_tuple(config), self.stale, False
        return found._replace(pending_writes=[]) if stale and found else found


@pytest.mark.parametrize("mode", ["preview", "guard"])
def test_equal_calls_that_another_run_has_booked_are_not_counted_twice(mode):
    """Seed 570 of `evals reality`: a run had seen the message without an answer, and the ledger's world with one."""
    bank, saver = Bank(), StaleSaver()
    message = calls(pay("a", 10), pay("b", 10), ("c", "transfer", {"to": "bob", "amount": 1}))
    transfer, fail = bank.transfer, [True]

    def pay_ann(to: str, amount: int) -> dict:
        """Transfer money."""
        if to == "bob" and fail.pop():
            raise RuntimeError("busy")
        return transfer(to, amount)

    pay_ann.__name__ = "transfer"
    bank.transfer = pay_ann
    first = start(bank, saver, message, mode=mode, interrupt_on="none")
    with contextlib.suppress(RuntimeError):
        first.invoke(TASK, THREAD)
    saver.stale = True
    fail[:] = [False]
    start(bank, saver, "Paid.", mode=mode, interrupt_on="none").invoke(None, THREAD)
    assert bank.calls.count(("transfer", "ann", 10)) == 2


def test_the_journal_holds_nothing_that_another_run_has_written_at_a_shared_checkpoint():
    """Seed 234: it held calls that the conversation did not, so that they were closed, proposed again and made."""
    bank, saver = Bank(), InMemorySaver()
    agent = start(bank, saver, calls(pay("a", 30)), "Paid.", mode="guard")
    journal = agent.invoke(TASK, THREAD)["gecko_journal"]
    for before in list(agent.get_state_history(THREAD))[1:]:
        given = {"configurable": {"checkpoint_ns": "", **before.config["configurable"]}}
        saver.put_writes(given, [("gecko_journal", [{**journal[0], "key": "other"}])], "another run's task")
    assert [entry["key"] for entry in agent.get_state(THREAD).values["gecko_journal"]] == [journal[0]["key"]]


def test_without_a_checkpointer_nothing_is_claimed():
    bank = Bank()
    out = start(bank, None, calls(pay("a", 30)), mode="guard").invoke(TASK)
    assert bank.calls == [PAID]
    assert out["gecko_journal"][0]["key"] == ""


def test_a_run_that_comes_second_writes_no_refusals_beside_the_results_of_the_first():
    """Its first call is under way elsewhere; were the others answered with a refusal, that would hide their results."""
    bank, saver = SlowBank(), InMemorySaver()
    said = calls(pay("a", 10), pay("b", 10), pay("c", 20))
    start(bank, saver, said).invoke(TASK, THREAD)
    approve = Command(resume={"decisions": [{"type": "approve"}] * 3})
    paused = start(bank, saver, said).get_state(THREAD).config
    with ThreadPoolExecutor() as pool:
        first = pool.submit(start(bank, saver).invoke, approve, THREAD)
        bank.begun.wait(20)
        (tools,) = [each for each in start(bank, saver).get_state_history(THREAD) if each.next[:1] == ("tools",)]
        assert tools.config != paused
        with pytest.raises(GeckoError, match="under way"):
            start(bank, saver).invoke(None, THREAD)
        bank.goes_on.set()
        out = first.result()
    assert [call[2] for call in bank.calls] == [10, 10, 20]
    assert [each.status for each in out["messages"] if isinstance(each, ToolMessage)] == ["success"] * 3
    assert start(bank, saver).get_state(THREAD).values["gecko"]["state"]["balance"] == 60


def test_a_sibling_that_another_run_has_stopped_stops_the_call_too():
    class Tasks(dict):
        done: set
        counter = 0

    ended: Future = Future()
    tasks, stopped = Tasks({ended: object()}), StateError("pay is under way in another run")
    tasks.done = {ended}
    known = {"__pregel_call": partial(print, futures=lambda: tasks)}
    ended.set_result(None)
    assert look_at_siblings(known) == (set(), False)
    tasks.done = {failed := Future()}
    failed.set_exception(stopped)
    tasks[failed] = tasks.pop(ended)
    with pytest.raises(StateError, match="another run"):
        look_at_siblings(known)


def paused(bank, saver):
    agent = start(bank, saver, calls(pay("a", 30)))
    agent.invoke(TASK, THREAD)
    return agent


def test_while_the_call_is_under_way(run):
    bank = SlowBank()
    agent = paused(bank, InMemorySaver())
    with ThreadPoolExecutor() as pool:
        first = pool.submit(run, agent, APPROVE, THREAD)
        bank.begun.wait(20)
        second = pool.submit(run, agent, APPROVE, THREAD)
        bank.begun.clear()
        assert not bank.begun.wait(0.3)
        bank.goes_on.set()
        outs = [first.result(), second.result()]
    assert bank.calls == [("transfer", "ann", 30)]
    assert [out["gecko"]["state"]["balance"] for out in outs] == [70, 70]


class Twice(InMemorySaver):
    """Has the other run begin, and end, before the first checkpoint of this one is kept."""

    others: ClassVar[list] = []  # LangGraph makes copies of a saver

    def put(self, *given):
        if Twice.others:
            thread = Thread(target=Twice.others.pop())  # without this run's context
            thread.start()
            thread.join()
        return super().put(*given)


def test_before_the_call():
    bank = Bank()
    agent = paused(bank, Twice())
    Twice.others.append(lambda: agent.invoke(APPROVE, THREAD))
    out = agent.invoke(APPROVE, THREAD, durability="sync")
    assert out["gecko"]["state"]["balance"] == 70
    assert bank.calls == [("transfer", "ann", 30)]
