"""`GeckoMiddleware` in LangChain's `create_agent`: each mode, sync and async, many calls at once, resume."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph import GeckoError, Tool, Toolkit, World
from gecko_graph.conversation.augment import scramble_names
from gecko_graph.display.rows import build_real
from gecko_graph.errors import StateError
from gecko_graph.middleware import GeckoMiddleware, live
from gecko_graph.testing import recorded
from tests.doubts import texts
from tests.middleware.bank import STATE, Bank, calls, chat, look, pay

THREAD = {"configurable": {"thread_id": "1"}}


def agent_of(bank: Bank, *messages: AIMessage, saver=None, others=(), toolkit=None, **more):
    toolkit = toolkit or bank.toolkit()
    gecko = GeckoMiddleware(toolkit, **{"state": STATE} | more)
    return create_agent(chat(*messages), tools=toolkit.as_tools(), middleware=[*others, gecko], checkpointer=saver)


def task(**more) -> dict:
    return {"messages": [("user", "Pay ann")]} | more


def answers(out: dict) -> list[ToolMessage]:
    return [message for message in out["messages"] if isinstance(message, ToolMessage)]


def marks(message: ToolMessage) -> dict:
    return message.additional_kwargs["gecko"]


def test_simulate_keeps_the_state_and_runs_nothing_real(run):
    bank = Bank()
    out = run(agent_of(bank, calls(pay("a", 30)), calls(look("b"))), task())
    first, second = answers(out)
    assert '"left": 70' in first.content
    assert second.content == '{"balance": 70}'
    assert marks(first) == {"simulated": True, "rung": "contract", "made_up": False}
    assert out["gecko"]["state"]["balance"] == 70
    assert World.restore(bank.toolkit(), out["gecko"]).log[0]["call"]["id"] == "a"
    assert bank.calls == []
    assert not {"gecko_batch", "gecko_done"} & out.keys()


def test_the_calls_of_one_message_see_each_other_and_complaints_are_errors(run):
    bank = Bank()
    out = run(agent_of(bank, calls(pay("a", 80), pay("b", "x"), pay("c", 80), ("d", "nope", {}))), task())
    _, complaint, refused, unknown = answers(out)
    assert [each.status for each in answers(out)] == ["success", "error", "error", "error"]
    assert "expected an integer" in complaint.content
    assert "only 20 left" in refused.content
    assert "one of the given tools" in unknown.content
    assert marks(complaint)["rung"] == "validator"
    assert out["gecko"]["state"]["balance"] == 20
    assert bank.calls == []


def test_what_a_model_makes_up_is_marked(run):
    bank = Bank()
    model = recorded(simulator=[{"status": "ok", "result": {"balance": 7}, "patch": []}] * 2)
    out = run(agent_of(bank, calls(look("a")), toolkit=bank.bare(), model=model), task())
    (message,) = answers(out)
    assert marks(message) == {"simulated": True, "rung": "model", "made_up": True}
    assert out["gecko"]["usage"]["simulator"]["calls"] == 1


def test_hybrid_reads_for_real_and_writes_nothing(run):
    bank = Bank()
    bank.money = 55
    out = run(agent_of(bank, calls(look("a"), pay("b", 10)), mode="hybrid"), task())
    read, write = answers(out)
    assert (read.content, marks(read)["rung"]) == ('{"balance": 55}', "real")
    assert marks(write)["simulated"]
    assert bank.calls == [("balance",)]


def test_guard_checks_each_call_in_the_state_that_the_one_before_has_left(run):
    bank = Bank()
    made = [pay(str(number), 60) for number in range(4)]
    out = run(agent_of(bank, calls(*made), calls(pay("z", 40)), mode="guard"), task())
    assert sorted(each.status for each in answers(out)) == ["error", "error", "error", "success", "success"]
    assert bank.money == 0
    assert out["gecko"]["state"]["balance"] == 0
    assert list(out["gecko"]["state"]["transfers"]) == ["real-1", "real-2"]
    assert [entry["call"]["name"] for entry in out["gecko_journal"]] == ["transfer", "transfer"]


@pytest.mark.parametrize("mode", ["guard", "shadow"])
def test_a_real_call_whose_precondition_cannot_be_evaluated_says_so(run, mode):
    bank, unsure = Bank(), {"requires": [{"check": "state.blance > 10", "error": "too little"}]}
    toolkit = bank.bare().declare(Tool("transfer", contract=unsure))
    agent = agent_of(bank, calls(pay("a", 30)), AIMessage("ok"), toolkit=toolkit, mode=mode)
    out = run(agent, task())
    (message,) = answers(out)
    assert (message.status, bank.money) == ("success", 70)
    assert "state.blance is undefined" in texts(marks(message), "unclear")[0]
    assert texts(out["gecko_journal"][0], "unclear") == texts(marks(message), "unclear")
    shown = [(row.label, row.text) for row in build_real(out["gecko_journal"][0]).rows]
    assert ("not checked", texts(marks(message), "unclear")[0]) in shown


def test_guard_says_what_came_of_a_result_that_breaks_its_postcondition(run):
    bank = Bank()
    bank.lie = -1
    (message,) = answers(run(agent_of(bank, calls(pay("a", 30)), mode="guard"), task()))
    assert message.status == "error"
    assert "was carried out" in message.content
    assert "overdrawn" in message.content
    assert marks(message)["departure"]["code"] == "ensures"


def test_shadow_runs_for_real_and_reports_drift(run):
    bank = Bank()
    bank.money = 50
    events = []
    agent = agent_of(bank, calls(pay("a", 30), look("b")), mode="shadow")
    out = run(agent, task())
    assert sorted(bank.calls) == [("balance",), ("transfer", "ann", 30)]
    transfer, _ = answers(out)
    assert (transfer.status, transfer.content) == ("success", '{"id": "real-1", "left": 20}')
    assert [drift["path"] for drift in marks(transfer)["drift"]] == ["/left"]
    assert [bool(entry["drift"]) for entry in out["gecko_journal"]] == [True, True]
    for mode, event in agent_of(bank, calls(look("c")), mode="shadow").stream(task(), stream_mode=["custom", "values"]):
        events += [event] if mode == "custom" else []
    assert [(event["type"], event["attempt"]) for event in events] == [("gecko.change", 0)]
    assert events[0]["drift"][0]["path"] == "/balance"


def test_preview_asks_once_and_then_carries_out(run):
    bank, saver = Bank(), InMemorySaver()
    agent = agent_of(bank, calls(pay("a", 30), look("b"), pay("c", 20, "bob")), mode="preview", saver=saver)
    paused = run(agent, task(), THREAD)
    (asked,) = paused["__interrupt__"]
    assert bank.calls == []
    assert [each["args"]["to"] for each in asked.value["action_requests"]] == ["ann", "bob"]
    assert "balance: 100 → 70" in asked.value["action_requests"][0]["description"]
    assert "balance: 70 → 50" in asked.value["action_requests"][1]["description"]
    out = run(agent, Command(resume={"decisions": [{"type": "approve"}, {"type": "approve"}]}), THREAD)
    assert sorted(bank.calls) == [("balance",), ("transfer", "ann", 30), ("transfer", "bob", 20)]
    assert out["gecko"]["state"]["balance"] == bank.money == 50
    assert not any(marks(message)["simulated"] for message in answers(out))


def test_preview_every_decision(run):
    bank, saver = Bank(), InMemorySaver()
    made = calls(pay("a", 30), pay("b", 20), pay("c", 10), pay("d", 5), pay("e", "x"))
    agent = agent_of(bank, made, mode="preview", saver=saver)
    (asked,) = run(agent, task(), THREAD)["__interrupt__"]
    assert len(asked.value["action_requests"]) == 4
    edit = {"type": "edit", "edited_action": {"name": "transfer", "args": {"to": "bob", "amount": 1}}}
    decisions = [{"type": "approve"}, {"type": "reject", "message": "not bob"}, edit]
    again = run(agent, Command(resume={"decisions": decisions}), THREAD)["__interrupt__"][0]
    assert "expected 4 decisions" in again.value["action_requests"][0]["description"]
    decisions.append({"type": "respond", "message": "done by hand"})
    out = run(agent, Command(resume={"decisions": decisions}), THREAD)
    by_id = {message.tool_call_id: message for message in answers(out)}
    assert sorted(bank.calls) == [("transfer", "ann", 30), ("transfer", "bob", 1)]
    assert by_id["b"].status == by_id["e"].status == "error"
    assert "not bob" in by_id["b"].content
    assert "expected an integer" in by_id["e"].content
    assert by_id["d"].content == "done by hand"
    assert out["gecko"]["state"]["balance"] == bank.money


def test_preview_waits_for_no_call_that_is_never_made(run, monkeypatch):
    monkeypatch.setattr(live, "POLL_S", "waited")  # sleeping so long raises
    bank, saver = Bank(), InMemorySaver()
    agent = agent_of(bank, calls(pay("a", "x"), pay("b", 10), pay("c", 5, "bob")), mode="preview", saver=saver)
    run(agent, task(), THREAD)
    out = run(agent, Command(resume={"decisions": [{"type": "reject"}, {"type": "approve"}]}), THREAD)
    assert bank.calls == [("transfer", "bob", 5)]
    assert [message.status for message in answers(out)].count("error") == 2


def test_preview_makes_each_call_that_was_approved_though_the_model_gave_them_one_id(run):
    bank, saver = Bank(), InMemorySaver()
    agent = agent_of(bank, calls(pay("a", 1), pay("a", 1), pay("b", 2)), mode="preview", saver=saver)
    run(agent, task(), THREAD)
    decisions = [{"type": "approve"}, {"type": "reject"}, {"type": "approve"}]
    out = run(agent, Command(resume={"decisions": decisions}), THREAD)
    assert bank.calls == [("transfer", "ann", 1), ("transfer", "ann", 2)]
    assert sorted(message.status for message in answers(out)) == ["error", "success", "success"]


def test_preview_refuses_by_rule_and_asks_nobody_about_reads(run):
    bank = Bank()
    rules = [{"tool": "*", "then": "allow"}, {"tool": "transfer", "when": "args.amount > 50", "then": "refuse"}]
    out = run(agent_of(bank, calls(pay("a", 60), pay("b", 10), look("c")), mode="preview", interrupt_on=rules), task())
    assert bank.calls[0] == ("transfer", "ann", 10) or ("transfer", "ann", 10) in bank.calls
    assert len(bank.calls) == 2
    assert answers(out)[0].status == "error"
    assert out["gecko"]["state"]["balance"] == 90


@pytest.mark.parametrize("mode", ["simulate", "guard"])
def test_two_calls_under_one_id_are_both_booked(run, mode):
    out = run(agent_of(Bank(), calls(pay("a", 30), pay("a", 50)), mode=mode), task())
    assert out["gecko"]["state"]["balance"] == 20
    assert sorted(out["gecko"]["state"]["transfers"].values()) == [30, 50]


def note(text: str, runtime: ToolRuntime) -> Command:
    """Take a note."""
    forged = {"gecko": World(Bank().toolkit(), state={"balance": 9}).snapshot(), "gecko_batch": {}}
    return Command(update={"messages": [ToolMessage(text, tool_call_id=runtime.tool_call_id)], **forged})


def test_a_command_of_a_real_tool_is_marked_and_booked(run):
    toolkit = Toolkit.from_tools([Tool(note, effect="write")])
    with pytest.warns(UserWarning, match="no tool has a contract"):
        gecko = GeckoMiddleware(toolkit, mode="guard")
    out = run(create_agent(chat(calls(("a", "note", {"text": "milk"}))), tools=[note], middleware=[gecko]), task())
    assert marks(answers(out)[0])["rung"] == "real"
    assert [entry["result"] for entry in out["gecko_journal"]] == ["milk"]
    assert out["gecko"]["state"] == {}, "what a tool returns is data: it does not change the world"


@pytest.mark.parametrize(
    "more", [{"mode": "guard", "learned": {"contracts": {}}}, {"mode": "simulate"}, {"mode": "preview"}]
)
def test_only_a_guard_that_has_nothing_to_guard_by_warns(more):
    GeckoMiddleware(Toolkit.from_tools([Tool(note, effect="write")]), **more)
    GeckoMiddleware(Toolkit.from_tools([Tool(note, effect="write", contract={"returns": "x"})]), mode="guard")


def test_untouched_tools_run_in_every_mode(run):
    bank = Bank()
    out = run(agent_of(bank, calls(look("a"), pay("b", 1)), exclude_tools=["balance"]), task())
    assert bank.calls == [("balance",)]
    assert "gecko" not in answers(out)[0].additional_kwargs


def test_a_tool_that_the_toolkit_does_not_have_never_runs(run):
    bank, ran = Bank(), []

    def stray() -> str:
        """Another tool."""
        ran.append(1)
        return "ran"

    for mode in ("simulate", "hybrid", "preview", "shadow", "guard"):
        gecko = GeckoMiddleware(bank.toolkit(), mode=mode)
        agent = create_agent(chat(calls(("a", "stray", {}))), tools=[stray], middleware=[gecko])
        with pytest.warns(UserWarning, match=r"calls of stray are refused.*exclude_tools=\['stray'\]"):
            (message,) = answers(run(agent, task()))
        assert message.status == "error"
    assert ran == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"mode": "real"}, "expected one of simulate"),
        ({"mode": "guard", "model": recorded()}, "asks no model"),
        ({"exclude_tools": "balance"}, "list of tool names"),
        ({"interrupt_on": "sometimes"}, "expected .writes"),
    ],
)
def test_mistakes(more, words):
    with pytest.raises(GeckoError, match=words):
        GeckoMiddleware(Bank().toolkit(), **more)


def test_a_thread_whose_snapshot_was_edited_is_not_gone_on_with(run):
    agent = agent_of(Bank(), calls(pay("a", 60)), mode="guard", saver=InMemorySaver())
    gecko = run(agent, task(), THREAD)["gecko"]
    agent.update_state(THREAD, {"gecko": gecko | {"state": STATE | {"balance": 1000}}})
    with pytest.raises(StateError, match="it was edited"):
        run(agent, {"messages": [("user", "More")]}, THREAD)


def test_a_state_that_cannot_be_begun_from():
    with pytest.raises(StateError, match="expected a JSON object"):
        agent_of(Bank(), state=[1])
    with pytest.raises(StateError, match="expected a JSON object"):
        agent_of(Bank(), state=lambda runtime: [1]).invoke(task())
    with pytest.raises(StateError, match="the function that gives it failed: ZeroDivisionError"):
        agent_of(Bank(), state=lambda runtime: 1 / 0).invoke(task())
    typed = Bank().toolkit(state_schema={"type": "object", "required": ["balance"]})
    with pytest.raises(StateError, match=r"^state: .*balance"):
        agent_of(Bank(), toolkit=typed, state=None).invoke(task())


@pytest.mark.parametrize("mode", ["guard", "shadow"])
def test_a_message_that_is_run_again_from_an_earlier_checkpoint_is_booked_on_its_state(run, mode):
    bank = Bank()
    agent = agent_of(bank, calls(pay("a", 60)), mode=mode, saver=InMemorySaver())
    run(agent, task(), THREAD)
    bank.money = 100
    (before,) = [each for each in agent.get_state_history(THREAD) if each.next == ("tools",)]
    out = run(agent, None, before.config)
    assert [call[0] for call in bank.calls] == ["transfer"], "it is given the answer of then"
    assert out["gecko"]["state"]["balance"] == 40


@pytest.mark.parametrize("mode", ["simulate", "hybrid", "guard", "shadow"])
def test_a_toolkit_whose_tools_are_disguised(run, mode):
    bank = Bank()
    toolkit = scramble_names(bank.toolkit())
    shown = {toolkit.resolve(tool.name): tool.name for tool in toolkit.as_tools()}
    said = calls(("a", shown["transfer"], {"to": "ann", "amount": 30}), ("b", "transfer", {}))
    out = run(agent_of(bank, said, toolkit=toolkit, mode=mode), task())
    assert out["gecko"]["state"]["balance"] == 70
    assert [each.status for each in answers(out)] == ["success", "error"]
