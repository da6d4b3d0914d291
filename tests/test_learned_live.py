"""Learned contracts in a running agent: they warn, refuse until a person decides, and lose to what really happens."""

from __future__ import annotations

import pytest
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from evals.reality.killing import Fate, KillingSaver
from gecko_graph import GeckoContext, Models, Refused, Tool, Toolkit, World
from gecko_graph.learning.learn import learn_contracts
from gecko_graph.real.learned import exchange, teach
from gecko_graph.testing import recorded
from gecko_graph.values.observation import Observation
from gecko_graph.world.rung import Answer
from tests.doubts import texts

from .agents import APPROVE, embed, make_agent, thread
from .test_agent import Shop
from .test_agent_killed import DEAD, Service, answer_from

EVIDENCE = {"kind": "membership", "for": 12, "against": [], "status": "established"}
FULL, INK = "args.quantity <= 5", "args.item != 'ink'"
RULES = [
    {"id": "refusal-1", "check": FULL, "error": {"error": "too many"}, "evidence": EVIDENCE},
    {"id": "refusal-2", "check": INK, "pass": "perhaps refused: no ink", "evidence": {**EVIDENCE, "for": 4}},
]
LEARNED = {"contracts": {"order": {"requires": RULES}}}
DONE = [{"description": "it is ordered", "check": "len(state.orders) >= 1"}]
TASK = {"messages": [("user", "Order 9 pens, or 3 ink")], "task_state": {"orders": {}}, "checklist": DONE}
MANY = {"call": "order", "args": {"item": "pen", "quantity": 9}}
SOME = {"call": "order", "args": {"item": "ink", "quantity": 3}}


def start(shop: Shop, *attempts: list, interrupt_on="writes", **more):
    given = {"interrupt_on": interrupt_on, "learned": LEARNED}
    return make_agent(shop.toolkit(), turns=attempts, **given | more)


def text_of(out: dict) -> str:
    return out["__interrupt__"][0].value["action_requests"][0]["description"]


def test_an_established_rule_refuses_a_write_with_its_evidence():
    shop = Shop()
    out = start(shop, [MANY, {"say": "That is too many. All the same?"}]).invoke(TASK, thread())
    (step,) = out["rehearsal"]["attempts"][0]["steps"]
    assert step["outcome"]["violations"][0]["evidence"] == {"check": FULL, **EVIDENCE}
    assert "12 refusals" in step["outcome"]["result"]
    assert not shop.calls


def test_a_person_has_it_made_and_the_rule_refuses_no_more(caplog):
    shop, rows = Shop(), []
    again = [MANY, MANY, {"say": "Ordered."}]
    agent = start(shop, again, again[1:], observe=rows.append)
    out = agent.invoke(TASK, thread())
    assert "lawful if the quantity is at most 5" in text_of(out)
    assert FULL not in text_of(out)
    assert not shop.calls
    out = agent.invoke(Command(resume={"decisions": [APPROVE]}), thread())
    (entry,) = out["execution"]["calls"]
    assert (entry["status"], entry["refuted"]) == ("ok", [FULL])
    assert "refuses no more" in caplog.text
    assert [(row["tool"], row["status"]) for row in rows] == [("order", "ok")]
    assert shop.calls == ["order pen"]
    asked = agent.invoke({"messages": [("user", "9 pens more")], "checklist": DONE}, thread())  # in one go now
    assert "1 calls against it" in text_of(asked)


def test_where_nobody_is_asked_it_stays_refused():
    shop = Shop()
    out = start(shop, [MANY, MANY, {"say": "Ordered."}], interrupt_on="none").invoke(TASK, thread())
    assert (shop.calls, out["execution"]["status"]) == ([], "nothing")


def test_what_is_proposed_warns_in_record_and_approval_and_refuses_nothing():
    shop = Shop()
    out = start(shop, [SOME, {"say": "Ordered."}]).invoke(TASK, thread())
    assert "no ink" in text_of(out)
    assert not shop.calls
    shop = Shop()
    out = start(shop, [SOME, {"say": "Ordered."}], interrupt_on="none").invoke(TASK, thread())
    assert shop.calls == ["order ink"]
    assert "no ink" in texts(out["rehearsal"]["verdict"], "may_refuse")[0]


def test_a_read_is_never_refused_and_a_written_contract_wins():
    def order(item: str, quantity: int) -> dict:
        """Look an order up."""
        return {}

    for tool in (
        Tool(order, effect="read"),
        Tool(order, effect="write", contract={"requires": [], "returns": {"id": 1}}),
    ):
        world = World(teach(Toolkit.from_tools([tool]), LEARNED), state={})
        assert world.call({"name": "order", "args": MANY["args"]})["outcome"]["status"] == "ok"
        assert world.check({"id": "1", "name": "order", "args": MANY["args"]}) is None


@pytest.mark.parametrize(
    ("written", "refused"),
    [
        ({"fact": "order"}, True),
        ({"returns": {"id": 1}}, True),  # says nothing of refusals
        ({"requires": [], "returns": {"id": 1}}, False),
        ({"at": "shop", "returns": {"id": 1}}, False),
    ],
)
def test_what_was_learned_fills_what_the_written_contract_does_not_speak_of(written, refused):
    shop = Shop()
    tools = shop.toolkit().with_contracts({"contracts": {"order": written}})
    shop.toolkit = lambda: tools  # type: ignore[method-assign]
    agent = start(shop, [MANY, {"say": "That is too many."}])
    (step,) = agent.invoke(TASK, thread())["rehearsal"]["attempts"][0]["steps"]
    assert ("violations" in step["outcome"]) is refused
    assert not shop.calls


def test_a_written_requirement_refuses_as_written_beside_what_was_learned():
    written = {"order": {"requires": [{"check": "args.item != 'ink'", "error": "no ink here"}]}}
    answer = {"requires": RULES, "effects": [], "returns": {"id": 1}, "evidence": {"effects": {}, "returns": {}}}
    tools = teach(Shop().toolkit().with_contracts({"contracts": written}), {"contracts": {"order": answer}})
    world = World(tools, state={"orders": {}})
    refused, unknown, known = (
        world.call({"name": "order", "args": {"item": item, "quantity": count}})["outcome"]
        for item, count in (("ink", 9), ("pen", 9), ("pen", 1))
    )
    assert (refused["result"], refused["rung"]) == ("no ink here", "contract")
    assert "evidence" not in refused["violations"][0]
    assert (unknown["rung"], known["rung"]) == ("python", "contract")
    assert "perhaps refused" in str(unknown["passed"])
    forms = [{"check": "state.shelf.pens > 1", "pass": "outside of what was seen"}]  # no doubt about a written one
    tools = teach(
        Shop().toolkit().with_contracts({"contracts": written}), {"contracts": {"order": {**answer, "requires": forms}}}
    )
    world = World(tools, state={"orders": {}}, context=GeckoContext(unclear="refuse"))
    outcome = world.call({"name": "order", "args": {"item": "pen", "quantity": 1}})["outcome"]
    assert (outcome["rung"], outcome["status"]) == ("python", "ok")


@pytest.mark.parametrize("kept", [True, False])
def test_what_one_thread_met_warns_others_by_the_store(kept):
    store, shop = InMemoryStore() if kept else None, Shop()
    shop.failing = [Refused("no ink")]
    plan = [SOME, {"say": "Ordered."}]
    start(shop, plan, [{"say": "No."}], interrupt_on="none", learned=None, store=store).invoke(TASK, thread())
    other = start(shop, plan, learned=None, store=store).invoke(TASK, thread("2"))  # as another process
    assert ("refused before: no …" in text_of(other)) is kept


def test_a_refuted_rule_refuses_no_more_in_other_processes_by_the_store():
    store, again = InMemoryStore(), [MANY, MANY, {"say": "Ordered."}]
    agent = start(Shop(), again, store=store)
    agent.invoke(TASK, thread())
    agent.invoke(Command(resume={"decisions": [APPROVE]}), thread())
    shop = Shop()
    start(shop, again[1:], store=store, interrupt_on="none").invoke(TASK, thread("2"))
    assert shop.calls == ["order pen"]


@pytest.mark.parametrize(
    ("told", "lacks", "sent"),
    [
        ("no ink", 2, False),
        ("no ink", 3, True),  # too few
        ("no ink", None, True),  # its kind never refuses
        ("closed", 2, True),  # refused for something else
        (None, 2, True),  # done once
    ],
)
def test_a_rule_that_warned_refuses_once_real_refusals_have_confirmed_it(told, lacks, sent):
    evidence = {**EVIDENCE, "status": "proposed", "for": 8, **({"lacks": lacks} if lacks else {})}
    learned = {"contracts": {"order": {"requires": [{**RULES[1], "evidence": evidence}]}}}
    tools, store = teach(Shop().toolkit(), learned), InMemoryStore()
    for number, quantity in enumerate([1, 2, 2]):
        made = {"id": str(number), "name": "order", "args": {"item": "ink", "quantity": quantity}}
        World(tools, state={"orders": {}}).record(made, Answer("error" if told else "ok", told or {}))
    exchange(store, tools)
    other = teach(Shop().toolkit(), learned)  # as another process
    exchange(store, other)
    for known in (tools, other):
        call = {"name": "order", "args": SOME["args"]}
        outcome = World(known, state={"orders": {}}).call(call)["outcome"]
        rejection = World(known, state={"orders": {}}).check({"id": "9", **call})
        assert (rejection is None) is sent
        assert ("learned from 10 refusals" in str(outcome["result"])) is not sent


def test_without_a_store_what_real_calls_taught_stands_in_their_rows():
    """A process that learns from them later sees drift, and which foreseen refusals came."""
    shop, rows = Shop(), []
    shop.failing = [Refused("no ink")]
    start(shop, [SOME, {"say": "Ordered."}], [{"say": "No."}], interrupt_on="none", observe=rows.append).invoke(
        TASK, thread()
    )
    proposals = learn_contracts(shop.toolkit(), map(Observation.from_row, rows)).proposals["order"]
    assert ("requires", "refused before: no …") in {(one["part"], one["says"]) for one in proposals}


def test_the_same_call_is_proposed_again_once_a_write_succeeded_or_the_user_insists():
    shop = Shop()
    shop.failing = [Refused("no pens")]
    refused = [MANY, {"say": "It was refused."}]
    plans = [[[MANY, {"say": "Ordered."}], refused], [refused], [[MANY, MANY, {"say": "Ordered."}]]]
    planner = recorded(*({"planner": each} for each in plans))
    agent = make_agent(shop.toolkit(), model=Models(planner=planner))
    agent.invoke(TASK, thread())
    assert shop.calls == ["order pen"]
    out = agent.invoke({"messages": [("user", "And 9 pens now?")], "checklist": DONE}, thread())
    (complaint,) = out["rehearsal"]["attempts"][0]["steps"][0]["complaints"]
    assert "no pens" in complaint["expected"]
    assert shop.calls == ["order pen"]
    agent.invoke({"messages": [("user", "Order the 9 pens all the same")], "checklist": DONE}, thread())
    assert shop.calls == ["order pen"] * 2


@pytest.mark.parametrize("after", [False, True])
def test_killed_in_a_call_that_was_overruled_it_is_a_doubt_and_made_once(after):
    fate, rows, as_node = Fate(), [], after
    service, saver = Service(fate, 1, after=after), KillingSaver(fate)

    def process():
        plan = [MANY, MANY, {"say": "Ordered."}]
        agent = start(service, plan, checkpointer=None if as_node else saver, observe=rows.append)
        return embed(agent, saver) if as_node else agent

    process().invoke(TASK, thread())
    with pytest.raises(DEAD):
        process().invoke(Command(resume={"decisions": [APPROVE]}), thread())
    fate.kill_at = 0
    question = process().invoke(None, thread())["__interrupt__"][0].value
    decisions = [answer_from(service.log, *question["action_requests"])]
    out = process().invoke(Command(resume={"id": question["id"], "decisions": decisions}), thread())
    assert [name for name, _ in service.log] == ["order pen"]
    assert out["execution"]["status"] == "done"
    assert len(rows) == (not after)  # what a person says of a doubt is no observation
