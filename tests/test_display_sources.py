"""What a run rests on is shown wherever it is shown: made-up values, unclear conditions, what nobody asked for."""

from __future__ import annotations

import io
import re
from html import unescape

import pytest
from rich.console import Console

from gecko_graph import format_run
from gecko_graph.display import words
from gecko_graph.display.drafts import Drafts, list_events
from gecko_graph.display.live import LiveTree, PlainLines, show
from gecko_graph.display.tree import as_text, attempt_tree
from gecko_graph.display.words import format_judgement
from tests.runs_to_show import NASTY, attempt, printable, rehearsal, step, verdict

BY_MODEL = {"kind": "chosen", "from": "result", "path": "$.number", "step": 1, "rung": "model"}
NOWHERE = {"kind": "chosen", "from": "planner", "path": ""}


def made_up(argument, value, origin):
    return {"call": "pay-1", "tool": "pay", "argument": argument, "value": value, "origin": origin}


JUDGED = verdict("accepted", "success", "not_asked_for", feedback="Look at the amount.") | {
    "made_up": [made_up("$.number", "INV-1042", BY_MODEL), made_up("$.to.amount", 1240.5, NOWHERE)],
    "unclear": ["pay: state.x is undefined"],
    "unasked_changes": ["remove /diary"],
}
ORIGINS = {
    "find-1": {"$.x": [{"kind": "stated", "from": "state", "path": "/a"}]},
    "pay-1": {
        "$.number": [BY_MODEL],
        "$.to.amount": [NOWHERE],
        "$.to.who": [{"kind": "stated", "from": "task", "path": ""}],
    },
}
ATTEMPT = attempt(
    1,
    [
        step("find", {"x": "a"}, result={"number": "INV-1042"}, rung="model", unclear=["state.x is undefined"]),
        step("pay", {"number": "INV-1042", "to": {"amount": 1240.5, "who": "Ann"}}),
    ],
    JUDGED,
    origins=ORIGINS,
)
RUN = rehearsal(ATTEMPT) | {
    "origins": ORIGINS,
    "changes": ["replace /fuel 5.0 → 45.0", 'shrink /users 400 items → 1, lost: ["u1"]'],
    "supposed_state": {"paths": ["/a"], "state": {"a": [1]}, "unclear": ["find: state.a is a list"]},
}
EVERYWHERE = [
    "accepted, 1 of 1; rests on 2 made-up values: number, to.amount; 1 point could not be checked; 1 unasked change",
    "thing 2 holds",
    'number: "INV-1042" (pay), made up by model, step 1',
    "to.amount: 1240.5 (pay), made up by the planner",
    "pay: state.x is undefined",
    "remove /diary",
    "Look at the amount.",
    "a: [1]",
    "find: state.a is a list",
]


def plain():
    out = io.StringIO()
    show(Console(file=out, width=200), RUN["attempts"], RUN)
    return out.getvalue()


def page():
    html = format_run(RUN)._repr_html_().replace("</dt>", ": ")
    return " ".join(unescape(re.sub("<[^>]+>", "", html)).split())


@pytest.mark.parametrize(
    ("shown", "more"),
    [
        (lambda: str(format_run(RUN, width=200)), "400 items → 1"),
        (plain, "400 items → 1"),
        (page, "made up by the planner, task"),
    ],
    ids=["text", "lines", "page"],
)
def test_what_a_run_rests_on_is_shown(shown, more):
    text = shown()
    assert [each for each in [*EVERYWHERE, more] if each not in text] == []


def test_the_plan_says_where_each_argument_comes_from():
    assert 'find(x: "a" (state))' in str(format_run(RUN, width=200))
    assert 'pay(number: "INV-1042" (made up by model, step 1), to: ' in plain()
    assert plain().index("- /users 400 items → 1") < plain().index("~ /fuel 5.0 → 45.0")


@pytest.mark.parametrize(
    ("origin", "text"),
    [
        ({"kind": "stated", "from": "task", "path": ""}, "task"),
        ({"kind": "stated", "from": "conversation", "path": "m1"}, "conversation"),
        ({"kind": "stated", "from": "result", "path": "$", "step": 2, "rung": "python"}, "step 2"),
        (
            {"kind": "stated", "from": "result", "path": "$", "step": 2, "rung": "python", "attempt": 1},
            "step 2 of attempt 1",
        ),
        ({"kind": "chosen", "from": "state", "path": "/a/b"}, "made up in the start state"),
        ({"kind": "chosen", "from": "conversation", "path": "d5c5-31d6"}, "made up in an earlier turn"),
        (BY_MODEL, "made up by model, step 1"),
        (NOWHERE, "made up by the planner"),
    ],
)
def test_an_origin_in_short(origin, text):
    assert words.format_origin(origin) == text


def test_that_a_value_is_made_up_is_said_once():
    origins = {"$.number": [{"kind": "chosen", "from": "state", "path": "/invoices/0"}, BY_MODEL]}
    shown = words.format_call({"name": "pay", "args": {"number": "INV-1042"}}, origins=origins)
    assert shown == 'pay(number: "INV-1042" (made up in the start state))'


def test_an_unasked_change_marks_an_accepted_verdict():
    found = verdict("accepted", "success") | {"unasked_changes": ["remove /diary"]}
    assert (words.format_verdict(found), words.style_of(found)) == ("accepted, 1 of 1; 1 unasked change", "made up")
    assert words.format_verdict({**found, "status": "failed"}) == "failed, 1 of 1"


def test_an_unasked_change_is_said_once():
    judged = JUDGED | {"status": "failed", "feedback": "Not asked for: remove /diary\nLook at the amount."}
    assert words.format_feedback(judged) == "Look at the amount."


def test_an_accepted_plan_without_calls_says_so():
    idle = rehearsal(attempt(1, [], verdict("accepted", "success")))
    assert "accepted, 1 of 1, no calls" in str(format_run(idle))
    assert "accepted, 1 of 1, no calls" in format_run(idle)._repr_html_()
    assert "no calls" not in str(format_run(rehearsal(attempt(1, [], verdict("failed", "failed")))))


def test_the_live_view_draws_the_same_from_events():
    drafts = Drafts()
    for event in list_events(ATTEMPT):
        draft = drafts.add(event)
    assert as_text(attempt_tree(draft), width=200) == as_text(attempt_tree(ATTEMPT), width=200)


def test_what_is_of_the_whole_turn_is_shown_before_its_attempts():
    state = {"v": 1, "type": "gecko.state", "attempt": 0, "supposed": ["/a"], "state": {"a": [1]}, "unclear": ["why"]}
    items = [{"id": "i", "description": "it is paid"}]
    checklist = {"v": 1, "type": "gecko.checklist", "attempt": 0, "items": items, "failure": "no checklist: no reply"}
    for progress, start in ((PlainLines, "[-] "), (LiveTree, "")):
        out = io.StringIO()
        with progress(Console(file=out, width=200)) as shown:
            for event in (state, checklist):
                shown.on_event(event)
        text = "\n".join(" ".join(line.split()) for line in out.getvalue().splitlines())
        for line in ("supposed a: [1]", "unclear why", "expected it is paid", "expected no checklist: no reply"):
            assert f"{start}{line}" in text


def test_names_and_notes_that_others_wrote_are_harmless():
    judged = JUDGED | {"made_up": [made_up(f"$.{NASTY}", NASTY, BY_MODEL | {"rung": NASTY})], "unclear": [NASTY]}
    origins = {"pay-1": {f"$.{NASTY}": [{"kind": "chosen", "from": "planner", "path": "", "rung": NASTY}]}}
    run = rehearsal(attempt(1, [step("pay", {NASTY: NASTY})], judged, origins=origins))
    run |= {"origins": origins, "changes": [NASTY], "supposed_state": {"state": {NASTY: NASTY}}}
    assert printable(str(format_run(run)))
    assert "<script>" not in format_run(run)._repr_html_()


def test_an_item_that_the_judge_has_struck_says_so_in_words():
    item = {"id": "a", "description": "he is happy", "status": "not_asked_for", "reason": "", "by": "model"}
    assert format_judgement(item, "") == ("not asked for, not counted", "model")
    assert format_judgement(item | {"reason": "his own affair"}, "")[0] == "not asked for, not counted: his own affair"
