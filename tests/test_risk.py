"""A decision model through rehearsal, agent and conversation: each question once, nothing made above the band."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from evals.reality.killing import Fate, Killed, KillingSaver
from gecko_graph import (
    GeckoContext,
    GeckoError,
    ModelError,
    Models,
    Tool,
    Toolkit,
    create_gecko,
)
from gecko_graph.scenario import Scenario
from gecko_graph.scenario.cases.run import run_case
from gecko_graph.testing import recorded, scripted
from gecko_graph.values.notes import notes_of, tell
from tests.agents import APPROVE, make_agent, thread
from tests.deciding import Decider
from tests.milestones.test_claims_in_goals import OFF, VAGUE, write_case

REJECT = {"type": "reject", "message": "no"}
ROWS = [
    (0.19, (0.2, 0.8), "known"), (0.2, (0.2, 0.8), "unknown"), (0.8, (0.2, 0.8), "way back"),
    (0.4, (0.4, 0.4), "known"), (0.81, (0.2, 0.8), "unknown"), (0.95, (0.05, 0.5), "way back"),
]  # fmt: skip
"""Probability, band, evidence: below the band, within it with its ends, above it."""
POLICY = {"rules": "writes", "risk": True}


def word_of(p, band):
    return "ask" if band[0] <= p <= band[1] else "refuse" if p > band[1] else "allow"


class Desk:
    """A service that files letters, with or without a simulation, and with or without a way back."""

    def __init__(self, evidence: str = "known") -> None:
        self.evidence, self.calls = evidence, []

    def file(self, tray: str) -> dict:
        """File a letter."""
        self.calls.append(f"file {tray}")
        return {"filed": tray}

    def unfile(self, tray: str) -> dict:
        """Take a letter out of its tray."""
        self.calls.append(f"unfile {tray}")
        return {"left": tray}

    def toolkit(self) -> Toolkit:
        def file(state: dict, tray: str) -> dict:
            state.setdefault("trays", {})[tray] = "letter"
            return {"filed": tray}

        def unfile(state: dict, tray: str) -> dict:
            del state["trays"][tray]
            return {"left": tray}

        simulate = None if self.evidence == "unknown" else file
        tools = [Tool(self.file, effect="write", simulate=simulate)]
        tools += [Tool(self.unfile, effect="write", simulate=unfile)] if self.evidence == "way back" else []
        return Toolkit.from_tools(tools)


PLAN = [{"call": "file", "args": {"tray": "bills"}}, {"say": "Filed."}]
TASK = {
    "messages": [("user", "File the letter under bills")],
    "task_state": {"trays": {}},
    "checklist": [{"description": "it is filed", "check": "len(calls) == 1"}],
}


class Process:
    """An agent over a desk and a saver; another one over the same is another process."""

    def __init__(self, desk: Desk, saver: Any, say: Any, band: Any = (0.2, 0.8), **more: Any) -> None:
        self.desk, self.saver, self.band, self.risk = desk, saver, band, Decider(say=say)
        models = Models(planner=recorded(planner=[PLAN] * 4), risk=self.risk)
        context = GeckoContext(band=band, max_retries=0)
        given = {"model": models, "interrupt_on": POLICY, "checkpointer": saver, "context": context}
        self.agent = make_agent(desk.toolkit(), **given | more)

    def run(self, given: Any = TASK, *, is_async: bool = False) -> Any:
        out = asyncio.run(self.agent.ainvoke(given, thread())) if is_async else self.agent.invoke(given, thread())
        self.asked = [each.value for each in out.get("__interrupt__", ())]
        return out

    def answer(self, *decisions: Any) -> Any:
        asked = [each.value["id"] for each in self.agent.get_state(thread()).interrupts]
        return self.run(Command(resume={"id": asked[0], "decisions": [*decisions]}))

    def again(self) -> Process:
        """Return another process over the same, whose risk model must not be asked."""
        return Process(self.desk, self.saver, lambda *_: pytest.fail("it was asked again"), self.band)


@pytest.mark.parametrize(("p", "band", "evidence"), ROWS)
def test_agent(p, band, evidence):
    desk, word = Desk(evidence), word_of(p, band)
    one = Process(desk, InMemorySaver(), p, band)
    out = one.run()
    assert len(one.risk.asked) == 1
    assert bool(one.asked) == (word == "ask")
    if word == "ask":
        assert desk.calls == []
        assert f"its risk is unsure: p {p:.2f}" in one.asked[0]["action_requests"][0]["description"]
        other = one.again()  # killed between question and answer
        out = other.answer(APPROVE)
        assert other.risk.asked == []
    assert desk.calls == ([] if word == "refuse" else ["file bills"])
    assert out["execution"]["status"] == ("nothing" if word == "refuse" else "done")
    assert out["rehearsal"]["verdict"]["status"] == "accepted"
    shown = one.risk.asked[0][0]
    assert "Its predicted effect" in shown
    assert ("trays" in shown.partition("predicted effect")[2]) == (evidence != "unknown")
    assert ("Undone by unfile" in shown) == (evidence == "way back")


@pytest.mark.parametrize(("row", "second"), [(1, 0.01), (2, 0.99), (3, 0.4)])
def test_agent_edited(row, second):
    p, band, evidence = ROWS[row]
    desk = Desk(evidence)
    one = Process(desk, InMemorySaver(), [p, second], band)
    one.run()
    one.answer({"type": "edit", "edited_action": {"name": "file", "args": {"tray": "letters"}}})
    assert len(one.risk.asked) == 2, "an edit is judged anew"
    word = word_of(second, band)
    if word == "ask":
        assert desk.calls == []
        one.again().answer(APPROVE)
    assert desk.calls == ([] if word == "refuse" else ["file letters"])
    if word == "refuse":  # planned again, the first plan is asked about again, by the verdict that it had
        assert one.asked[0]["action_requests"][0]["args"] == {"tray": "bills"}
        assert len(one.risk.asked) == 2


@pytest.mark.parametrize(("decision", "is_async"), [(APPROVE, True), (REJECT, False)])
def test_agent_answered_twice(decision, is_async):
    desk = Desk()
    one = Process(desk, InMemorySaver(), [0.5])
    one.run(is_async=is_async)
    (question,) = one.asked
    given = Command(resume={"id": question["id"], "decisions": [decision]})
    one.run(given, is_async=is_async)
    one.again().run(given)
    assert desk.calls == (["file bills"] if decision is APPROVE else [])


def test_agent_s_verdict_stands_in_a_superstep_of_its_own():
    one = Process(Desk(), InMemorySaver(), [0.5])
    nodes = [name for part in one.agent.stream(TASK, thread(), stream_mode="updates") for name in part]
    assert nodes == ["open_turn", "rehearse", "risk", "__interrupt__"]
    state = one.agent.get_state(thread()).values
    (planned,) = state["preview"]["calls"]
    assert planned["risk"]["p"] == 0.5
    assert "unjudged" not in state["preview"]
    assert state["bookkeeping"]["ledger"]["usage"]["risk"]["calls"] == 1


def test_agent_whose_model_fails_asks_the_person():
    one = Process(Desk(), InMemorySaver(), lambda *_: RuntimeError("away"))
    one.run()
    assert "its risk was not judged" in one.asked[0]["action_requests"][0]["description"]
    assert one.answer(APPROVE)["execution"]["status"] == "done"


def test_agent_without_a_risk_model_or_without_a_saver_is_refused():
    with pytest.raises(ModelError, match="role 'risk'"):
        make_agent(Desk().toolkit(), PLAN, interrupt_on=POLICY)
    with pytest.raises(GeckoError, match="checkpointer"):
        Process(Desk(), None, 0.5).agent.invoke(TASK)


@pytest.mark.parametrize("policy", ["writes", {"rules": [{"tool": "file", "then": "refuse"}], "risk": True}])
def test_agent_where_no_risk_is_to_be_judged_asks_no_model(policy):
    one = Process(Desk(), InMemorySaver(), lambda *_: pytest.fail("asked"), interrupt_on=policy)
    assert one.run().get("execution", {}).get("status") == (None if policy == "writes" else "nothing")
    assert bool(one.asked) == (policy == "writes")


# rehearsals: the same rows for the judge and the validator


@pytest.mark.parametrize(("p", "band"), [row[:2] for row in ROWS[:5]])
def test_rehearsal(p, band):
    word = word_of(p, band)
    judge = Decider(say=lambda shown, question: p if "the item" in question else 0.0)
    context = GeckoContext(band=band, max_retries=0)
    models = Models(planner=recorded(planner=[PLAN]), judge=judge)
    gecko = create_gecko(Desk().toolkit(), model=models, context=context, checkpointer=InMemorySaver())
    made = gecko.invoke(TASK | {"checklist": ["it is filed"]}, thread())["rehearsal"]
    assert made["verdict"]["status"] == {"ask": "needs_user", "refuse": "accepted", "allow": "failed"}[word]
    assert made["verdict"]["items"][0]["p"] == p
    assert len(made["attempts"]) == 1
    assert len([one for one in judge.asked if "the item" in one[1]]) == 1
    assert gecko.invoke(None, thread())["rehearsal"] == made


@pytest.mark.parametrize(("p", "band"), [row[:2] for row in ROWS[:5]])
def test_validator(p, band):
    word, validator = word_of(p, band), Decider(say=p)
    plan = [{"call": "file", "args": {"tray": "taxes"}}, {"say": "Filed."}]
    models = Models(planner=recorded(planner=[plan]), validator=validator)
    gecko = create_gecko(Desk().toolkit(), model=models, context=GeckoContext(band=band, max_retries=0))
    made = gecko.invoke(TASK | {"checklist": [{"description": "it is filed", "check": "len(calls) <= 1"}]})["rehearsal"]
    (step,) = made["attempts"][0]["steps"]
    assert len(validator.asked) == 1
    assert ("complaints" in step) == (word == "allow"), "a low probability that it fits is a complaint"
    told = [f"file tray: it is not sure that its value fits, p {p:.2f}"] if word == "ask" else []
    assert [tell(each) for each in notes_of(made["verdict"], "unclear")] == told


def test_an_argument_that_may_not_fit_is_asked_about_where_a_person_is():
    plan = [{"call": "file", "args": {"tray": "taxes"}}, {"say": "Filed."}]
    models = Models(planner=recorded(planner=[plan]), validator=Decider(say=0.5))
    agent = make_agent(Desk().toolkit(), model=models, interrupt_on={"rules": {"file": False}, "max_age": 60.0})
    (one,) = agent.invoke(TASK, thread())["__interrupt__"]
    assert "it is not sure that its value fits, p 0.50" in one.value["action_requests"][0]["description"]


# conversations


def test_an_unsure_claim_is_kept_beside_the_case_and_not_asked_again(tmp_path):
    file = write_case(tmp_path, OFF)
    judge = Models(claim_judge=Decider(say=[0.5]))
    assert run_case(Scenario.load(file), scripted({"say": VAGUE}), model=judge).status == "unknown"
    assert '"p": 0.5' in (tmp_path / "wifi.claims.jsonl").read_text(encoding="utf-8")
    assert run_case(Scenario.load(file), scripted({"say": VAGUE}), model=judge).status == "unknown"


# killed anywhere


def killed_at_each_write(open_, given, read):
    """Kill the process at each of its writes and go on in another one, which asks nothing that a checkpoint holds."""
    fate, kept = Fate(), 0
    open_(whole := Decider(say=0.5), KillingSaver(fate)).invoke(given, thread())
    for number in range(fate.count, 0, -3):
        saver = KillingSaver(Fate(number, after=True))
        with contextlib.suppress(Killed):
            open_(Decider(say=0.5), saver).invoke(given, thread())
        saver.fate.kill_at = 0
        other = open_(again := Decider(say=0.5), saver)
        is_judged = read(other.get_state(thread()).values) is not None
        assert read(other.invoke(None if [*saver.list(thread())] else given, thread())) == 0.5
        assert len(again.asked) <= (0 if is_judged else len(whole.asked)), number
        kept += is_judged
    assert 0 < kept < fate.count


def test_rehearsal_killed_at_each_write():
    def open_(judge, saver):
        models = Models(planner=recorded(planner=[PLAN] * 2), judge=judge)
        context = GeckoContext(max_retries=0)
        return create_gecko(Desk().toolkit(), model=models, context=context, checkpointer=saver)

    def read(values):
        judged = values.get("attempts") or (values.get("rehearsal") or {}).get("attempts") or [{}]
        return judged[0].get("verdict", {}).get("items", [{}])[0].get("p")

    killed_at_each_write(open_, TASK | {"checklist": ["it is filed"]}, read)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_agent_killed_at_each_write(p):
    whole, kept = Fate(), 0
    Process(Desk(), KillingSaver(whole), p).run()
    for number in range(1, whole.count + 1, 9 if p == 0.9 else 3):  # at 0.9 there is no real call
        desk, saver = Desk(), KillingSaver(Fate(number, after=number % 2 == 1))
        one = Process(desk, saver, p)
        with contextlib.suppress(Killed, GeckoError):
            one.run()
        saver.fate.kill_at = 0
        seen = [*saver.list(thread())]
        judged = one.agent.get_state(thread()).values.get("bookkeeping", {}).get("risks")
        kept += bool(judged)
        other = Process(desk, saver, (lambda *_: pytest.fail("asked again")) if judged else p)
        other.run(None if seen else TASK)
        for _ in range(3):
            if not other.asked:
                break
            allowed = other.asked[0]["review_configs"][0]["allowed_decisions"]
            happened = {"type": "happened"} if desk.calls else {"type": "make_now"}
            other.answer(APPROVE if "approve" in allowed else happened)
        assert desk.calls == ([] if p == 0.9 else ["file bills"]), number
    assert kept
