"""A call is known by its place in the turn: not by its id, and not by what the conversation looks like by now."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from itertools import product
from typing import Any

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command

from evals.reality.killing import Fate, Killed, KillingSaver
from gecko_graph import GeckoError
from gecko_graph.errors import StateError
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.middleware.turns import open_turn
from gecko_graph.real.ledger import MemoryLedger
from tests.agents import APPROVE, Saying, embed, thread
from tests.middleware.bank import STATE, Bank, calls, chat, pay

THREAD = thread()
PAID = ("transfer", "ann", 10)
MODES = ("guard", "shadow", "preview", "simulate", "hybrid")
REAL = MODES[:3]


def task(identifier: str | None = "m1", text: str = "Pay ann 10") -> dict:
    return {"messages": [HumanMessage(text, id=identifier)]}


def agent_of(
    bank: Bank, saver: Any, *said: Any, mode: str = "guard", beside: Any = (), embedded: bool = False, **more: Any
) -> Any:
    """Return an agent of a new process."""
    toolkit, model = bank.toolkit(), more.pop("model", None) or chat(*said)
    gecko = GeckoMiddleware(toolkit, mode=mode, state=STATE)
    options: Any = {"middleware": [*beside, gecko], "checkpointer": None if embedded else saver, **more}
    agent = create_agent(model, tools=toolkit.as_tools(), **options)
    return embed(agent, saver, MessagesState) if embedded else agent


def at_once(agent: Any, given: Any, config: Any) -> Any:
    return agent.invoke(given, config)


def go(agent: Any, given: Any, run: Any = at_once) -> Any:
    """Run the agent, and approve whatever it asks."""
    out = run(agent, given, THREAD)
    while "__interrupt__" in out:
        (asked,) = out["__interrupt__"]
        decisions = [APPROVE] * len(asked.value["action_requests"])
        out = run(agent, Command(resume={"id": asked.value["id"], "decisions": decisions}), THREAD)
    return out


def results(out: Any) -> list[str]:
    return [each.status for each in out["messages"] if isinstance(each, ToolMessage)]


IDS = {
    "begin anew": (["call_0"], ["call_0"]),
    "repeat in one message": (["a", "a"],),
    "both": (["a", "a"], ["a", "b"]),
    "empty": ([""], [""]),
    "empty in one message": (["", ""],),
    "none": ([None], [None]),
    "none in one message": ([None, None],),
    "too long": (["x" * 200], ["x" * 200]),
}


KILLED = ["begin anew", "none in one message"]


@pytest.mark.parametrize(("mode", "ids"), [*product(MODES[:1], IDS), *product(MODES[1:], KILLED)])
def test_whatever_the_ids_are_each_call_is_made_and_booked_once(mode, ids):
    bank = Bank()
    said = [calls(*(pay(each, 10) for each in message)) for message in IDS[ids]]
    out = go(agent_of(bank, InMemorySaver(), *said, mode=mode), task())
    count = sum(map(len, IDS[ids]))
    assert bank.calls == [PAID] * (count if mode in REAL else 0)
    assert out["gecko"]["state"]["balance"] == 100 - 10 * count
    assert results(out) == ["success"] * count
    spoken = [call["id"] for each in out["messages"] if isinstance(each, AIMessage) for call in each.tool_calls]
    assert len({*spoken}) == count
    assert sorted(spoken) == sorted(each.tool_call_id for each in out["messages"] if isinstance(each, ToolMessage))


def test_an_id_follows_into_a_providers_own_form_of_the_call():
    block = {"type": "tool_use", "id": "call_0", "name": "transfer", "input": {"to": "ann", "amount": 10}}
    said = [calls(pay("call_0", 10)).model_copy(update={"content": [block]}) for _ in range(2)]
    out = agent_of(Bank(), InMemorySaver(), *said).invoke(task(), THREAD)
    made = [each for each in out["messages"] if isinstance(each, AIMessage) and each.tool_calls]
    assert [each.content[0]["id"] for each in made] == [each.tool_calls[0]["id"] for each in made]
    assert made[0].tool_calls[0]["id"] == "call_0" != made[1].tool_calls[0]["id"]


@pytest.mark.parametrize("identifier", [None, "", "a"])
def test_a_call_that_others_write_without_an_id_of_its_own_is_not_made(identifier):
    class Writes(AgentMiddleware):
        def after_model(self, state, runtime):
            last = state["messages"][-1]
            changed = [{**call, "id": identifier} for call in last.tool_calls]
            return {"messages": [last.model_copy(update={"tool_calls": changed})]} if changed else None

    bank = Bank()
    agent = agent_of(bank, InMemorySaver(), calls(pay("x", 10), pay("y", 10)), beside=[Writes()])
    with pytest.raises(StateError, match="id of its own"):
        agent.invoke(task(), THREAD)
    assert bank.calls == []


@pytest.mark.parametrize(("mode", "embedded"), [*product(REAL, [False, True])])
def test_killed_at_any_write_and_gone_on_with_nothing_is_lost_or_doubled(mode, embedded):
    """Another process goes on, or is sent the message again, also when all is done."""
    ids = KILLED[embedded != (mode == "shadow")]

    def play(kill_at: int) -> int:
        bank, fate = Bank(), Fate(kill_at, after=bool(kill_at % 2))
        saver = KillingSaver(fate)
        given, ended, again = task(), 0, kill_at % 4 < 2
        while ended < 2:
            try:
                agent = agent_of(bank, saver, model=pays(IDS[ids]), mode=mode, embedded=embedded)
                out = agent.invoke(given, THREAD, durability="sync")
            except (Killed, GeckoError):
                fate.kill_at = 0
                given = task() if again or saver.get_tuple(THREAD) is None else None
                continue
            ended += "__interrupt__" not in out
            given = decide(out, bank, saver) if "__interrupt__" in out else task()
        assert bank.calls == [PAID] * 2
        assert embedded or out["gecko"]["state"]["balance"] == 80
        return fate.count

    for kill_at in range(1, play(0) + 1, 7):
        play(kill_at)


def pays(ids: Any) -> Saying:
    """Return a model that makes what is left of two payments, under the ids of a case."""

    def say(messages: Any) -> Any:
        done = sum(isinstance(each, ToolMessage) and each.status == "success" for each in messages)
        left = ids[0 if len(ids) == 1 else -1][: 2 - done]
        return calls(*(pay(each, 10) for each in left)).tool_calls if done < 2 else "Paid."

    return Saying(say=say)


def decide(out: Any, bank: Bank, saver: Any) -> Any:
    """Return the answer of a person who looks into the bank's log: what the thread does not know of took effect."""
    saved = [(each.checkpoint, each.pending_writes or ()) for each in saver.list(THREAD)]
    known = str([(kept, [write for write in writes if write[1] != "__resume__"]) for kept, writes in saved])
    ledger = MemoryLedger(saver)  # of two equal calls the other one may be settled there
    scopes = ledger._get("1", ledger.SCOPES) or {}
    rows = [ledger._get("1", key) for key, scope in scopes.items() if not scope.startswith("answers")]
    known += str([row["result"] for row in rows if row and row["status"] == "ok"])
    left = [number for number in range(1, len(bank.calls) + 1) if f"real-{number}" not in known]
    answers = {}
    for asked in out["__interrupt__"]:
        decision: dict = APPROVE
        if "approve" not in asked.value["review_configs"][0]["allowed_decisions"]:
            number = left.pop(0) if left else 0
            made = {"type": "happened", "message": json.dumps({"id": f"real-{number}", "left": 100 - 10 * number})}
            decision = made if number else {"type": "make_now"}
        answers[asked.id] = {"decisions": [decision] * len(asked.value["action_requests"])}
    return Command(resume=answers)


class Trims(AgentMiddleware):
    """Leaves the model what it said last alone: the turn's message is gone."""

    def before_model(self, state, runtime):
        kept = [each for each in state["messages"] if not isinstance(each, HumanMessage)][-2:]
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *kept]} if kept else None


def summary() -> Any:
    said = chat(*(AIMessage("Ann was paid.") for _ in range(9)))
    return SummarizationMiddleware(model=said, trigger=("messages", 3), keep=("messages", 2))


@pytest.mark.parametrize(("mode", "beside"), [*product(REAL, [None, summary, Trims])])
def test_a_message_delivered_again_is_paid_once_though_the_model_repeats_its_call(mode, beside):
    bank, saver = Bank(), InMemorySaver()
    embedded = (REAL.index(mode) + [None, summary, Trims].index(beside)) % 2 == 1
    for identifier, paid in (("m1", 1), ("m1", 1), ("m1", 1), ("m2", 2)):
        said, others = (calls(pay("call_0", 10)), "Paid."), [beside()] if beside else []
        out = go(agent_of(bank, saver, *said, mode=mode, beside=others, embedded=embedded), task(identifier))
        assert out["messages"][-1].text == "Paid."
        assert results(out)[-1:] == ["success"]
        assert bank.calls == [PAID] * paid
        assert embedded or out["gecko"]["state"]["balance"] == 100 - 10 * paid


@pytest.mark.parametrize("mode", REAL)
def test_a_parent_that_runs_the_agent_twice_for_a_message_has_an_equal_call_made_twice(mode):
    bank, saver = Bank(), InMemorySaver()

    class Runs(MessagesState):
        runs: int

    def parent() -> Any:
        said = [each for _ in range(2) for each in (calls(pay("call_0", 10)), AIMessage("Paid."))]
        toolkit = bank.toolkit()
        gecko = GeckoMiddleware(toolkit, mode=mode, state=STATE, interrupt_on="none")
        agent = create_agent(chat(*said), tools=toolkit.as_tools(), middleware=[gecko])
        builder = StateGraph(Runs)
        builder.add_node("agent", agent)
        builder.add_node("count", lambda state: {"runs": state["runs"] + 1})
        builder.add_edge(START, "agent")
        builder.add_edge("agent", "count")
        builder.add_conditional_edges("count", lambda state: "agent" if state["runs"] < 2 else END)
        return builder.compile(checkpointer=saver)

    for _ in range(2):
        out = parent().invoke({**task(), "runs": 0}, THREAD)
    assert bank.calls == [PAID] * 2
    assert results(out) == ["success"] * 4


def test_equal_calls_that_are_repeated_are_told_apart(run):
    bank, saver = Bank(), InMemorySaver()
    for _ in range(2):
        agent = agent_of(bank, saver, calls(pay("a", 10), pay("b", 10)), calls(pay("c", 10)), "Paid.")
        out = go(agent, task(), run)
    assert bank.calls == [PAID] * 3
    assert out["gecko"]["state"]["balance"] == 70
    repeated = [each.text for each in out["messages"] if isinstance(each, ToolMessage)][3:]
    assert len({*repeated}) == 3


@pytest.mark.parametrize("embedded", [False, True])
def test_what_was_interrupted_goes_on_with_an_equal_call(embedded):
    """The message is delivered again before it was answered: the model sees the first call, and makes the second."""
    bank, fate = Bank(), Fate()
    saver = KillingSaver(fate)

    class Dies(AgentMiddleware):
        def before_model(self, state, runtime):
            if any(isinstance(each, ToolMessage) for each in state["messages"]):
                fate.kill_at = 1

    with contextlib.suppress(Killed, GeckoError):
        agent_of(bank, saver, calls(pay("call_0", 10)), beside=[Dies()], embedded=embedded).invoke(task(), THREAD)
    fate.kill_at = 0
    out = agent_of(bank, saver, calls(pay("call_0", 10)), "Paid.", embedded=embedded).invoke(task(), THREAD)
    assert bank.calls == [PAID] * 2
    assert results(out) == ["success"] * 2


@pytest.mark.parametrize("embedded", [False, True])
def test_a_turn_that_summaries_have_cut_is_found_by_the_process_that_goes_on(embedded):
    bank, fate = Bank(), Fate()
    saver = KillingSaver(fate)  # LangGraph saves a checkpoint beside the next step: the call waits for it
    transfer = bank.transfer

    def dies(to: str, amount: int) -> dict:
        """Transfer money."""
        result = transfer(to, amount)
        fate.kill_at = 1 if amount == 20 else 0
        return result

    dies.__name__, bank.transfer = "transfer", dies
    said = calls(pay("call_0", 10)), calls(pay("call_0", 20))
    with contextlib.suppress(Killed, GeckoError):
        agent_of(bank, saver, *said, beside=[summary()], embedded=embedded).invoke(task(), THREAD)
    fate.kill_at, bank.transfer = 0, transfer
    for given in (None, task()):
        out = agent_of(bank, saver, "Paid.", beside=[summary()], embedded=embedded).invoke(given, THREAD)
        assert out["__interrupt__"][0].value["action_requests"][0]["args"] == {"to": "ann", "amount": 20}
    assert len(bank.calls) == 2


@pytest.mark.parametrize("embedded", [False, True])
def test_agents_of_two_names_do_not_take_each_others_results(embedded):
    bank, saver = Bank(), InMemorySaver()
    for name in ("one", "two", "one", "two"):
        said = calls(pay("call_0", 10)), "Paid."
        agent_of(bank, saver, *said, embedded=embedded, name=name).invoke(task(), THREAD)
    assert bank.calls == [PAID] * 2


DECISIONS = ["happened", "make_now", "skip"]


@pytest.mark.parametrize(("mode", "decision"), [*product(REAL, DECISIONS)])
def test_what_a_deleted_thread_has_left_is_asked_about(mode, decision):
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")
    connection, embedded = sqlite3.connect(":memory:", check_same_thread=False), decision != DECISIONS[REAL.index(mode)]
    with contextlib.closing(connection):
        saver, bank = sqlite.SqliteSaver(connection), Bank()

        def process() -> Any:
            return agent_of(bank, saver, calls(pay("call_0", 10)), "Paid.", mode=mode, embedded=embedded)

        go(process(), task())
        saver.delete_thread("1")
        agent, told = process(), []
        out = agent.invoke(task(), THREAD)
        while "__interrupt__" in out:
            asked = out["__interrupt__"][0].value
            (action,) = asked["action_requests"]
            is_doubt = decision in asked["review_configs"][0]["allowed_decisions"]
            told += [action["description"]] if is_doubt else []
            given = {"id": asked["id"], "decisions": [{"type": decision if is_doubt else "approve"}]}
            out = agent.invoke(Command(resume=given), THREAD)
        assert len(told) == 1
        assert "before the thread was deleted" in told[0]
        assert bank.calls == [PAID] * (2 if decision == "make_now" else 1)
        again = go(process(), task())
        assert bank.calls == [PAID] * (2 if decision == "make_now" else 1)
        assert results(again)[-1] == ("error" if decision == "skip" else "success")


def test_a_crash_before_the_first_checkpoint_is_no_deleted_thread():
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")

    class Forgets(sqlite.SqliteSaver):
        lost = True

        def put(self, config, *given):
            gone = {"configurable": {**config["configurable"], "checkpoint_id": given[0]["id"]}}
            return gone if self.lost else super().put(config, *given)

        def put_writes(self, *given, **more):
            return None if self.lost else super().put_writes(*given, **more)

    connection = sqlite3.connect(":memory:", check_same_thread=False)
    with contextlib.closing(connection):
        saver, bank = Forgets(connection), Bank()
        agent_of(bank, saver, calls(pay("call_0", 10)), "Paid.").invoke(task(), THREAD)
        assert saver.get_tuple(THREAD) is None
        saver.lost = False
        out = agent_of(bank, saver, "Paid.").invoke(task(), THREAD)
    assert bank.calls == [PAID]
    assert results(out) == ["success"]
    assert out["gecko"]["state"]["balance"] == 90


@pytest.mark.parametrize(("left", "since"), [("calls", 0), ("nothing", 1)])
def test_a_message_that_comes_again_before_an_answer_goes_on_if_its_calls_are_still_seen(left, since):
    """A model that a summary has robbed of its calls makes them once more: they are found, not made again."""
    asked, call = HumanMessage("Pay ann 50", id="m"), {"id": "c", "name": "pay", "args": {"to": "ann"}}
    seen = [asked, AIMessage("", tool_calls=[call]), ToolMessage("paid", tool_call_id="c")]
    robbed = [HumanMessage("ann was paid", id="s", additional_kwargs={"lc_source": "summarization"}), asked]
    entry = {"call": call, "key": "k", "result": "paid"}
    begun = open_turn({"messages": [asked]}, 0)
    again = {"messages": seen if left == "calls" else robbed, "gecko_turn": begun, "gecko_journal": [entry]}
    assert open_turn(again, 1)["since"] == since
