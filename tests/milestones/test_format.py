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
SUNNY = "It is sunny in Rome"
ANSWER = {"id": "answer", "message": {"sender": "agent", "content": SUNNY}}


@pytest.mark.parametrize(("written", "message"), [
    ([{"id": "a", "after": "b", "call": {"name": "x"}}], "milestones[0]: after: unknown milestone 'b'"),
    ([{"id": "a", "call": {"name": "x"}}, {"id": "a", "call": {"name": "x"}}], "'a' is a duplicate"),
    ([{"state": {"at": "setings", "snapshot": []}}], "the state has no 'setings' (did you mean settings?)"),
    ([{"state": {"at": "settings", "update": [{"wify": 1}]}}],
     "unknown column 'wify' of settings (did you mean wifi?)"),
    ([{"id": "a", "after": "c", "call": {"name": "x"}}, {"id": "b", "call": {"name": "x"}},
      {"id": "c", "call": {"name": "x"}}], "milestones: after: a cycle: a after c after b after a"),
])  # fmt: skip
def test_mistakes_are_named_with_their_place(written: list[dict[str, Any]], message: str) -> None:
    problems = list(find_problems(entries(*written), STATE, part="milestones"))
    assert any(message in problem for problem in problems), problems


def test_milestones_follow_each_other_and_what_none_changes_is_guarded_from_the_start_on():
    on, said = snapshot(WIFI_ON), snapshot(WIFI_ON, "agent", SUNNY)
    assert score([WIFI, ANSWER], snapshot(STATE, "user"), on, said)["similarity"] == 1.0
    early = snapshot(STATE, "agent", SUNNY)
    assert score([WIFI, ANSWER], snapshot(STATE, "user"), early, on)["similarity"] == 0.5
    assert score([WIFI, {**ANSWER, "after": []}], snapshot(STATE, "user"), early, on)["similarity"] == 1.0
    gone = {**WIFI_ON, "contacts": STATE["contacts"][:1]}
    assert score([WIFI], snapshot(STATE, "user"), snapshot(gone))["similarity"] == 0.0
    assert score([WIFI | {"unchanged": []}], snapshot(STATE, "user"), snapshot(gone))["similarity"] == 1.0
    later = {**WIFI_ON, "now": "2026-11-22T10:05"}
    assert score([WIFI], snapshot(STATE, "user"), snapshot(later))["similarity"] == 1.0


def test_a_table_that_another_milestone_may_change_in_between_is_not_guarded() -> None:
    added = {"id": "added", "after": [], "state": {"at": "contacts", "addition": [{"name": "Cy"}]}}
    told = {**ANSWER, "after": ["wifi", "added"]}
    both = {**WIFI_ON, "contacts": [*STATE["contacts"], {"id": "c3", "name": "Cy"}]}
    trajectory = snapshot(STATE, "user"), snapshot(WIFI_ON), snapshot(both), snapshot(both, "agent", SUNNY)
    assert score([WIFI, added, told], *trajectory)["similarity"] == 1.0
    undone = {**both, "settings": STATE["settings"]}
    end = snapshot(undone, "agent", SUNNY)
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
    said = snapshot(STATE, "agent", SUNNY)
    tried = snapshot(STATE, "agent", attempts=[{"name": "difference", "args": {}}])
    assert score([ANSWER], snapshot(STATE, "user"), said, minefields=mine)["similarity"] == 1.0
    stepped = score([ANSWER], snapshot(STATE, "user"), tried, said, minefields=mine)
    assert (stepped["similarity"], stepped["milestone_similarity"]) == (0.0, 1.0)


def test_a_call_permits_its_own_changes_and_no_others() -> None:
    """What a call of the goal changes may change at it; what changes after it, or without its tool, may not."""
    add = {"name": "add", "args": {"name": "Cy"}, "result": None}
    more = {**STATE, "contacts": [*STATE["contacts"], {"id": "c3", "name": "Cy"}]}
    start, added = snapshot(STATE, "user"), made(add, STATE, more)
    told = snapshot(more, "agent", SUNNY)
    goal = [{"id": "added", "call": {"name": "add", "args": {"name": "Cy"}}}, ANSWER]
    assert score(goal, start, added, told)["similarity"] == 1.0
    listed = [{**goal[0], "unchanged": ["contacts"]}, {**ANSWER, "unchanged": []}]
    assert score(listed, start, added, told)["similarity"] == 1.0
    fewer = {**more, "contacts": more["contacts"][1:]}
    before = {**STATE, "contacts": STATE["contacts"][1:]}
    assert score(listed, start, snapshot(before), made(add, before, fewer), told)["similarity"] == 0.5
    late = score(goal, start, added, snapshot(fewer, "agent", SUNNY))
    (missed,) = late["milestones"][1]["missed"]
    assert (missed["part"], missed["place"]) == ("guard", "/contacts")
    assert missed["wanted"] == [{"id": "c1", "name": "Ana"}]
    other = score(goal, start, made({**add, "name": "set"}, STATE, WIFI_ON), snapshot(WIFI_ON, calls=[add]))
    assert other["milestones"][0]["missed"] == [
        {"part": "guard", "place": "/settings/wifi", "wanted": False, "found": True, "similarity": 0.0}
    ]


def made(call: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> Snapshot:
    changed = [name for name in after if before[name] != after[name]]
    tables = {name: (find_table(before, name), find_table(after, name)) for name in changed}
    return {**snapshot(after, calls=[call]), "(writes)": [{**call, "tables": tables}]}


@pytest.mark.parametrize(("milestone", "message", "part", "place", "wanted", "found", "nearest"), [
    ({"call": {"name": "add", "args": {"name": "Cy", "phone": "1"}}},
     {"calls": [{"name": "add", "args": {"name": "Di", "phone": "1"}}]}, "argument", "add.name", "Cy", "Di", 1),
    ({"call": {"name": "send"}}, {"calls": [{"name": "add", "args": {}}]}, "call", "send",
     [{"name": "send", "args": {}}], [], 2),
    ({"message": {"sender": "agent", "content": "Yes", "measure": "contains"}}, {}, "content", "", "Yes", "No", 2),
    ({"message": {"sender": "agent", "mentions": ["Rome"]}}, {}, "mentions", "", ["Rome"], "No", 2),
    ({"state": {"at": "settings", "update": [{"wifi": True}]}}, {}, "rows", "/settings", [{"wifi": True}], [], 2),
    ({"state": {"at": "settings", "snapshot": [{"wifi": True, "cellular": True}]}}, {}, "column", "/settings/wifi",
     True, False, 2),
])  # fmt: skip
def test_a_missed_milestone_says_what_was_wanted_beside_the_nearest_found(
    milestone: dict[str, Any], message: dict[str, Any], part: str, place: str, wanted: Any, found: Any, nearest: int
) -> None:
    trajectory = snapshot(STATE, "user"), snapshot(STATE, **message), snapshot(STATE, "agent", "No")
    (one,) = score([milestone], *trajectory)["milestones"]
    (missed,) = one["missed"]
    assert (missed["part"], missed["place"], missed["wanted"], missed["found"]) == (part, place, wanted, found)
    assert (one["nearest"], one["similarity"]) == (nearest, 0.0)


def test_what_came_in_another_order_is_named() -> None:
    early = snapshot(STATE, "agent", SUNNY)
    found = score([WIFI, ANSWER], snapshot(STATE, "user"), early, snapshot(WIFI_ON))["milestones"]
    missed = next(each for each in found if each["similarity"] == 0)
    other = next(each for each in found if each["similarity"] == 1)
    assert [(each["part"], each["place"]) for each in missed["missed"]] == [("order", other["id"])]


def test_any_similarity_steps_on_a_minefield_and_its_content_is_compared_exactly() -> None:
    said = snapshot(STATE, "agent", SUNNY)
    forbidden = {"message": {"sender": "agent", "content": "It rains in Rome"}}
    assert score([ANSWER], snapshot(STATE, "user"), said, minefields=[forbidden])["similarity"] == 1.0
    alike = {"message": {**forbidden["message"], "measure": "rouge_l"}}
    stepped = score([ANSWER], snapshot(STATE, "user"), said, minefields=[alike])
    assert (stepped["similarity"], 0 < stepped["minefield_similarity"] < 1) == (0.0, True)
    faint = {"message": {"content": "Rome", "measure": "rouge_l"}}
    assert score([ANSWER], snapshot(STATE, "user"), said, minefields=[faint])["similarity"] == 0.0


def test_what_has_no_id_is_named_by_what_it_asks_for_or_forbids() -> None:
    mines = [{"call": {"name": "add", "args": {"name": "Cy"}}}, {"call": {"name": "add"}}, {"call": {"name": "add"}}]
    goal = build_goal([], entries(*mines), STATE)
    assert [each.id for each in goal.minefields] == ["add(name: Cy)", "add()", "add() (2)"]


def test_a_milestone_may_have_a_threshold_of_its_own() -> None:
    trajectory = snapshot(STATE, "user"), snapshot(STATE, "agent", "It is very sunny in Rome")
    missed, met = (
        score([{**ANSWER, "threshold": threshold}], *trajectory)["milestones"][0] for threshold in (1.0, 0.5)
    )
    assert (missed["missed"][0]["part"], "missed" in met) == ("content", False)
    assert missed["similarity"] == met["similarity"] > 0.9
