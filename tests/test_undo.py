"""A way back: what an approval says of each write, and the turn that undoes the one before."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from random import Random

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from evals.reality.killing import Fate, Killed, KillingSaver
from gecko_graph import (
    GeckoContext,
    GeckoError,
    Tool,
    Toolkit,
    undo_message,
)
from gecko_graph.agent.undo import find_way_back, invert
from gecko_graph.errors import NotMade
from gecko_graph.undo import UndoFinder
from tests.agents import APPROVE, embed, make_agent, thread

THREAD = thread()
START = {"notes": {"n1": "milk"}, "sent": []}


class Desk:
    """A real service in this process, and the contracts of its simulation."""

    def __init__(self) -> None:
        self.notes, self.sent, self.made, self.odd = dict(START["notes"]), [], 0, {}
        self.log: list[tuple[str, dict]] = []
        self.fault: Exception | None = None

    def _say(self, name: str, result: dict) -> dict:
        self.log.append((name, result))
        return result

    def write(self, text: str) -> dict:
        """Write a note."""
        self.made += 1
        self.notes[f"real-{self.made}"] = text
        return self._say("write", {"id": f"real-{self.made}"})

    def delete(self, id: str) -> dict:
        """Delete a note."""
        if self.fault:
            raise self.fault
        del self.notes[id]
        return self._say("delete", {"deleted": id})

    def change(self, id: str, text: str) -> dict:
        """Change a note."""
        self.notes[id] = text
        return self._say("change", {"id": id, **self.odd})

    def send(self, text: str) -> dict:
        """Send a message."""
        self.sent.append(text)
        return self._say("send", {"sent": text})

    def toolkit(self) -> Toolkit:
        note, known = ["notes", "{{ args.id }}"], {"check": "args.id in state.notes", "error": "no such note"}
        text = "{{ args.text }}"
        add = {"op": "add", "path": ["notes", "{{ id }}"], "value": text}
        contracts = {
            self.write: {"let": {"id": "{{ new_id('n-') }}"}, "effects": [add], "returns": {"id": "{{ id }}"}},
            self.delete: {"effects": [{"op": "remove", "path": note}], "returns": {"deleted": "{{ args.id }}"}},
            self.change: {
                "effects": [{"op": "replace", "path": note, "value": text}],
                "returns": {"id": "{{ args.id }}"},
            },
            self.send: {"effects": [{"op": "add", "path": ["sent", "-"], "value": text}], "returns": {"sent": text}},
        }
        for each in (self.delete, self.change):
            contracts[each]["requires"] = [known]
        return Toolkit.from_tools([Tool(each, effect="write", contract=one) for each, one in contracts.items()])


@pytest.fixture
def desk() -> Desk:
    return Desk()


def agent_of(desk: Desk, *plans: list[dict], **more):
    return make_agent(
        desk.toolkit(), turns=plans, **{"context": GeckoContext(undo_s=5), "interrupt_on": "writes"} | more
    )


def run(agent, *calls: dict) -> tuple[dict, list[str]]:
    """Have a plan approved; return what came of it, and what the approval said of each call."""
    return approve(agent, agent.invoke(DO_IT, THREAD))


def approve(agent, out: dict) -> tuple[dict, list[str]]:
    (asked,) = out["__interrupt__"]
    texts = [each["description"] for each in asked.value["action_requests"]]
    decided = {"id": asked.value["id"], "decisions": [APPROVE] * len(texts)}
    return agent.invoke(Command(resume=decided), THREAD), texts


PLAN = [
    {"call": "write", "args": {"text": "tea"}},
    {"call": "change", "args": {"id": "n1", "text": "oat milk"}},
    {"call": "delete", "args": {"id": "n1"}},
    {"say": "Done."},
]


def test_the_approval_says_what_takes_each_write_back(desk):
    agent = agent_of(desk, [*PLAN[:3], {"call": "send", "args": {"text": "hello"}}, PLAN[-1]])
    _, texts = run(agent)
    assert "Undone by delete(id=<the real id of its result>)." in texts[0]
    assert 'Undone by change(id="n1", text="milk").' in texts[1]
    assert 'Undone by write(text="oat milk").' in texts[2]
    assert "No way back is known." in texts[3]


def test_a_turn_undoes_the_one_before_the_newest_first(desk):
    agent = agent_of(desk, [*PLAN[:2], PLAN[-1]])
    out, _ = run(agent)
    assert [each["status"] for each in out["execution"]["undo"]] == ["found", "found"]
    assert [each["args"] for way in out["execution"]["undo"] for each in way["calls"]][-1] == {"id": "real-1"}
    assert not any(each["bindings"] for way in out["execution"]["undo"] for each in way["calls"]), "all is known by now"
    assert desk.notes == {"n1": "oat milk", "real-1": "tea"}
    out, texts = approve(agent, agent.invoke({"messages": [undo_message()]}, THREAD))
    assert len(texts) == 2
    assert desk.notes == START["notes"] == out["task_state"]["notes"]
    assert [each["call"]["name"] for each in out["execution"]["calls"]] == ["change", "delete"]
    assert out["execution"]["status"] == "done"
    told = 'change({"id": "n1", "text": "oat milk"}): Undone by change(id="n1", text="milk").'
    assert out["messages"][-1].text.startswith(told)
    assert not out["execution"].get("undo"), "an undo is no turn to undo"
    for _ in range(2):
        out = agent.invoke({"messages": [undo_message("And again.")]}, THREAD)
        assert "__interrupt__" not in out
        assert "the last turn that changed something was an undo" in out["messages"][-1].text
    assert desk.notes == START["notes"]


def undo(agent, id_: str | None = None, *decisions: dict) -> dict:
    """Click on undo, and answer what is asked by these decisions."""
    out = agent.invoke({"messages": [HumanMessage(**undo_message().model_dump() | {"id": id_})]}, THREAD)
    for decision in decisions:
        asked = out["__interrupt__"][0].value
        decided = [decision] * len(asked["action_requests"])
        out = agent.invoke(Command(resume={"id": asked["id"], "decisions": decided}), THREAD)
    assert "__interrupt__" not in out
    return out


CHECKS = [{"description": "anything", "check": "True"}]
DO_IT = {"messages": [("user", "do it")], "task_state": START, "checklist": CHECKS}


@pytest.mark.parametrize("asks", ["none", "writes"])
def test_each_turn_is_undone_once_however_often_it_is_asked_for(desk, asks):
    plans = [[PLAN[0], PLAN[-1]], *[[PLAN[-1]]] * 3, [PLAN[1], PLAN[-1]]]
    agent = agent_of(desk, *plans, interrupt_on=asks)
    approved = [APPROVE] if asks == "writes" else []

    def turn(text: str, **more) -> dict:
        out = agent.invoke({"messages": [("user", text)], "checklist": CHECKS, **more}, THREAD)
        return approve(agent, out)[0] if "__interrupt__" in out else out

    turn("note tea", task_state=START)
    turn("thanks")  # a turn without writes is none to undo
    undo(agent, "u1", *approved)
    assert [name for name, _ in desk.log] == ["write", "delete"]
    undo(agent, "u1")  # delivered twice
    undo(agent, "u2")
    turn("change it")
    assert desk.notes == {"n1": "oat milk"}
    undo(agent, "u3", *approved)
    for id_ in ("u4", "u5"):
        assert "nothing to undo" in undo(agent, id_)["messages"][-1].text
    assert [name for name, _ in desk.log] == ["write", "delete", "change", "change"]
    assert desk.notes == START["notes"]


def test_a_rejected_undo_can_be_asked_for_again(desk):
    agent = agent_of(desk, [*PLAN[:2], PLAN[-1]])
    run(agent)
    assert undo(agent, "u1", {"type": "reject", "message": "not yet"})["execution"]["status"] == "nothing"
    assert desk.notes == {"n1": "oat milk", "real-1": "tea"}
    undo(agent, "u2", APPROVE)
    assert desk.notes == START["notes"]
    undo(agent, "u3")
    assert len(desk.log) == 4


@pytest.mark.parametrize("fault", [NotMade("no connection"), TimeoutError("no answer")])
def test_of_an_undo_that_failed_half_way_the_rest_can_be_undone(desk, fault):
    agent = agent_of(desk, [*PLAN[:2], PLAN[-1]], interrupt_on="none")
    agent.invoke(DO_IT, THREAD)
    desk.fault, is_known = fault, isinstance(fault, NotMade)
    out = undo(agent, "u1", *([] if is_known else [{"type": "skip"}]))
    assert desk.notes == {"n1": "milk", "real-1": "tea"}
    assert ("Not done: delete" if is_known else "delete") in out["messages"][-1].text
    desk.fault = None
    for id_ in ("u2", "u3"):
        undo(agent, id_)
    # where it is not known whether it took effect, it is not made again
    assert [name for name, _ in desk.log] == ["write", "change", "change", *(["delete"] * is_known)]
    assert (desk.notes == START["notes"]) is is_known


def test_what_cannot_be_undone_is_told_and_keeps_nothing_else(desk):
    agent = agent_of(desk, [PLAN[0], {"call": "send", "args": {"text": "hello"}}, PLAN[-1]])
    run(agent)
    out, texts = approve(agent, agent.invoke({"messages": [undo_message()]}, THREAD))
    assert len(texts) == 1
    assert desk.notes == START["notes"]
    assert desk.sent == ["hello"]
    assert 'send({"text": "hello"}): No way back is known.' in out["messages"][-1].text


def test_what_was_changed_since_is_left_as_it_is(desk):
    agent = agent_of(desk, [PLAN[1], PLAN[-1]])
    run(agent)
    edited = {"notes": {"n1": "soy milk"}, "sent": []}
    out = agent.invoke({"messages": [undo_message()], "task_state": edited}, THREAD)
    assert "__interrupt__" not in out
    assert "has changed since" in out["messages"][-1].text
    assert desk.notes == {"n1": "oat milk"}


def test_what_reality_did_otherwise_is_not_searched_for(desk):
    desk.odd = {"moved": True}
    out, _ = run(agent_of(desk, [PLAN[1], PLAN[-1]]))
    assert out["execution"]["undo"][0]["reason"] == "the real result differed from the prediction"


def test_other_messages_ask_for_no_undo(desk):
    agent = agent_of(desk, [PLAN[0], PLAN[-1]], [{"say": "I cannot."}], context=GeckoContext(undo_s=0))
    out, texts = run(agent)
    assert ("Undone" in texts[0], "No way back" in texts[0], "undo" in out["execution"]) == (False,) * 3  # switched off
    out = agent.invoke({"messages": [HumanMessage("Undo what was done.")], "checklist": CHECKS}, THREAD)
    assert "__interrupt__" not in out  # the planner is asked
    assert "tea" in desk.notes.values()


def finish(desk: Desk, saver: KillingSaver, given: dict | None) -> dict:
    """Go on in new processes until the turn is over; doubts are answered from the service's own log."""
    for _ in range(10):
        out = agent_of(desk, interrupt_on="none", checkpointer=saver).invoke(given, THREAD)
        if "__interrupt__" not in out:
            return out
        question = out["__interrupt__"][0].value
        (action,) = question["action_requests"]
        made = [result for name, result in desk.log if name == action["name"]]
        decided = {"type": "happened", "message": json.dumps(made[-1])} if made else {"type": "make_now"}
        given = Command(resume={"id": question["id"], "decisions": [decided]})
    raise AssertionError("it does not end")


def begin(saver: KillingSaver) -> tuple[Desk, dict]:
    """Carry out a plan; return the service, and the input that undoes it."""
    desk = Desk()
    agent_of(desk, [*PLAN[:2], PLAN[-1]], interrupt_on="none", checkpointer=saver).invoke(DO_IT, THREAD)
    desk.log.clear()
    return desk, {"messages": [HumanMessage(**undo_message().model_dump() | {"id": "the-undo"})]}


@cache
def count_writes_of_an_undo() -> int:
    desk, asked = begin(saver := KillingSaver(whole := Fate()))
    first = whole.count
    agent_of(desk, interrupt_on="none", checkpointer=saver).invoke(asked, THREAD)
    return whole.count - first


@pytest.mark.parametrize("is_sent_again", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_an_undo_that_is_killed_at_any_write_makes_each_call_once(seed, is_sent_again):
    """At a write of each eighth of the undo."""
    desk, asked = begin(saver := KillingSaver(fate := Fate()))
    number = 2 + int((seed + Random(seed + 8 * is_sent_again).random()) * (count_writes_of_an_undo() - 1) / 8)
    fate.kill_at, fate.after = fate.count + number, seed // 2 % 2 == is_sent_again
    with suppress(Killed, GeckoError):
        agent_of(desk, interrupt_on="none", checkpointer=saver).invoke(asked, THREAD)
    fate.kill_at = 0
    out = finish(desk, saver, asked if is_sent_again else None)
    assert [name for name, _ in desk.log] == ["change", "delete"]
    assert desk.notes == START["notes"] == out["task_state"]["notes"]
    assert out["execution"]["status"] == "done" or is_sent_again  # what is undone already has no plan


def test_a_state_that_was_edited_under_way_stops_no_turn(desk):
    agent = agent_of(desk, [PLAN[1], PLAN[-1]], [{"say": "Yes."}])
    run(agent)
    agent.update_state(THREAD, {"turn_start_state": {"sent": []}})
    out = agent.invoke({"messages": [undo_message()]}, THREAD)
    assert "unknown" in out["messages"][-1].text
    assert desk.notes == {"n1": "oat milk"}


def test_a_plan_that_is_made_again_takes_no_id_of_a_call_that_was_made(desk):
    write = {"call": {"id": "1", "name": "write", "args": {"text": "tea"}}, "result": {"id": "n2"}, "reason": ""}
    now = {"notes": {"n1": "milk", "n2": "tea"}, "sent": []}
    known = [{**write, "inverse": [*invert(START, now)]}]
    found = find_way_back(UndoFinder(desk.toolkit()), known, now, 5, {"undo_1"})
    assert [(step["call"]["id"], step["call"]["name"]) for step in found.steps] == [("undo_2", "delete")]


def test_a_way_back_that_the_calls_before_forbid_is_not_told_as_one(desk):
    kit = desk.toolkit()
    first = {"check": "len(calls) == 0", "error": "only the first call may delete"}
    contract = kit["delete"].contract.data
    kit = kit.with_contracts({"contracts": {"delete": {**contract, "requires": [*contract["requires"], first]}}})
    now = {"notes": {"n1": "milk", "n2": "tea", "n3": "ink"}, "sent": []}
    middle = {**now, "notes": {"n1": "milk", "n2": "tea"}}
    about = {"result": None, "reason": ""}
    writes = [
        {**about, "call": {"id": "1", "name": "write", "args": {"text": "tea"}}, "inverse": [*invert(START, middle)]},
        {**about, "call": {"id": "2", "name": "write", "args": {"text": "ink"}}, "inverse": [*invert(middle, now)]},
    ]
    found = find_way_back(UndoFinder(kit), writes, now, 5)
    assert [each["status"] for each in found.ways] == ["found", "none"]
    assert len(found.steps) == 1


def test_an_embedded_agent_undoes_nothing_that_it_does_not_know(desk):
    agent = agent_of(desk, [PLAN[0], {"say": "Done."}], interrupt_on="none", checkpointer=None)
    parent = embed(agent, InMemorySaver())
    parent.invoke(DO_IT, THREAD)
    for _ in range(2):
        out = parent.invoke({"messages": [undo_message()]}, THREAD)
        assert "nothing to undo" in out["messages"][-1].text
    assert [name for name, _ in desk.log] == ["write"]
