"""Milestones as a scenario's file has them: mistakes in them, and the guardrails that follow from their order."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("scipy")

from gecko_graph.conversation.milestones import Snapshot
from gecko_graph.conversation.milestones.format import MilestoneEntry, build_goal, find_problems
from gecko_graph.conversation.milestones.tables import find_table

STATE = {
    "settings": {"wifi": False, "cellular": True},
    "contacts": [{"id": "c1", "name": "Ana"}, {"id": "c2", "name": "Bo"}],
    "now": "2026-11-22T10:00",
}


def entries(*written: dict[str, Any]) -> list[MilestoneEntry]:
    return [MilestoneEntry.model_validate(each) for each in written]


def snapshot(state: dict[str, Any], sender: str = "tools", content: str = "", **more: Any) -> Snapshot:
    message = {"sender": sender, "recipient": "agent", "content": content, "calls": [], "attempts": [], **more}
    return {"message": [message], **{name: find_table(state, name) for name in state}}


def score(
    milestones: list[dict[str, Any]], *trajectory: Snapshot, minefields: list[dict[str, Any]] | None = None
) -> Any:
    assert not list(find_problems(entries(*milestones), STATE, part="milestones"))
    return build_goal(entries(*milestones), entries(*(minefields or [])), STATE).score(trajectory)


WIFI_ON = {**STATE, "settings": {"wifi": True, "cellular": True}}
WIFI = {"id": "wifi", "state": {"at": "settings", "update": [{"wifi": True}]}}
ANSWER = {"id": "answer", "message": {"sender": "agent", "content": "It is sunny in Rome"}}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ([{"id": "a", "after": "b", "call": {"name": "x"}}], "milestones[0]: after: unknown milestone 'b'"),
        ([{"id": "a", "call": {"name": "x"}}, {"id": "a", "call": {"name": "x"}}], "'a' stands twice"),
        ([{"state": {"at": "setings", "snapshot": []}}], "the state has no 'setings' (did you mean settings?)"),
        (
            [{"state": {"at": "settings", "update": [{"wify": 1}]}}],
            "unknown column 'wify' of settings (did you mean wifi?)",
        ),
        (
            [
                {"id": "a", "after": "c", "call": {"name": "x"}},
                {"id": "b", "call": {"name": "x"}},
                {"id": "c", "call": {"name": "x"}},
            ],
            "milestones: after: a cycle: a after c after b after a",
        ),
    ],
)
def test_mistakes_are_named_with_their_place(written: list[dict[str, Any]], message: str) -> None:
    problems = list(find_problems(entries(*written), STATE, part="milestones"))
    assert any(message in problem for problem in problems), problems


def test_milestones_without_an_order_follow_each_other() -> None:
    on, said = snapshot(WIFI_ON), snapshot(WIFI_ON, "agent", "It is sunny in Rome")
    assert score([WIFI, ANSWER], snapshot(STATE, "user"), on, said)["similarity"] == 1.0
    early = snapshot(STATE, "agent", "It is sunny in Rome")
    assert score([WIFI, ANSWER], snapshot(STATE, "user"), early, on)["similarity"] == 0.5
    assert score([WIFI, {**ANSWER, "after": []}], snapshot(STATE, "user"), early, on)["similarity"] == 1.0


def test_what_no_milestone_changes_is_guarded_from_the_start_on() -> None:
    gone = {**WIFI_ON, "contacts": STATE["contacts"][:1]}
    assert score([WIFI], snapshot(STATE, "user"), snapshot(gone))["similarity"] == 0.0
    assert score([WIFI | {"unchanged": []}], snapshot(STATE, "user"), snapshot(gone))["similarity"] == 1.0
    later = {**WIFI_ON, "now": "2026-11-22T10:05"}
    assert score([WIFI], snapshot(STATE, "user"), snapshot(later))["similarity"] == 1.0


def test_a_table_that_another_milestone_may_change_in_between_is_not_guarded() -> None:
    added = {"id": "added", "after": [], "state": {"at": "contacts", "addition": [{"name": "Cy"}]}}
    told = {**ANSWER, "after": ["wifi", "added"]}
    both = {**WIFI_ON, "contacts": [*STATE["contacts"], {"id": "c3", "name": "Cy"}]}
    trajectory = (
        snapshot(STATE, "user"),
        snapshot(WIFI_ON),
        snapshot(both),
        snapshot(both, "agent", "It is sunny in Rome"),
    )
    assert score([WIFI, added, told], *trajectory)["similarity"] == 1.0
    undone = {**both, "settings": STATE["settings"]}
    end = snapshot(undone, "agent", "It is sunny in Rome")
    assert score([WIFI, added, told], *trajectory[:3], end)["similarity"] == pytest.approx(2 / 3)


def test_a_value_of_a_result_is_looked_for_in_the_answer() -> None:
    found = {"id": "found", "call": {"name": "distance", "args": {"to": "Rome"}}}
    told = {"id": "told", "message": {"content": "{km} km", "measure": "contains"}}
    told["from"] = {"milestone": "found", "call": "distance", "path": ["km"], "name": "km"}
    call = {"name": "distance", "args": {"to": "Rome", "unit": "km"}, "result": {"km": 12.345}}
    start, made = snapshot(STATE, "user"), snapshot(STATE, calls=[call])
    assert score([found, told], start, made, snapshot(STATE, "agent", "It is 12.3 km"))["similarity"] == 1.0
    assert score([found, told], start, made, snapshot(STATE, "agent", "It is 13 km"))["similarity"] == 0.5
    assert score([found, told], start, made, snapshot(STATE, "agent", "It is {km} km"))["similarity"] == 0.5


def test_a_minefield_counts_when_a_call_is_attempted() -> None:
    mine = [{"call": {"name": "difference"}}]
    said = snapshot(STATE, "agent", "It is sunny in Rome")
    tried = snapshot(STATE, "agent", attempts=[{"name": "difference", "args": {}}])
    assert score([ANSWER], snapshot(STATE, "user"), said, minefields=mine)["similarity"] == 1.0
    stepped = score([ANSWER], snapshot(STATE, "user"), tried, said, minefields=mine)
    assert (stepped["similarity"], stepped["milestone_similarity"]) == (0.0, 1.0)
