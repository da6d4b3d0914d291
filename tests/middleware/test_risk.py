"""`guard` and `preview` with a risk model: judged once by the predicted effect, before the superstep that asks."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from evals.reality.killing import Fate, Killed, KillingSaver
from gecko_graph import GeckoContext, GeckoError, Models, Tool, Toolkit
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.real.policy import ReviewPolicy
from tests.deciding import Decider, openai
from tests.middleware.bank import STATE, Bank, calls, chat, look, pay
from tests.middleware.test_agent import THREAD, answers, task
from tests.test_risk import ROWS, word_of


def run(agent: Any, given: Any, config: Any = None) -> Any:
    return agent.invoke(given, config)


def edit(**args: Any) -> dict:
    return {"type": "edit", "edited_action": {"name": "transfer", "args": args}}


class Revocable(Bank):
    """The same with a way back."""

    def revoke(self, id: str) -> dict:
        """Take a transfer back."""
        self.calls.append(("revoke", id))
        return {"revoked": id}

    def toolkit(self, **more: Any) -> Toolkit:
        known = {
            "requires": [{"check": "args.id in state.transfers", "error": "unknown"}],
            "returns": {"revoked": "{{ args.id }}"},
        }
        effects = [
            {"op": "replace", "path": ["balance"], "value": "{{ state.balance + state.transfers[args.id] }}"},
            {"op": "remove", "path": ["transfers", "{{ args.id }}"]},
        ]
        return Toolkit.from_tools(
            [*super().toolkit(), Tool(self.revoke, effect="write", contract={**known, "effects": effects})]
        )


class Guarded:
    """A bank's agent under `guard` with a risk model, and the person who is asked."""

    def __init__(self, say, *made, run=run, mode="guard", saver=True, others=(), first=True, bank=None, **more):
        self.bank, self.run, self.made, self.mode, self.more = bank or Bank(), run, made, mode, more
        self.saver = InMemorySaver() if saver is True else saver
        self.open(say, others, first=first)
        self.out = run(self.agent, task(), THREAD)

    def open(self, say, others=(), *, first=True) -> None:
        """Begin a process over the same bank and saver."""
        self.risk, more = Decider(say=say), {**self.more}
        toolkit, band = more.pop("toolkit", None) or self.bank.toolkit(), more.pop("band", (0.2, 0.8))
        models, context = Models(risk=self.risk), GeckoContext(band=band)
        gecko = GeckoMiddleware(toolkit, mode=self.mode, state=STATE, model=models, context=context, **more)
        model, tools = chat(*(calls(*each) for each in self.made)), toolkit.as_tools()
        middleware = [*others, gecko] if first else [gecko, *others]
        self.agent = create_agent(model, tools=tools, middleware=middleware, checkpointer=self.saver or None)

    def again(self) -> Guarded:
        """Kill the process and begin another one, whose risk model must not be asked; the agent's model is done."""
        self.made = ()
        self.open(lambda *_: pytest.fail("it was asked again"))
        return self

    @property
    def question(self) -> dict:
        (one,) = self.out["__interrupt__"]
        return one.value

    def answer(self, *decisions: dict) -> Guarded:
        self.out = self.run(self.agent, Command(resume={"id": self.question["id"], "decisions": [*decisions]}), THREAD)
        return self

    @property
    def paid(self) -> list[tuple]:
        return [each for each in self.bank.calls if each[0] == "transfer"]


def guarded(say, band, evidence, **more) -> Guarded:
    """Return a guarded transfer of 10: its effect predicted, unknown, or with a way back as well."""
    bank = Revocable() if evidence == "way back" else Bank()
    toolkit = bank.bare() if evidence == "unknown" else None
    return Guarded(say, [pay("a", 10)], bank=bank, band=band, toolkit=toolkit, **more)


@pytest.mark.filterwarnings("ignore:guard. no tool has a contract")
@pytest.mark.parametrize(("p", "band", "evidence"), ROWS)
def test_guard(run, p, band, evidence):
    word, made = word_of(p, band), guarded(p, band, evidence, run=run)
    ((shown, _),) = made.risk.asked
    assert ("__interrupt__" in made.out) == (word == "ask")
    if word == "ask":
        assert made.paid == []
        assert f"its risk is unsure: p {p:.2f}" in made.question["action_requests"][0]["description"]
        made.again().answer({"type": "approve"})  # killed between question and answer
    assert made.paid == ([] if word == "refuse" else [("transfer", "ann", 10)])
    assert ("balance: 100 → 90" in shown) == (evidence != "unknown")
    assert ("Undone by revoke" in shown) == (evidence == "way back")


@pytest.mark.filterwarnings("ignore:guard. no tool has a contract")
@pytest.mark.parametrize(("row", "second"), [(1, 0.01), (2, 0.99), (2, 0.5), (3, 0.4)])
def test_guard_edited(row, second):
    p, band, evidence = ROWS[row]
    made, word = guarded([p, second, RuntimeError("asked again")], band, evidence), word_of(second, band)
    made.answer(edit(to="bob", amount=20))
    assert len(made.risk.asked) == 2, "an edit is judged anew"
    assert ("__interrupt__" in made.out) == (word == "ask" and second != p), "another probability is another reason"
    if "__interrupt__" in made.out:
        (action,) = made.question["action_requests"]
        assert (action["args"], made.paid) == ({"to": "bob", "amount": 20}, [])
        assert f"p {second:.2f}" in action["description"]
        made.again().answer({"type": "approve"})
    assert made.paid == ([] if word == "refuse" else [("transfer", "bob", 20)])
    assert len(made.risk.asked) == (0 if made.made == () else 2)


def test_above_it_is_refused_with_the_reason_and_not_asked_again(run):
    made = Guarded(0.95, [pay("a", 10)], [pay("b", 10)], run=run)
    assert "__interrupt__" not in made.out
    assert made.paid == []
    assert "it is judged as risky: p 0.95" in answers(made.out)[0].text
    assert len(made.risk.asked) == 1, "the same call in the next message is answered as before"


@pytest.mark.parametrize(("p", "decision"), [(0.5, {"type": "reject"}), (None, {"type": "approve"})])
def test_within_it_a_person_is_asked_and_the_model_never_again(p, decision):
    made = Guarded([p, RuntimeError("asked twice")], [pay("a", 10)])
    assert made.paid == []
    (action,) = made.question["action_requests"]
    assert "its risk is unsure" in action["description"]
    made.answer(decision)
    assert made.paid == ([("transfer", "ann", 10)] if decision["type"] == "approve" else [])
    assert len(made.risk.asked) == 1


def test_a_model_that_fails_leaves_it_to_the_person():
    made = Guarded(lambda *_: RuntimeError("away"), [pay("a", 10)])
    assert "its risk was not judged: RuntimeError: away" in made.question["action_requests"][0]["description"]
    assert made.answer({"type": "approve"}).paid == [("transfer", "ann", 10)]


def test_what_contracts_refuse_costs_no_model():
    made = Guarded(0.0, [pay("a", 500)], [pay("b", "many")])
    assert (made.risk.asked, made.paid) == ([], [])
    assert "only 100 left" in answers(made.out)[0].text


def test_reads_are_not_judged():
    made = Guarded(1.0, [look("a")])
    assert made.risk.asked == []
    assert made.bank.calls == [("balance",)]


def test_the_question_is_put_over_effect_way_back_origins_and_words():
    made = Guarded(0.0, [pay("a", 10)])
    ((shown, _),) = made.risk.asked
    parts = ("balance: 100 → 90", "No way back", "amount", "nothing real gives it", "transfer", "Pay ann")
    assert [part for part in parts if part not in shown] == []
    assert made.out["gecko"]["usage"]["risk"]["calls"] == 1


def test_of_a_message_each_call_is_judged_by_itself(run):
    made = Guarded([0.0, 0.9, 0.5], [pay("a", 1), pay("b", 2), pay("c", 3)], run=run)
    (action,) = made.question["action_requests"]
    assert action["args"]["amount"] == 3
    made.answer({"type": "approve"})
    assert made.paid == [("transfer", "ann", 1), ("transfer", "ann", 3)]
    assert len(made.risk.asked) == 3


def test_without_a_saver_or_with_another_model_it_is_refused():
    with pytest.raises(GeckoError, match="needs a checkpointer"):
        Guarded(0.0, [pay("a", 10)], saver=None)
    with pytest.raises(GeckoError, match="asks no model but Models"):
        GeckoMiddleware(Bank().toolkit(), mode="guard", model=Models(risk=Decider(), judge=Decider()))
    with pytest.raises(GeckoError, match="no model configured for role 'risk'"):
        GeckoMiddleware(Bank().toolkit(), mode="preview", interrupt_on={"rules": "writes", "risk": True})


def test_preview_is_judged_the_same():
    policy = {"rules": "writes", "risk": True}
    made = Guarded([0.5, RuntimeError("again")], [pay("a", 10)], mode="preview", interrupt_on=policy)
    assert made.answer({"type": "approve"}).paid == [("transfer", "ann", 10)]
    assert len(made.risk.asked) == 1


def test_a_tool_may_be_called_risk():
    def risk(amount: int) -> int:
        """Take a risk."""
        return amount

    toolkit = Toolkit.from_tools([Tool(risk, effect="write")])
    policy = ReviewPolicy.load({"risk": True}, toolkit)
    assert not policy.risk
    assert ReviewPolicy.load({"rules": {"risk": True}, "risk": True}, toolkit).risk


# beside LangChain's own


def beside(kind: str, say: float) -> tuple[Any, Any]:
    """Return another middleware that judges, and what it was asked; skip if this LangChain has none."""
    if kind == "core":
        theirs, other = pytest.importorskip("langchain.agents.middleware"), Decider(say=say)
        if not hasattr(theirs, "AutoModeMiddleware"):
            pytest.skip("AutoModeMiddleware came with langchain 1.5")
        return theirs.AutoModeMiddleware(tools=["transfer"], classifier=other), other.asked
    model, sent = openai(say)
    theirs = pytest.importorskip("langchain_openai.middleware")
    if not hasattr(theirs, "OpenAIAutoModeMiddleware"):
        pytest.skip("OpenAIAutoModeMiddleware came with a later langchain-openai")
    return theirs.OpenAIAutoModeMiddleware(tools=["transfer"], model=model), sent


@pytest.mark.filterwarnings("ignore:The class `OpenAI")
@pytest.mark.parametrize(
    ("kind", "before", "theirs", "own"),
    [
        *(("core", before, *ps) for before in (True, False) for ps in ((0.1, 0.1), (0.9, 0.1), (0.1, 0.9))),
        ("openai", True, 0.9, 0.1),
        ("openai", False, 0.1, 0.1),
    ],
)
def test_beside_auto_mode_in_both_orders(kind, before, theirs, own):
    middleware, asked = beside(kind, theirs)
    made = Guarded(own, [pay("a", 10)], others=[middleware], first=before)
    assert made.paid == ([("transfer", "ann", 10)] if max(theirs, own) < 0.5 else [])
    assert (len(made.risk.asked), len(asked)) == (1, 0 if own > 0.5 else 1)
    if own < 0.5 < theirs and before:
        assert "was blocked" in answers(made.out)[0].text
        assert made.out["gecko_journal"] == []
    if own < 0.5 < theirs and not before:  # an error whose reason nothing knows: the write may have taken effect
        assert made.question["review_configs"][0]["allowed_decisions"] == ["happened", "make_now", "skip"]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_killed_at_each_write_it_is_made_once_and_never_above_the_band(p):
    def run(agent, given, config=None):
        with contextlib.suppress(Killed, GeckoError):
            return agent.invoke(given, config)

    whole, kept = Fate(), 0
    Guarded(p, [pay("a", 10)], run=run, saver=KillingSaver(whole))
    for number in range(1, whole.count + 1, 6 if p == 0.9 else 3):  # at 0.9 there is no real call
        saver = KillingSaver(Fate(number, after=number % 2 == 1))
        one = Guarded(p, [pay("a", 10)], run=run, saver=saver)
        saver.fate.kill_at = 0
        given: Any = None if [*saver.list(THREAD)] else task()
        values = [each.checkpoint["channel_values"].get("gecko_batch") for each in saver.list(THREAD)]
        judged = any(each.get("risks") for each in values if isinstance(each, dict))
        kept += judged
        before = len(one.risk.asked)
        for _ in range(4):
            one.out = run(one.agent, given, THREAD)
            if not one.out or "__interrupt__" not in one.out:
                break
            allowed = one.question["review_configs"][0]["allowed_decisions"]
            word = "approve" if "approve" in allowed else "happened" if one.paid else "make_now"
            given = Command(resume={"id": one.question["id"], "decisions": [{"type": word}]})
        assert len(one.paid) <= (0 if p == 0.9 else 1), number
        assert not judged or len(one.risk.asked) == before, number
    assert kept
