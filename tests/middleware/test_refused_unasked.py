"""`preview` asks nobody about a call that a written requirement refuses: it is answered as `guard` answers it."""

from __future__ import annotations

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph import Tool, Toolkit
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.testing import scripted

RULE = {"check": "args.amount <= state.left", "error": "only {{ state.left }} left"}
EFFECT = {"op": "replace", "path": ["left"], "value": "{{ state.left - args.amount }}"}
CONFIG = {"configurable": {"thread_id": "1"}}


def build(*calls, contract=None, **more):
    made = []

    def pay(amount: int) -> dict:
        """Pay."""
        made.append(amount)
        return {}

    contract = contract or {"requires": [RULE], "effects": [EFFECT], "returns": {}}
    toolkit = Toolkit.from_tools([Tool(pay, effect="write", contract=contract)])
    first = [{"call": "pay", "args": {"amount": amount}} for amount in calls]
    middleware = GeckoMiddleware(toolkit, mode="preview", state={"left": 100}, **more)
    model = scripted({"calls": first}, {"say": "Done."})
    agent = create_agent(model, tools=toolkit.as_tools(), checkpointer=InMemorySaver(), middleware=[middleware])
    return agent, made


def ask(agent):
    return agent.invoke({"messages": [("user", "pay")]}, CONFIG)


def answer(agent, question, *words):
    decisions = [{"type": word} for word in words]
    return agent.invoke(Command(resume={"id": question["id"], "decisions": decisions}), CONFIG)


def told(out):
    return [
        (each.content, each.additional_kwargs.get("gecko", {}).get("refused"))
        for each in out["messages"]
        if each.type == "tool"
    ]


def test_a_refused_call_is_answered_and_not_asked_about():
    agent, made = build(200)
    out = ask(agent)
    assert "__interrupt__" not in out
    assert (told(out), made) == ([("only 100 left", True)], [])


def test_only_the_others_of_its_message_are_asked_about():
    agent, made = build(60, 200)
    (question,) = ask(agent)["__interrupt__"]
    assert [each["args"] for each in question.value["action_requests"]] == [{"amount": 60}]
    out = answer(agent, question.value, "approve")
    assert (told(out)[1], made, out["gecko"]["state"]) == (("only 40 left", True), [60], {"left": 40})


def test_a_call_refused_after_the_one_before_it_is_not_made_unasked_where_that_is_rejected():
    agent, made = build(60, 60)
    (question,) = ask(agent)["__interrupt__"]
    out = answer(agent, question.value, "reject")
    assert (made, out["gecko"]["state"]) == ([], {"left": 100})
    assert told(out)[-1] == ("only 40 left", True)


def test_what_a_rule_lets_pass_and_what_only_a_learned_rule_refuses_is_as_before():
    agent, made = build(200, interrupt_on=[{"tool": "pay", "then": "allow"}])
    assert told(ask(agent)) == [("only 100 left", True)]
    evidence = {"kind": "membership", "for": 12, "against": [], "status": "established"}
    agent, made = build(200, contract={"requires": [{**RULE, "id": "refusal-1", "evidence": evidence}]})
    assert "__interrupt__" in ask(agent)
    assert made == []


def test_what_cannot_be_checked_is_asked_about():
    agent, _ = build(20, contract={"requires": [{"check": "state.limit > args.amount", "error": "over the limit"}]})
    assert "__interrupt__" in ask(agent)
