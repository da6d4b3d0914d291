"""What a rehearsal looks like: text, live tree, plain lines. Everything that others wrote is harmless."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langgraph.types import GraphOutput
from rich.cells import cell_len

from gecko_graph import GeckoError, format_run
from gecko_graph.display import words
from gecko_graph.display.drafts import list_events
from gecko_graph.display.live import event_lines
from tests.runs_to_show import (
    RUN,
    SECOND,
    attempt,
    complaint,
    nasty_run,
    printable,
    rehearsal,
    step,
    verdict,
)


def test_text_of_a_run():
    assert str(format_run(RUN, width=80)) == (
        """\
Attempt 1  from state abcdef01
├── book(date: "soon")
│   refused $.date: expected a date, got "soon" (rule)
├── mkdir(name: "temp")  simulated by contract
│   ok null
│   +  /tree/temp {}
├── mv(from: "a", to: "temp")  simulated by contract
│   error mv: no such file
├── answer Done.
└── failed, 0 of 2
    ✗ thing 1 holds  (rule)
    ? thing 2 holds  (rule)
    » Look where you are.
Attempt 2  from state abcdef01
├── cd(folder: "docs")  simulated by contract
│   ok {"cwd": "docs"}
│   ~  /cwd "docs"
├── pay()  simulated by contract
│   error not done: credit below zero
├── look()  run for real
│   ok [1, 2]
├── guess()  simulated by schema
│   ok 1
│      not by contract: it cannot be evaluated: division by zero
├── answer Done.
└── accepted, 1 of 1
    ✓ thing 1 holds  (rule)

accepted, 1 of 1  attempt 2 of 2
plan  1. cd(folder: "docs")
      2. look()
      3. guess()
state ~ /cwd "docs"
cost  5 model replies (planner 5), 1,234 tokens read, 56 written, $0.0021"""
    )


def test_format_run_takes_the_output_and_the_record():
    text = format_run({"messages": [], "rehearsal": RUN, "task_state": {}})
    assert str(text) == str(format_run(RUN)) == repr(text)
    assert str(text) == str(format_run(GraphOutput({"rehearsal": RUN})))


@pytest.mark.parametrize("wrong", [{}, {"messages": []}, None, "run"])
def test_format_run_says_what_it_wants(wrong):
    with pytest.raises(GeckoError, match=r"expected the graph.s output or its .rehearsal., got"):
        format_run(wrong)
    with pytest.raises(GeckoError, match="pass the items of a list one by one"):
        format_run([wrong])
    with pytest.raises(GeckoError, match="the run is paused"):
        format_run({"messages": [], "__interrupt__": []})


def test_needs_user_shows_the_question_and_no_change():
    asking = attempt(1, [], verdict("needs_user", "unknown"), answer="Which one?", change=SECOND["change"])
    text = str(format_run(rehearsal(asking)))
    assert "needs the user, 0 of 1" in text
    assert "asks Which one?" in text
    assert "state" not in text.split("needs the user, 0 of 1")[-1]
    assert "no model was asked" in text


def test_an_early_end_a_race_and_malformed_arguments_are_told():
    call = {"id": "x", "name": "book", "args": {}, "malformed": '{"date": '}
    broken = {"v": 1, "call": call, "complaints": [complaint("$", "a JSON object", "text")]}
    raced = step("put", {}, race=["put (c2) at /a"], patch=[{"op": "move", "from": "/a", "path": "/b"}])
    dropped = step("look", {}, refused="a read changes nothing: 1 operations were dropped")
    ended = attempt(1, [broken, raced, dropped], verdict("failed"), stop_reason="max_steps: 3 calls were made")
    text = str(format_run(rehearsal(ended)))
    assert "ended early: max_steps: 3 calls were made" in text
    assert 'book({"date": )' in text
    assert "race put (c2) at /a" in text
    assert ">  /b from /a" in text.replace("    ", " ") or re.search(r">\s+/b from /a", text)
    assert "the change was not made: a read changes nothing" in text


def test_why_an_attempt_ended_is_told_once():
    why = "the planner did not answer: no route to it"
    item = {"id": "a", "description": "the pen is in", "status": "failed", "reason": why, "by": "nobody"}
    judged = {**verdict("failed", feedback=f"Look.\nThe attempt ended early: {why}"), "items": [item]}
    ended = attempt(1, [], judged, answer="", stop_reason=why)
    text = str(format_run(rehearsal(ended), width=200))
    assert text.count("no route to it") == 1
    assert "✗ the pen is in  (not judged)" in text
    lines = list(event_lines(list(list_events(ended))[-1]))
    assert ("stopped", why) in lines
    assert lines[-2:] == [("item", "failed: the pen is in (not judged)"), ("feedback", "Look.")]


def test_long_values_are_cut_and_say_so():
    text = str(format_run(rehearsal(attempt(1, [step("read", {"q": "y" * 5000}, result="x" * 9000)], verdict()))))
    assert "(9,000 characters)" in text
    assert "(5,002 characters)" in text
    assert len(text) < 2000


def test_many_operations_are_counted():
    patch = [{"op": "remove", "path": f"/{n}"} for n in range(40)]
    assert words.format_patch(patch)[-1] == ("…", "34 more changes", "")


# harmless --------------------------------------------------------------------------------------------


@given(
    st.text(st.characters(codec="utf-16", categories=None), max_size=80)
    | st.text("\x1b[]0;m\x07\x9b<>&x ", max_size=40)
)
def test_clean_leaves_nothing_that_acts(text):
    told = words.clean(text)
    assert all(char in words._JOINERS or unicodedata.category(char) not in words._UNSAFE for char in told)
    assert words.clean(told) == told
    told.encode()


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=60))
def test_clean_keeps_what_people_write(text):
    assert words.clean(text) == text


def test_clean_shows_what_it_cannot_keep():
    assert words.clean("a\x07b\u202ec\ud800") == "a\\x07b\\u202ec\\ud800"
    assert words.clean("\x1b[2Jx\x1b]0;t\x1b\\y\x1bc") == "xy"
    assert words.clean("one\r\ntwo\tthree") == "one ⏎ two three"
    assert words.clean("one\r\ntwo", lines=True) == "one\ntwo"
    assert words.clean("👩‍👩‍👧") == "👩‍👩‍👧"
    assert words.clean("\u200da \u200d\u200db") == "\\u200da \\u200d\\u200db"


def test_what_tools_wrote_is_no_markup_and_no_escape_sequence():
    text = str(format_run(nasty_run(), width=200))
    assert printable(text)
    assert "[bold]x[/bold]" in text
    assert ":smile:" in text
    assert "\\u202e" in text


WIDE = st.text(st.sampled_from("ab 漢字🦎é\u200d\x1b\n"), max_size=80)


@given(WIDE, st.integers(40, 120))
@example("aaaaaaaaaaaaaa\x1b\x1b\x1ba \u200d\u200d字字字字字字", 68)
def test_lines_fit_the_width(text, width):
    shown = str(format_run(nasty_run(text), width=width))
    assert max(map(cell_len, shown.split("\n"))) <= width
