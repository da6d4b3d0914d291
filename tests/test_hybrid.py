"""Hybrid rehearsals: writes simulated, reads real; what the reads show is knowledge of the attempt, not its change."""

from __future__ import annotations

import pytest

from gecko_graph import GeckoContext, Models, Scenario, Tool, Toolkit, create_gecko, format_run
from gecko_graph.display import html_page
from gecko_graph.display.records import Drafts
from gecko_graph.errors import ScenarioError
from gecko_graph.events import Reader, stream_options
from gecko_graph.testing import recorded
from gecko_graph.values.digest import digest
from gecko_graph.values.notes import notes_of
from tests.agents import call, make_agent, thread
from tests.doubts import texts

OBSERVES = {"observes": [{"op": "add", "path": ["balances", "{{ args.account }}"], "value": "{{ result.balance }}"}]}
PAY = {
    "requires": [
        {"check": "args.account in state.balances", "error": "unknown account"},
        {"check": "at(state.balances, [args.account]) >= args.amount", "error": "not covered"},
    ],
    "effects": [
        {"op": "replace", "path": ["balances", "{{ args.account }}"],
         "value": "{{ at(state.balances, [args.account]) - args.amount }}"},
        {"op": "add", "path": ["paid", "-"], "value": "{{ args.amount }}"},
    ],
    "returns": {"ok": True},
}  # fmt: skip
LOOK, BILL = call("balance_of", account="K-4711"), call("bill_of", account="K-4711")
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

    def toolkit(self):
        reads = Tool(self.balance_of, effect="read", contract=OBSERVES), Tool(self.bill_of, effect="read")
        return Toolkit.from_tools([*reads, Tool(self.pay, effect="write", contract=PAY)])


def pay(amount):
    return call("pay", account="K-4711", amount=amount)


def task():
    state = {"balances": {}, "paid": []}
    return {"messages": [("user", "Pay the bill of K-4711")], "task_state": state, "checklist": [CHECK]}


def rehearse(*attempts, events=()):
    gecko = create_gecko(Bank().toolkit(), model=Models(planner=recorded(planner=list(attempts))))
    reader = Reader(events.append if isinstance(events, list) else bool)
    for part in gecko.stream(task(), context=GeckoContext(reads="real"), **stream_options(gecko)):
        reader.read(part)
    return reader.output


def test_an_observation_is_knowledge_and_not_a_change():
    run = rehearse([LOOK, BILL, pay(120), SAY])
    rehearsal = run["rehearsal"]
    (attempt,) = rehearsal["attempts"]
    assert rehearsal["verdict"]["status"] == "accepted"
    assert texts(rehearsal["verdict"], "unasked") == []
    assert attempt["observed"] == [{"op": "add", "path": "/balances/K-4711", "value": 500}]
    assert {each["path"] for each in attempt["change"]} == {"/balances/K-4711", "/paid"}
    assert "replace /balances/K-4711 500 → 380" in rehearsal["changes"]
    assert rehearsal["observed"] == attempt["observed"]
    assert run["task_state"]["balances"] == {"K-4711": 380}
    assert attempt["end_digest"] == digest(run["task_state"])


def test_a_stale_read_stands_in_record_events_display_and_verdict():
    events = []
    run = rehearse([LOOK, pay(120), LOOK, SAY], events=events)
    outcome = run["rehearsal"]["attempts"][0]["steps"][2]["outcome"]
    assert (outcome["rung"], len(texts(outcome, "stale")), outcome["result"]) == ("real", 1, {"balance": 500})
    assert run["task_state"]["balances"] == {"K-4711": 380}
    assert notes_of(run["rehearsal"]["verdict"], "stale")[0]["data"]["tool"] == "balance_of"
    assert [len(texts(each, "stale")) for each in events if each["type"] == "gecko.result"] == [0, 0, 1]
    (seen,) = [each["observed"] for each in events if each.get("observed")]
    assert seen[0]["value"] == 500
    shown, page = str(format_run(run)), html_page(run, start_state=task()["task_state"])
    for text in ("may lack the attempt", "1 stale read", "/balances/K-4711", "simulated by contract"):
        assert text in shown
        assert text in page
    assert "observed /balances/K-4711 500" in shown
    drafts = Drafts()
    for each in events:
        drafts.add(each)
    assert texts(drafts.attempts[1]["steps"][2]["outcome"], "stale")
    assert drafts.attempts[1]["steps"][0]["outcome"]["observed"] == seen


def test_a_file_cannot_open_real_tools():
    case = {"version": 1, "name": "x", "tools": [{"name": "look", "description": "", "parameters": {}}]}
    turns = [{"user": "Look", "replies": {}}]
    with pytest.raises(ScenarioError, match=r"limits.*GeckoContext"):
        Scenario.from_dict({**case, "turns": turns, "limits": {"reads": "real"}})


# the agent -----------------------------------------------------------------------------------------------------------


def act(bank, *plan):
    agent = make_agent(bank.toolkit(), plan, context=GeckoContext(reads="real"))
    return agent.invoke({**task(), "messages": [("user", "Pay 120 from K-4711")]}, thread())


def test_the_agent_books_what_executed_reads_show():
    bank = Bank()
    out = act(bank, LOOK, BILL, pay(120), SAY)
    assert out["execution"]["status"] == "done"
    assert bank.calls == ["balance_of", "pay"]  # read for real in the rehearsal: that is settled
    assert out["task_state"]["balances"] == bank.balances == {"K-4711": 380}


def test_a_stale_read_is_confirmed_by_reality_before_the_plan_goes_on():
    bank = Bank()
    out = act(bank, LOOK, pay(120), LOOK, LOOK, SAY)
    assert texts(out["rehearsal"]["verdict"], "stale")
    assert out["task_state"]["balances"] == bank.balances
