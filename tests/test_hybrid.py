"""Hybrid rehearsals: writes simulated, reads real; what the reads show is knowledge of the attempt, not its change."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph import GeckoContext, Refused, Scenario, Toolkit, create_gecko, format_run
from gecko_graph.agent.graph import create_gecko_agent
from gecko_graph.display import html_page
from gecko_graph.display.drafts import Drafts, list_events
from gecko_graph.errors import ScenarioError
from gecko_graph.events import Reader, stream_options
from gecko_graph.testing import recorded
from gecko_graph.values.digest import digest

OBSERVES = {"observes": [{"op": "add", "path": ["balances", "{{ args.account }}"], "value": "{{ result.balance }}"}]}
PAY = {
    "requires": [
        {"check": "args.account in state.balances", "error": "unknown account"},
        {"check": "at(state.balances, [args.account]) >= args.amount", "error": "not covered"},
    ],
    "effects": [
        {
            "op": "replace",
            "path": ["balances", "{{ args.account }}"],
            "value": "{{ at(state.balances, [args.account]) - args.amount }}",
        },
        {"op": "add", "path": ["paid", "-"], "value": "{{ args.amount }}"},
    ],
    "returns": {"ok": True},
}
LOOK = {"call": "balance_of", "args": {"account": "K-4711"}}
BILL = {"call": "bill_of", "args": {"account": "K-4711"}}
SAY = {"say": "Paid."}
CHECK = {"description": "the bill is paid", "check": "state.paid == [120]"}


class Bank:
    """A real service."""

    def __init__(self):
        self.balances = {"K-4711": 500}
        self.calls = []

    def balance_of(self, account: str) -> dict:
        """Return the balance of an account."""
        self.calls.append("balance_of")
        return {"balance": self.balances[account]}

    def bill_of(self, account: str) -> dict:
        """Return the open bill of an account."""
        return {"number": "B-90210", "amount": 120}

    def pay(self, account: str, amount: int) -> dict:
        """Pay an amount."""
        self.calls.append("pay")
        self.balances[account] -= amount
        return {"ok": True}

    def toolkit(self, get=None):
        contracts = {"pay": PAY, "balance_of": OBSERVES if get is None else get}
        effects = {"balance_of": "read", "bill_of": "read", "pay": "write"}
        return Toolkit.from_tools([self.balance_of, self.bill_of, self.pay], effects=effects, contracts=contracts)


def pay(amount):
    return {"call": "pay", "args": {"account": "K-4711", "amount": amount}}


def task(**state):
    return {
        "messages": [("user", "Pay the bill of K-4711")],
        "task_state": {"balances": {}, "paid": [], **state},
        "checklist": [CHECK],
    }


def rehearse(*attempts, get=None, saver=None, bank=None, events=None, start=None):
    models = {"planner": recorded(planner=list(attempts))}
    gecko = create_gecko((bank or Bank()).toolkit(get), models=models, checkpointer=saver)
    reader = Reader((events if events is not None else []).append)
    config = {"configurable": {"thread_id": "1"}} if saver else None
    given = {**task(), **({"task_state": start} if start else {})}
    for part in gecko.stream(given, config, context=GeckoContext(reads="real"), **stream_options(gecko)):
        reader.read(part)
    return reader.output


def test_an_observation_is_knowledge_and_not_a_change():
    run = rehearse([LOOK, BILL, pay(120), SAY])
    rehearsal = run["rehearsal"]
    (attempt,) = rehearsal["attempts"]
    assert rehearsal["verdict"]["status"] == "accepted"
    assert rehearsal["verdict"]["unasked_changes"] == []
    assert attempt["observed"] == [{"op": "add", "path": "/balances/K-4711", "value": 500}]
    assert {each["path"] for each in attempt["change"]} == {"/balances/K-4711", "/paid"}
    assert "replace /balances/K-4711 500 → 380" in rehearsal["changes"]
    assert rehearsal["observed"] == attempt["observed"]
    assert run["task_state"]["balances"] == {"K-4711": 380}
    assert attempt["end_digest"] == digest(run["task_state"])


def test_what_a_failed_attempt_has_seen_is_not_written_back():
    run = rehearse([LOOK, SAY])
    (attempt, *_) = run["rehearsal"]["attempts"]
    assert attempt["change"] == []
    assert attempt["verdict"]["unasked_changes"] == []
    assert run["task_state"]["balances"] == {}  # failed: facts of that attempt only
    assert "observed" not in run["rehearsal"]


def test_every_attempt_begins_from_the_identical_state_whatever_the_one_before_has_seen():
    run = rehearse([LOOK, pay(100), SAY], [pay(120), SAY], [LOOK, pay(120), SAY])
    first, second, third = run["rehearsal"]["attempts"]
    assert first["start_digest"] == second["start_digest"] == third["start_digest"]
    assert second["steps"][0]["outcome"]["result"] == "unknown account"
    assert "observed" not in second
    assert third["verdict"]["status"] == "accepted"


def test_a_real_value_comes_from_the_result_of_a_real_step():
    run = rehearse([BILL, LOOK, pay(120), SAY])
    (pay_id,) = [call["id"] for call in run["rehearsal"]["plan"] if call["name"] == "pay"]
    (origin,) = run["rehearsal"]["origins"][pay_id]["$.amount"]
    assert origin == {"kind": "stated", "from": "result", "step": 1, "path": "$.amount", "rung": "real"}
    assert run["rehearsal"]["verdict"].get("made_up", []) == []


def test_a_stale_read_stands_in_record_events_display_and_verdict():
    events = []
    run = rehearse([LOOK, pay(120), LOOK, SAY], events=events)
    outcome = run["rehearsal"]["attempts"][0]["steps"][2]["outcome"]
    assert (outcome["rung"], outcome["stale"], outcome["result"]) == ("real", True, {"balance": 500})
    assert run["task_state"]["balances"] == {"K-4711": 380}
    assert run["rehearsal"]["verdict"]["stale"][0].startswith("balance_of: ")
    assert [each["stale"] for each in events if each["type"] == "gecko.result"] == [False, False, True]
    (seen,) = [each["observed"] for each in events if each.get("observed")]
    assert seen[0]["value"] == 500
    shown, page = str(format_run(run)), html_page(run, start_state=task()["task_state"])
    for text in (
        "run for real; may not show",
        "1 stale read",
        "observed /balances/K-4711 500",
        "simulated by contract",
    ):
        assert text in shown
    for text in ("real, stale", "1 stale read", "observed&nbsp;/balances/K-4711"):
        assert text in page
    drafts = Drafts()
    for each in list_events(run["rehearsal"]["attempts"][0]):
        drafts.add(each)
    assert drafts.attempts[0]["steps"][2]["outcome"]["stale"]
    assert drafts.attempts[0]["steps"][0]["outcome"]["observed"] == seen


def test_a_read_that_its_contract_describes_shows_the_write():
    get = {**OBSERVES, "returns": {"balance": "{{ at(state.balances, [args.account]) }}"}}
    run = rehearse([LOOK, pay(120), LOOK, SAY], get=get)
    outcome = run["rehearsal"]["attempts"][0]["steps"][2]["outcome"]
    assert (outcome["rung"], outcome["simulated"], outcome["result"]) == ("contract", True, {"balance": 380})
    assert run["rehearsal"]["verdict"]["stale"] == []
    assert "own changes" in str(format_run(run))


def test_a_run_that_pauses_before_the_judge_goes_on_with_what_was_observed():
    models = {"planner": recorded(planner=[[LOOK, BILL, pay(120), SAY]])}
    gecko = create_gecko(Bank().toolkit(), models=models, checkpointer=InMemorySaver())
    config, context = {"configurable": {"thread_id": "1"}}, GeckoContext(reads="real")
    gecko.invoke(task(), config, context=context, interrupt_before=["judge"])
    run = gecko.invoke(None, config, context=context)
    assert run["rehearsal"]["verdict"]["status"] == "accepted"
    assert run["task_state"]["balances"] == {"K-4711": 380}


def test_a_file_cannot_open_real_tools():
    case = {"version": 1, "name": "x", "tools": [{"name": "look", "description": "", "parameters": {}}]}
    turns = [{"user": "Look", "replies": {}}]
    with pytest.raises(ScenarioError, match=r"limits.*GeckoContext"):
        Scenario.from_dict({**case, "turns": turns, "limits": {"reads": "real"}})


# the agent -----------------------------------------------------------------------------------------------------------


def agent_of(bank, *attempts, **more):
    models = {"planner": recorded(planner=list(attempts))}
    context = GeckoContext(reads=more.pop("reads", "real"))
    return create_gecko_agent(
        bank.toolkit(), models=models, review="none", checkpointer=InMemorySaver(), context=context, **more
    )


THREAD = {"configurable": {"thread_id": "1"}}
TOLD = {**task(), "messages": [("user", "Pay 120 from K-4711")]}


def test_the_agent_books_what_executed_reads_show():
    bank = Bank()
    out = agent_of(bank, [LOOK, BILL, pay(120), SAY]).invoke(TOLD, THREAD)
    assert out["execution"]["status"] == "done"
    assert bank.calls == ["balance_of", "pay"]  # read for real in the rehearsal: that is settled
    assert out["task_state"]["balances"] == bank.balances == {"K-4711": 380}


def test_a_preview_shows_changes_and_not_what_was_observed():
    models = {"planner": recorded(planner=[[LOOK, BILL, pay(120), SAY]])}
    context = GeckoContext(reads="real")
    agent = create_gecko_agent(Bank().toolkit(), models=models, checkpointer=InMemorySaver(), context=context)
    assert "__interrupt__" in agent.invoke(TOLD, THREAD)
    preview = agent.get_state(THREAD).values["preview"]
    assert sorted(preview["changes"]) == ["add /paid/0 120", "replace /balances/K-4711 500 → 380"]
    assert "balance_of" not in [each["call"]["name"] for each in preview["calls"]], "it was read for real"


def test_after_an_edit_a_real_read_still_knows_the_writes_before_it():
    models = {"planner": recorded(planner=[[LOOK, BILL, pay(120), LOOK, SAY]])}
    context = GeckoContext(reads="real")
    agent = create_gecko_agent(Bank().toolkit(), models=models, checkpointer=InMemorySaver(), context=context)
    agent.invoke(TOLD, THREAD)
    edit = {"type": "edit", "edited_action": {"name": "pay", "args": {"account": "K-4711", "amount": 125}}}
    asked = agent.invoke(Command(resume={"decisions": [edit]}), THREAD)["__interrupt__"][0].value
    preview = agent.get_state(THREAD).values["preview"]
    assert sorted(preview["changes"]) == ["add /paid/0 125", "replace /balances/K-4711 500 → 375"]
    assert preview["calls"][-1]["predicted"]["stale"]
    assert "observed" not in preview["calls"][-1]["predicted"]
    assert len(asked["action_requests"]) == 1


def test_what_is_left_is_rehearsed_with_what_executed_reads_have_shown():
    bank = Bank()
    failing = iter([True])
    real_pay = bank.pay

    def pay_once(account: str, amount: int) -> dict:
        """Pay an amount."""
        if next(failing, False):
            raise Refused("try later")
        return real_pay(account, amount)

    pay_once.__name__ = "pay"
    bank.pay = pay_once
    out = agent_of(bank, [LOOK, pay(120), SAY], [pay(120), SAY]).invoke(TOLD, THREAD)
    again = out["rehearsal"]["attempts"][-1]
    assert again["observed"] == [{"op": "add", "path": "/balances/K-4711", "value": 500}]
    assert out["execution"]["status"] == "done"
    assert out["task_state"]["balances"] == bank.balances == {"K-4711": 380}


@pytest.mark.parametrize("looks", [1, 2])
def test_a_stale_read_is_confirmed_by_reality_before_the_plan_goes_on(looks):
    bank = Bank()
    plan = [LOOK, pay(120), *[LOOK] * looks, SAY]
    out = agent_of(bank, plan).invoke(TOLD, THREAD)
    assert out["rehearsal"]["verdict"]["stale"]
    assert out["task_state"]["balances"] == bank.balances


def test_an_agent_with_simulated_reads_reads_nothing_before_execution():
    bank = Bank()
    agent = agent_of(bank, [LOOK, SAY], reads="simulated")
    agent.invoke({**task(), "checklist": [{"description": "looked", "check": "calls | length == 1"}]}, THREAD)
    assert bank.calls == ["balance_of"]
