"""The verdict: what excuses an attempt, what nobody asked for, what is struck, and the laws that all verdicts keep."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.models.roles import Judgement
from gecko_graph.nodes.judge import Evidence, build_verdict
from tests.doubts import texts
from tests.judging import FILED, SAID, code_of, judged, said, statuses

HALF = {"trays": {"letters": ["from mum"], "bills": []}, "runtime_state": {}}
TAKEN = {"trays": {"bills": []}, "runtime_state": {}}


@pytest.mark.parametrize(
    ("after", "items", "word"),
    [
        (HALF, [], "failed"),
        (HALF, [{"id": "tray", "status": "unknown"}], "failed"),
        (HALF, [{"id": "filed", "status": "unknown"}], "needs_user"),
        (TAKEN, [{"id": "filed", "status": "unknown"}], "failed"),
    ],
)
def test_who_has_changed_something_is_only_excused_item_by_item_and_for_what_was_asked(attempt, after, items, word):
    ended = attempt(stop_reason="answered", answer="The tray is made. Which invoice?", task_state=after)
    verdict, _ = judged(ended, {"items": items, "stopping_was_right": True})
    assert verdict["status"] == word


# what nobody asked for, and what the judge strikes


BY_MODEL = [{**item, "by": "model"} for item in SAID]


def test_a_struck_item_is_reported_and_not_counted(attempt):
    verdict, _ = judged(attempt(items=BY_MODEL, answer="x", stop_reason="answered"), said("success", "not_asked_for"))
    assert (verdict["status"], verdict["score"]) == ("accepted", 1.0)
    assert statuses(verdict) == [("success", "model"), ("not_asked_for", "model")]
    half, _ = judged(attempt(items=BY_MODEL, answer="x", stop_reason="answered"), said("failed", "not_asked_for"))
    assert (half["status"], half["score"]) == ("failed", 0.0)


def test_an_item_that_was_given_with_the_task_cannot_be_struck(attempt):
    verdict, driven = judged(attempt(items=SAID, answer="x", stop_reason="answered"), said("success", "not_asked_for"))
    assert (verdict["status"], statuses(verdict)[1]) == ("failed", ("failed", "model"))
    assert verdict["items"][1]["reason"] == "the judge struck it, but it was given with the task"
    assert driven.asks[0].variables["items"].count('"given": true') == 2


def test_the_judge_names_changes_and_its_feedback_is_kept_with_an_accepted_verdict(attempt):
    reply = said("success", "success", unasked_changes=["the diary is gone"], feedback="It also removed the diary.")
    verdict, _ = judged(attempt(items=SAID, task_state=FILED, answer="x", stop_reason="answered"), reply)
    assert verdict["status"] == "accepted"
    assert texts(verdict, "unasked") == ["the diary is gone"]
    assert verdict["feedback"] == "It also removed the diary."
    failed, _ = judged(
        attempt(items=SAID, task_state=FILED, answer="x", stop_reason="answered"),
        said("failed", "success", unasked_changes=["the diary is gone"]),
    )
    assert failed["feedback"].endswith("Not asked for: the diary is gone")


def test_a_change_that_no_check_reads_is_reported_and_not_refused_for_that(attempt, step):
    after = {"trays": {"bills": ["invoice"]}, "runtime_state": {"user": "ann"}, "now": "x"}
    patch = [{"op": "remove", "path": "/trays/letters"}]
    steps = [
        step("put", patch=[{"op": "add", "path": "/trays/bills", "value": ["invoice"]}]),
        step("drop", patch=patch),
    ]
    verdict, driven = judged(attempt(task_state=after, steps=steps, answer="Done.", stop_reason="answered"))
    assert (verdict["status"], driven.asks) == ("accepted", [])
    assert texts(verdict, "unasked") == ['remove /trays/letters ["from mum"]']


# one thing is told once


def test_a_failed_item_is_told_once(attempt):
    reply = said("failed", "success", feedback="temp is elsewhere")
    reply["items"][0]["reason"] = "temp is elsewhere"
    verdict, _ = judged(attempt(items=SAID, answer="x", stop_reason="answered"), reply)
    assert verdict["feedback"] == "- the tray is there: failed\ntemp is elsewhere"
    silent, _ = judged(attempt(items=SAID, stop_reason="the planner did not answer: no key"))
    assert silent["feedback"].count("no key") == 1


def test_an_answer_alone_is_said_to_be_all_that_an_item_rests_on(attempt, step):
    verdict, _ = judged(attempt(items=SAID[:1], answer="It is there.", stop_reason="answered"), said("success"))
    assert verdict["status"] == "accepted"
    assert verdict["items"][0]["reason"] == "by the answer alone: no call was made"
    seen, _ = judged(attempt(items=SAID[:1], steps=[step()], answer="x", stop_reason="answered"), said("success"))
    assert seen["items"][0]["reason"] == ""


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ({"answer": "You are welcome."}, "accepted"),
        ({"answer": ""}, "failed"),
        ({"answer": "Done.", "task_state": FILED}, "failed"),
        ({"answer": "Done.", "items_failure": "no checklist: x"}, "failed"),
    ],
)
def test_an_empty_checklist_is_met_by_an_answer_and_nothing_else(attempt, state, word):
    verdict, driven = judged(attempt(items=[], stop_reason="answered", **state))
    assert (verdict["status"], verdict["score"], driven.asks) == (word, float(word == "accepted"), [])
    assert "nothing to check" in verdict["feedback"] or word == "failed"
    assert (verdict["feedback"] == "no checklist: x") is ("items_failure" in state)


# properties

STATUS = st.sampled_from(["success", "failed", "unknown", "not_asked_for"])
IDS = st.sampled_from(["a", "b", "c", "d", " a "])
ITEMS = st.lists(st.sampled_from("abc"), unique=True, max_size=3).map(
    lambda ids: [{"id": identifier, "description": identifier} for identifier in ids]
)
JUDGEMENTS = st.none() | st.builds(
    Judgement,
    items=st.lists(st.fixed_dictionaries({"id": IDS, "status": STATUS}), max_size=5),
    ask_user=st.booleans(),
    unasked_changes=st.lists(st.just("a tray is gone"), max_size=1),
    feedback=st.text(max_size=3),
)
RULED = st.dictionaries(st.sampled_from("abc"), st.tuples(st.booleans(), st.just("why")), max_size=3)
REASONS = st.sampled_from(["answered", "max_steps: x", "the planner did not answer: x"])


@given(ITEMS, RULED, JUDGEMENTS, REASONS, st.booleans())
def test_the_verdict_s_laws(items, ruled, judgement, reason, changed):
    change = [{"op": "add", "path": "/x", "value": 1}] if changed else []
    stop = {"code": code_of(reason), "message": reason}
    attempt = {"stop_reason": reason, "stop": stop, "answer": "", "steps": [], "change": change}
    after = {"x": 1} if changed else {}
    verdict = build_verdict(Evidence(attempt, {}, after, items, "none", ruled=ruled), judgement, None)
    found = [item["status"] for item in verdict["items"] if item["status"] != "not_asked_for"]
    assert [item["id"] for item in verdict["items"]] == [item["id"] for item in items]
    assert 0 <= verdict["score"] <= 1
    if verdict["status"] == "accepted":
        assert items
        assert set(found) == {"success"}
        assert verdict["score"] == 1.0
    else:
        assert verdict["feedback"]
    if verdict["status"] == "needs_user":
        assert "failed" not in found
        assert "unknown" in found
        assert judgement.stopping_was_right
    if judgement is None and len(ruled.keys() & {item["id"] for item in items}) < len(items):
        assert verdict["status"] == "failed"
    if reason.startswith("the planner did not answer"):
        assert (verdict["status"], verdict["score"]) == ("failed", 0.0)
    for item in verdict["items"]:
        if item["id"] in ruled:
            assert (item["status"] == "success") == ruled[item["id"]][0]
