"""Learned contracts under middleware: a guard without a model, whose refusal a person may overrule."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from evals.reality.killing import Fate, Killed, KillingSaver
from gecko_graph import GeckoError
from gecko_graph.middleware import GeckoMiddleware
from tests.middleware.bank import STATE, Bank, calls, chat, pay
from tests.middleware.test_claims import PAID, TASK, THREAD, dying

EVIDENCE = {"kind": "membership", "for": 12, "against": [], "status": "established"}
RULE = {"id": "refusal-1", "check": "args.amount < 20", "error": "the limit is 20", "evidence": EVIDENCE}
LEARNED = {"contracts": {name: {"requires": [RULE]} for name in ("transfer",)}}
LEARNED["contracts"]["balance"] = {"requires": [{**RULE, "check": "False"}]}


def start(bank: Bank, saver, *said, mode="guard", **more):
    toolkit = bank.bare()
    middleware = [GeckoMiddleware(toolkit, mode=mode, state=STATE, learned=LEARNED, **more)]
    return create_agent(chat(*said), tools=toolkit.as_tools(), middleware=middleware, checkpointer=saver)


def test_what_is_no_file_of_contracts_is_a_mistake():
    with pytest.raises(GeckoError, match="learned: expected a file of contracts"):
        GeckoMiddleware(Bank().bare(), mode="guard", learned=5)


def said_by(out: dict) -> str:
    return next(each.text for each in reversed(out["messages"]) if isinstance(each, ToolMessage))


@pytest.mark.parametrize("saver", [None, InMemorySaver])
def test_a_refused_write_shows_rule_and_evidence_and_a_read_is_never_refused(run, saver):
    bank, more = Bank(), {"interrupt_on": "none"} if saver else {}
    message = calls(("r", "balance", {}), pay("a", 30))
    out = run(start(bank, saver and saver(), message, "No.", **more), TASK, THREAD)
    assert bank.calls == [("balance",)]
    assert "12 refusals" in said_by(out)
    assert RULE["check"] in said_by(out)


@pytest.mark.parametrize(("written", "refused"), [({"fact": "paid"}, True), ({"requires": []}, False)])
def test_beside_a_written_contract_a_learned_rule_refuses_where_that_says_nothing(run, written, refused):
    bank = Bank()
    toolkit = bank.bare().with_contracts({"contracts": {"transfer": written}})
    guard = GeckoMiddleware(toolkit, mode="guard", state=STATE, learned=LEARNED, interrupt_on="none")
    said = chat(calls(pay("a", 30)), "Done.")
    agent = create_agent(said, tools=toolkit.as_tools(), middleware=[guard], checkpointer=InMemorySaver())
    run(agent, TASK, THREAD)
    assert bank.calls == ([] if refused else [PAID])


@pytest.mark.parametrize("word", ["approve", "reject"])
@pytest.mark.parametrize("mode", ["guard", "preview"])
def test_a_person_may_have_it_made(run, mode, word, caplog):
    bank, rows = Bank(), []
    agent = start(bank, InMemorySaver(), calls(pay("a", 30)), "Done.", mode=mode, observe=rows.append)
    asked = run(agent, TASK, THREAD)["__interrupt__"][0].value
    assert RULE["check"] in asked["action_requests"][0]["description"]
    out = run(agent, Command(resume={"id": asked["id"], "decisions": [{"type": word}]}), THREAD)
    assert "__interrupt__" not in out
    assert bank.calls == ([PAID] if word == "approve" else [])
    assert len(rows) == len(bank.calls)
    if word == "approve":
        assert out["gecko_journal"][0]["refuted"] == [RULE["check"]]
        assert "refuses no more" in caplog.text


def test_after_a_contradiction_the_guard_lets_the_next_call_through(run):
    bank = Bank()
    message = [calls(pay("a", 30)), calls(pay("b", 40)), "Done."]
    agent = start(bank, InMemorySaver(), *message)
    asked = run(agent, TASK, THREAD)["__interrupt__"][0].value
    out = run(agent, Command(resume={"id": asked["id"], "decisions": [{"type": "approve"}]}), THREAD)
    assert "__interrupt__" not in out
    assert [call[2] for call in bank.calls] == [30, 40]


def test_killed_in_a_call_that_was_overruled_it_is_a_doubt_and_made_once():
    fate, bank = Fate(), Bank()
    saver, back = KillingSaver(fate), dying(bank, fate)
    given = TASK
    for _ in range(2):
        try:
            out = start(bank, saver, calls(pay("a", 30))).invoke(given, THREAD)
        except (Killed, GeckoError):
            break
        given = Command(resume={"id": out["__interrupt__"][0].value["id"], "decisions": [{"type": "approve"}]})
    back()
    asked = start(bank, saver).invoke(None, THREAD)["__interrupt__"][0].value
    assert asked["review_configs"][0]["allowed_decisions"] == ["happened", "make_now", "skip"]
    happened = {"id": asked["id"], "decisions": [{"type": "happened"}]}
    start(bank, saver, "Done.").invoke(Command(resume=happened), THREAD)
    assert bank.calls == [PAID]
