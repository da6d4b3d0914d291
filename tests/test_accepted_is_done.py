"""What is accepted was done: rules that no judge, however trusting, can talk past."""

from __future__ import annotations

import pytest

from gecko_graph import GeckoContext, Models, Tool, Toolkit, create_gecko
from gecko_graph.testing import recorded
from tests import desk
from tests.agents import call
from tests.doubts import texts

QUIET = GeckoContext(semantic_validation=False)
PAID = [{"op": "add", "path": "/paid", "value": True}]


NOTE = desk.function("note", "Write a note.", "text")
PAY, SETTLE = (desk.function(name, "Pay an invoice.", "number") for name in ("pay", "settle_invoice"))
FIND = desk.function("find_invoice", "Find a customer's open invoice.", "customer")
TOOLS = Toolkit.from_tools([Tool(FIND, effect="read"), *(Tool(each, effect="write") for each in (PAY, SETTLE, NOTE))])


def sim(patch=(), status="ok", **more):
    result = {"ok": True} if status == "ok" else "no such invoice"
    return {"status": status, "result": result, "patch": [*patch], **more}


def run(task, plan, sims=(), items=("done",), judge=None, say="It is all done.", rounds=0, tools=TOOLS):
    said = {"items": [{"id": f"item-{n}", "status": "success"} for n in range(1, len(items) + 1)]}
    said = judge if isinstance(judge, str) else said | (judge or {})
    model = recorded(planner=[[*plan, {"say": say}]] * (rounds + 1), simulator=[*sims] * (rounds + 1), judge=[said] * 8)
    context = QUIET.model_copy(update={"max_retries": rounds})
    models = Models(**dict.fromkeys(("planner", "simulator", "judge"), model))
    gecko = create_gecko(tools, model=models, context=context)
    state = {"paid": False, "runtime_state": {}}
    return gecko.invoke({"messages": [("user", task)], "task_state": state, "checklist": [*items]})


def verdict_of(*args, **more):
    return run(*args, **more)["rehearsal"]["verdict"]


TASK = "Pay invoice A-77"
FAILED = sim(status="error")


@pytest.mark.parametrize(
    ("plan", "sims", "why"),
    [
        ([], [], "no call was made: pay"),
        ([call("pay", number="A-77")], [FAILED], "no write has succeeded: pay"),
        ([call("pay")], [], "no write has succeeded: pay"),
        ([call("find_invoice", customer="A"), call("pay", number="A-77")], [sim(), FAILED],
         "no write has succeeded: pay"),
    ],
)  # fmt: skip
def test_without_a_successful_write_no_item_is_accepted_that_one_must_meet(plan, sims, why):
    verdict = verdict_of(TASK, plan, sims, items=["A-77 is paid"])
    assert (verdict["status"], verdict["items"][0]["reason"]) == ("failed", why)
    assert verdict["items"][0]["by"] == "rule"


@pytest.mark.parametrize(
    ("task", "plan", "sims", "items"),
    [
        (TASK, [call("pay", number="A-77")], [sim(PAID)], ["A-77 is paid"]),
        (TASK, [call("pay", number="A-7"), call("pay", number="A-77")], [FAILED, sim(PAID)], ["A-77 is paid"]),
        ("How do I pay?", [], [], ["the way is told"]),
        ("What do we owe Ann, and pay it", [call("find_invoice", customer="Ann"), call("pay", number="B-1")],
         [sim(), FAILED], ["what Ann is owed was looked up"]),
    ],
)  # fmt: skip
def test_what_was_done_and_what_was_only_asked_stay_accepted(task, plan, sims, items):
    assert verdict_of(task, plan, sims, items=items)["status"] == "accepted"


CHECK = [{"id": "item-1", "description": "paid", "check": "state.paid"}]


@pytest.mark.parametrize(
    ("name", "args", "word"),
    [("note", {"text": "paid"}, "failed"), ("pay", {"number": "A-77"}, "accepted"),
     ("settle_invoice", {"number": "A-77"}, "accepted")],
)  # fmt: skip
def test_a_check_is_met_only_by_what_was_asked_for(name, args, word):
    change = [{"op": "replace", "path": "/paid", "value": True}]
    verdict = verdict_of(TASK, [call(name, **args)], [sim(change)], items=CHECK)
    assert verdict["status"] == word
    assert (verdict["items"][0]["reason"] == "it holds only because of made-up changes by note") is (word == "failed")


def test_the_same_write_twice_is_named():
    patches = [[{"op": "add", "path": f"/paid_{n}", "value": 1}] for n in (1, 2)]
    verdict = verdict_of(TASK, [call("pay", number="A-77")] * 2, map(sim, patches))
    assert texts(verdict, "unasked") == ['pay({"number": "A-77"}) was made 2 times']
    assert verdict["status"] == "accepted"
    unchanged = verdict_of(TASK, [call("pay", number="A-77")] * 2, [sim(PAID), sim(unchanged=True)])
    assert texts(unchanged, "unasked") == []


def test_an_offer_behind_a_lookup_is_no_question_unless_the_judge_takes_it_for_one():
    plan, offer = [call("find_invoice", customer="Ann")], "Ann is owed 5 euros. Anything else?"
    asked = ("What is Ann owed?", plan, [sim()])
    assert verdict_of(*asked, say=offer)["status"] == "accepted"
    assert verdict_of(*asked, say=offer, judge={"stopping_was_right": True})["status"] == "needs_user"


def test_a_judge_that_cannot_be_read_costs_one_attempt_and_is_told_once():
    items, plan = ["A-77 is paid", "nothing else is paid"], [call("pay", number="A-77")]
    out = run(TASK, plan, [sim(PAID)], items, "I think it is fine!", rounds=3)["rehearsal"]
    assert (len(out["attempts"]), out["verdict"]["status"]) == (1, "failed")
    assert out["verdict"]["feedback"].count("holds no JSON") == 1
    assert texts(out["verdict"], "unanswered")[0].startswith("the judge did not answer")


def test_a_condition_that_did_not_hold_is_told_as_such():
    plan, item = [call("find_invoice", customer="Ann")], "if an invoice is open, it is paid"
    verdict = verdict_of("If an invoice of Ann is open, pay it", plan, [sim()], items=[item], say="None is open.")
    assert verdict["items"][0]["reason"].startswith("nothing was changed: its condition did not hold")
