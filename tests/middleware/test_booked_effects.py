"""What a call has spent is not there for the next one, in every mode, whatever the contract says of the result."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph import Models, Tool, Toolkit, create_gecko_agent
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.testing import recorded
from tests.middleware.bank import CONTRACTS, STATE, Bank, calls, chat, pay
from tests.middleware.test_agent import THREAD, answers, task

OPEN = {"cases": [{"pass": "the bank knows"}]}
RETURNS: dict[str, Any] = {"none": None, "whole": OPEN, "part": {"left": "{{ state.balance }}", "id": OPEN}}
BEFORE: dict[str, Any] = {**CONTRACTS["transfer"], "let": {}, "effects": CONTRACTS["transfer"]["effects"][:1]}


def toolkit_of(bank: Bank, returns: str, *, is_learned: bool = False) -> tuple[Toolkit, dict]:
    """Return the bank's tools, and what is learned of them."""
    contract = {key: each for key, each in BEFORE.items() if key not in ("let", "returns", "ensures")}
    contract |= {"returns": RETURNS[returns]} if RETURNS[returns] else {}
    if not is_learned:
        return Toolkit.from_tools([Tool(bank.transfer, effect="write", contract=contract)]), {}
    parts = {part: {"status": "established"} for part in ("effects", "returns") if part in contract}
    rule = {"kind": "membership", "for": 12, "against": [], "status": "established"}
    learned = {**contract, "evidence": parts, "requires": [{**contract["requires"][0], "evidence": rule}]}
    return Toolkit.from_tools([Tool(bank.transfer, effect="write")]), {"learned": {"contracts": {"transfer": learned}}}


def agent_of(bank: Bank, mode: str, *made, returns: str, is_learned: bool = False):
    toolkit, more = toolkit_of(bank, returns, is_learned=is_learned)
    gecko = GeckoMiddleware(toolkit, mode=mode, state=STATE, **more)
    saver = None if is_learned and mode == "guard" else InMemorySaver()  # else a person is asked about what is refused
    return create_agent(chat(*made), tools=toolkit.as_tools(), middleware=[gecko], checkpointer=saver)


@pytest.mark.parametrize("returns", RETURNS)
@pytest.mark.parametrize("is_learned", [False, True])
def test_a_guard_lets_no_second_payment_go(run, returns, is_learned):
    for made in ([calls(pay("a", 60), pay("b", 60, "bob"))], [calls(pay("a", 60)), calls(pay("b", 60, "bob"))]):
        bank = Bank()
        agent = agent_of(bank, "guard", *made, returns=returns, is_learned=is_learned)
        out = run(agent, task(), THREAD)
        assert bank.calls == [("transfer", "ann", 60)]
        assert out["gecko"]["state"]["balance"] == 40
        assert not out["gecko_journal"][0]["drift"]


@pytest.mark.parametrize("returns", RETURNS)
def test_a_guard_remembers_in_the_next_turn_of_the_thread(run, returns):
    bank = Bank()
    said = [calls(pay("a", 60)), "Done.", calls(pay("b", 60, "bob")), "Done."]
    agent = agent_of(bank, "guard", *said, returns=returns)
    run(agent, task(), THREAD)
    out = run(agent, task(), THREAD)
    assert bank.calls == [("transfer", "ann", 60)]
    assert "only 40 left" in answers(out)[-1].text


@pytest.mark.parametrize("returns", RETURNS)
@pytest.mark.parametrize("is_learned", [False, True])
def test_the_next_question_of_a_preview_begins_from_what_is_left(run, returns, is_learned):
    bank = Bank()
    made = [calls(pay("a", 60)), calls(pay("b", 30, "bob")), calls(pay("c", 30, "cy")), "Done."]
    agent = agent_of(bank, "preview", *made, returns=returns, is_learned=is_learned)
    out = run(agent, task(), THREAD)
    for change in ("100 → 40", "40 → 10"):
        asked = out["__interrupt__"][0].value
        assert change in asked["action_requests"][0]["description"]
        out = run(agent, Command(resume={"id": asked["id"], "decisions": [{"type": "approve"}]}), THREAD)
    if "__interrupt__" in out:  # a learned rule asks, a written one refuses
        asked = out["__interrupt__"][0].value
        assert "only 10 left" in asked["action_requests"][0]["description"]
        out = run(agent, Command(resume={"id": asked["id"], "decisions": [{"type": "reject"}]}), THREAD)
    else:
        assert "only 10 left" in answers(out)[-1].text
    assert is_learned == (not any("only 10 left" in each.text for each in answers(out)))
    assert (len(bank.calls), out["gecko"]["state"]["balance"], bank.money) == (2, 10, 10)


@pytest.mark.parametrize("returns", RETURNS)
def test_a_shadow_follows_and_tells_where_reality_lies(run, returns):
    bank = Bank()
    bank.lie = 7
    out = run(agent_of(bank, "shadow", calls(pay("a", 60)), returns=returns), task(), THREAD)
    assert out["gecko"]["state"]["balance"] == 40
    drift = [each["path"] for each in out["gecko_journal"][0]["drift"]]
    assert drift == (["/left"] if returns == "part" else [])


@pytest.mark.parametrize("returns", RETURNS)
def test_an_agent_goes_on_from_what_is_left(run, returns):
    bank = Bank()
    plans = [
        [{"call": "transfer", "args": {"to": to, "amount": amount}}, {"say": "Paid."}]
        for to, amount in (("ann", 60), ("bob", 30))
    ]
    agent = create_gecko_agent(
        toolkit_of(bank, returns)[0],
        model=Models(planner=recorded(*({"planner": [plan]} for plan in plans))),
        checkpointer=InMemorySaver(),
    )
    item = {"description": "it is paid", "check": "state.balance < before.balance"}
    given: Any = {"messages": [("user", "Pay ann 60")], "task_state": STATE, "checklist": [item]}
    for change in ("100 → 40", "40 → 10"):
        asked = run(agent, given, THREAD)["__interrupt__"][0].value
        assert change in asked["action_requests"][0]["description"]
        out = run(agent, Command(resume={"id": asked["id"], "decisions": [{"type": "approve"}]}), THREAD)
        given = {"messages": [("user", "Pay bob 30")], "checklist": [item]}
    assert out["task_state"]["balance"] == bank.money == 10
