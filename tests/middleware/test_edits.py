"""An edit is judged like the call that it edits: what rules, contracts or schemas refuse is refused or asked again."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph import Tool, Toolkit
from gecko_graph.middleware import GeckoMiddleware
from tests.middleware.bank import STATE, Bank, calls, chat, look, pay
from tests.middleware.test_agent import THREAD, answers, task
from tests.middleware.test_order import needs_per_call

APPROVE = {"type": "approve"}
RULES = [
    {"tool": "*", "then": "ask", "reason": "every call"},
    {"tool": "transfer", "when": "args.amount > 50", "then": "refuse", "reason": "too much"},
    {"tool": "transfer", "when": "args.to == 'eve'", "then": "ask", "reason": "who is eve"},
    {"tool": "close", "then": "refuse", "reason": "nobody closes"},
    {"tool": "balance", "then": "allow"},
]


class Branch(Bank):
    """A bank with more to do."""

    def refund(self, amount: int) -> str:
        """Refund."""
        self.calls.append(("refund", amount))
        return "refunded"

    def close(self) -> str:
        """Close the account."""
        self.calls.append(("close",))
        return "closed"

    def toolkit(self, **more: Any) -> Toolkit:
        effects = [{"op": "replace", "path": ["balance"], "value": "{{ state.balance + args.amount }}"}]
        return super().toolkit(**more) + Toolkit.from_tools(
            [Tool(self.refund, effect="write", contract={"effects": effects}), Tool(self.close, effect="write")]
        )


def edit(name: str, **args: Any) -> dict:
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


class Preview:
    """An agent in `preview`, asked by a person who edits."""

    def __init__(self, run, *made, interrupt_on: Any = RULES, toolkit: Any = None, then: Any = (), **more: Any) -> None:
        self.bank, self.run = Branch(), run
        toolkit = toolkit or self.bank.toolkit()
        gecko = GeckoMiddleware(toolkit, mode="preview", state=STATE, interrupt_on=interrupt_on, **more)
        tools = self.bank.toolkit().as_tools()
        model = chat(calls(*made), *then)
        self.agent = create_agent(model, tools=tools, middleware=[gecko], checkpointer=InMemorySaver())
        self.out = run(self.agent, task(), THREAD)

    @property
    def asked(self) -> list[dict]:
        """The calls that are asked about now."""
        return [each for one in self.out.get("__interrupt__", ()) for each in one.value["action_requests"]]

    def answer(self, *decisions: dict) -> Preview:
        """Answer the question that is open."""
        (one,) = self.out["__interrupt__"]
        self.out = self.run(self.agent, Command(resume={"id": one.value["id"], "decisions": [*decisions]}), THREAD)
        return self

    @property
    def told(self) -> list[str]:
        return [message.text for message in answers(self.out)]


@pytest.mark.parametrize(
    ("edited", "words"), [(edit("close"), "nobody closes"), (edit("transfer", to="ann", amount=51), "too much")]
)
def test_what_a_rule_refuses_is_refused(run, edited, words):
    done = Preview(run, pay("a", 30)).answer(edited)
    assert (done.bank.calls, done.asked) == ([], [])
    assert words in done.told[0]
    assert done.out["gecko"]["state"] == STATE


@pytest.mark.parametrize(
    ("edited", "word", "words", "made"),
    [
        (edit("refund", amount=5), "refund", "balance: 100 → 105", ("refund", 5)),
        (edit("transfer", to="eve", amount=5), "transfer", "who is eve", ("transfer", "eve", 5)),
    ],
)
def test_what_a_rule_asks_for_another_reason_or_of_another_tool_is_asked_again(run, edited, word, words, made):
    again = Preview(run, pay("a", 30)).answer(edited)
    (asked,) = again.asked
    assert (asked["name"], asked["args"], again.bank.calls) == (word, edited["edited_action"]["args"], [])
    assert words in asked["description"]
    again.answer(APPROVE)
    assert again.bank.calls == [made]
    rejected = Preview(run, pay("a", 30)).answer(edited).answer({"type": "reject", "message": "no"})
    assert (rejected.bank.calls, rejected.out["gecko"]["state"]) == ([], STATE)
    assert "rejected it: no" in rejected.told[0]


def test_an_edit_that_the_same_rule_asks_about_is_made_and_one_that_is_allowed_too(run):
    done = Preview(run, pay("a", 30), pay("b", 20)).answer(edit("transfer", to="bob", amount=7), edit("balance"))
    assert sorted(done.bank.calls) == [("balance",), ("transfer", "bob", 7)]
    assert done.out["gecko"]["state"]["balance"] == 93


def test_the_decisions_that_the_other_tool_allows_hold(run):
    named = {"transfer": True, "refund": {"allowed_decisions": ["reject"]}, "close": {"allowed_decisions": ["approve"]}}
    again = Preview(run, pay("a", 30), interrupt_on=named).answer(edit("refund", amount=5))
    assert again.out["__interrupt__"][0].value["review_configs"][0]["allowed_decisions"] == ["reject"]
    again.answer(APPROVE)
    assert "could not be used" in again.asked[0]["description"]
    assert again.answer({"type": "reject"}).bank.calls == []
    only = {"transfer": {"allowed_decisions": ["approve"]}}
    refused = Preview(run, pay("a", 30), interrupt_on=only).answer(edit("transfer", to="ann", amount=1))
    assert "expected a `type` of approve" in refused.asked[0]["description"]
    assert refused.bank.calls == []


@pytest.mark.parametrize(
    "edited", [edit("transfr", to="x", amount=1), edit("transfer", to="ann", amount="ten"), edit("write_todos")]
)
def test_what_no_tool_takes_is_asked_again(run, edited):
    again = Preview(run, pay("a", 30), exclude_tools=["write_todos"]).answer(edited)
    assert "could not be used" in again.asked[0]["description"]
    assert again.answer(APPROVE).bank.calls == [("transfer", "ann", 30)]


def test_an_edit_that_a_contract_refuses_is_refused_and_never_made(run):
    again = Preview(run, pay("a", 30), interrupt_on="writes").answer(edit("transfer", to="ann", amount=101))
    assert (again.bank.calls, again.out["gecko"]["state"]) == ([], STATE)
    assert "only 100 left" in again.told[0]


def test_two_edits_that_break_a_contract_together(run):
    both = [edit("transfer", to="ann", amount=60), edit("transfer", to="bob", amount=60)]
    again = Preview(run, pay("a", 30), pay("b", 20), interrupt_on="writes").answer(*both)
    assert any("only 40 left" in told for told in again.told)
    assert again.bank.calls == [("transfer", "ann", 60)]
    assert again.out["gecko"]["state"]["balance"] == again.bank.money == 40


def test_an_edit_of_an_edit_is_judged_as_well(run):
    again = Preview(run, pay("a", 30), look("b")).answer(edit("refund", amount=5)).answer(edit("close"))
    assert (again.bank.calls, again.asked) == ([("balance",)], [])
    assert "nobody closes" in "".join(again.told)
    back = Preview(run, pay("a", 30)).answer(edit("refund", amount=5)).answer(edit("transfer", to="eve", amount=5))
    assert "who is eve" in back.asked[0]["description"]
    assert back.answer(APPROVE).bank.calls == [("transfer", "eve", 5)]


def test_an_answer_counts_once_and_not_for_what_it_has_changed(run):
    first = Preview(run, pay("a", 30))
    (one,) = first.out["__interrupt__"]
    sent = Command(resume={"id": one.value["id"], "decisions": [edit("refund", amount=5)]})
    again = run(first.agent, sent, THREAD)
    twice = run(first.agent, sent, THREAD)
    assert "another question" in twice["__interrupt__"][0].value["action_requests"][0]["description"]
    assert [
        each.value["action_requests"][0]["name"] for each in (*again["__interrupt__"], *twice["__interrupt__"])
    ] == ["refund", "refund"]
    bare = run(first.agent, Command(resume={"decisions": [APPROVE]}), THREAD)
    assert "which question it answers" in bare["__interrupt__"][0].value["action_requests"][0]["description"]
    assert first.bank.calls == []
    first.out = bare
    assert first.answer(APPROVE).bank.calls == [("refund", 5)]
    run(first.agent, sent, THREAD)
    assert first.bank.calls == [("refund", 5)]


def hand(bank: Branch) -> list[StructuredTool]:
    """Tools with a JSON Schema of their own, as a library makes them."""
    shown = {each["function"]["name"]: each["function"] for each in bank.toolkit().as_openai()}
    return [
        StructuredTool.from_function(getattr(bank, name), name=name, description=name, args_schema=each["parameters"])
        for name, each in shown.items()
    ]


class Watched:
    """An agent in `guard` beside LangChain's own review."""

    def __init__(
        self, run, *made, is_first: bool, is_dict: bool = True, others=(), per_call=False, **more: Any
    ) -> None:
        self.bank, self.run, self.per_call = Branch(), run, per_call
        mode: Any = {"interrupt_mode": "per_call"} if per_call else {}
        person = HumanInTheLoopMiddleware(dict.fromkeys(("transfer", "balance"), True), **mode)
        gecko = GeckoMiddleware(self.bank.toolkit(), **{"mode": "guard", "state": STATE} | more)
        both = [person, gecko] if is_first else [gecko, person]
        tools = hand(self.bank) if is_dict else self.bank.toolkit().as_tools()
        said = chat(*(calls(each) for each in made))
        self.agent = create_agent(said, tools=tools, middleware=[*both, *others], checkpointer=InMemorySaver())
        run(self.agent, task(), THREAD)

    def answer(self, decision: dict) -> dict:
        """Answer the question that is open."""
        given = decision if self.per_call else {"decisions": [decision]}
        return self.run(self.agent, Command(resume=given), THREAD)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("is_dict", [True, False])
@pytest.mark.parametrize(
    ("edited", "words"),
    [
        (edit("transfer", to="ann", amount=101), "only 100 left"),
        (edit("transfer", to="ann", amount="ten"), "expected an integer"),
        (edit("transfer", amount=1), "required"),
    ],
)
def test_an_edit_under_langchains_review_is_checked(run, edited, words, is_first, is_dict):
    watched = Watched(run, pay("a", 30), is_first=is_first, is_dict=is_dict)
    out = watched.answer(edited)
    assert (watched.bank.calls, out["gecko"]["state"]) == ([], STATE)
    assert words in answers(out)[0].text


@pytest.mark.parametrize("is_first", [True, False])
def test_an_edit_to_another_tool_runs_that_tool(run, is_first):
    watched = Watched(run, look("a"), is_first=is_first)
    out = watched.answer(edit("transfer", to="ann", amount=30))
    assert watched.bank.calls == [("transfer", "ann", 30)]
    assert out["gecko"]["state"]["balance"] == watched.bank.money == 70


@pytest.mark.parametrize("is_first", [True, False])
def test_an_edit_of_an_excluded_tool_into_another_one_is_checked(run, is_first):
    watched = Watched(run, look("a"), is_first=is_first, exclude_tools=["balance"])
    out = watched.answer(edit("transfer", to="ann", amount=130))
    assert watched.bank.calls == []
    assert "only 100 left" in answers(out)[0].text


@needs_per_call
@pytest.mark.parametrize("mode", ["guard", "shadow"])
@pytest.mark.parametrize("amount", [101, 40, "ten"])
def test_an_edit_behind_the_guard_is_checked_when_it_is_called_again(run, amount, mode):
    watched = Watched(run, pay("a", 30), pay("b", 40), is_first=False, per_call=True, mode=mode)
    out = watched.answer(edit("transfer", to="ann", amount=amount))
    assert (watched.bank.calls, out["gecko"]["state"]) == ([], STATE)
    assert '"amount": ' in answers(out)[0].text
    out = watched.answer(APPROVE)
    assert watched.bank.calls == [("transfer", "ann", 40)]
    assert out["gecko"]["state"]["balance"] == 60
    assert len(out["gecko_journal"]) == 2


@needs_per_call
@pytest.mark.parametrize("is_dict", [True, False])
def test_an_edit_per_call_before_the_guard_is_checked_and_made(run, is_dict):
    refused = Watched(run, pay("a", 30), is_first=True, per_call=True, is_dict=is_dict)
    refused.answer(edit("transfer", to="ann", amount=101))
    made = Watched(run, pay("a", 30), is_first=True, per_call=True, is_dict=is_dict)
    out = made.answer(edit("transfer", to="ann", amount=40))
    assert (refused.bank.calls, made.bank.calls) == ([], [("transfer", "ann", 40)])
    assert out["gecko"]["state"]["balance"] == 60


class Changing(AgentMiddleware):
    """Changes the arguments in their place."""

    def wrap_tool_call(self, request, handler):
        request.tool_call["args"]["amount"] = 200
        return handler(request)

    async def awrap_tool_call(self, request, handler):
        request.tool_call["args"]["amount"] = 200
        return await handler(request)


def test_arguments_that_another_middleware_changes_behind_the_guard_are_not_sent(run):
    bank = Branch()
    gecko = GeckoMiddleware(bank.toolkit(), mode="guard", state=STATE)
    agent = create_agent(chat(calls(pay("a", 30))), tools=hand(bank), middleware=[gecko, Changing()])
    out = run(agent, task())
    assert bank.calls == []
    assert "after the guard had checked" in answers(out)[0].text


def test_a_rejected_call_is_not_asked_about_again_in_its_turn(run):
    then = [calls(pay("b", 30), pay("c", 5)), calls(pay("d", 30))]
    done = Preview(run, pay("a", 30), then=then, interrupt_on="writes")
    done.answer({"type": "reject", "message": "not to her"})
    assert [each["args"]["amount"] for each in done.asked] == [5]
    done.answer(APPROVE)
    assert done.bank.calls == [("transfer", "ann", 5)]
    assert not done.asked
    assert [text.count("rejected it: not to her") for text in done.told] == [1, 1, 0, 1]
