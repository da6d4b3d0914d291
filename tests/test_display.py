"""What a rehearsal looks like as text, and what it rests on wherever it is shown. What others wrote is harmless."""

from __future__ import annotations

import io
import re
import unicodedata
from html import unescape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langgraph.types import GraphOutput
from rich.cells import cell_len
from rich.console import Console

from gecko_graph import GeckoError, format_run
from gecko_graph.display import words
from gecko_graph.display.live import show
from gecko_graph.values.notes import note
from gecko_graph.values.places import pointer
from tests.runs_to_show import NASTY, RUN, attempt, nasty_run, printable, rehearsal, step, verdict


def text_of(*given, width=200):
    """The text of a rehearsal of these attempts, or of a run."""
    return str(format_run(given[0] if "attempts" in given[0] else rehearsal(*given), width=width))


def test_the_text_of_a_run_has_its_attempts_result_plan_and_cost():
    lines = text_of(RUN, width=80).splitlines()
    for line in (
        '├── mkdir(name: "temp")  simulated by contract',
        "│   +  /tree/temp {}",
        '│   refused /date: expected a date, got "soon" (rule)',
        "│   error refused: credit below zero",
        "├── look()  run for real",
        "│   note not by contract: it cannot be evaluated: division by zero",
        "    ? thing 2 holds  (rule)",
        "    » Look where you are.",
        "accepted, 1 of 1  attempt 2 of 2",
        'plan  1. cd(folder: "docs")',
        'state ~ /cwd "docs"',
        "cost  5 model replies (planner 5), 1,234 tokens read, 56 written, $0.0021",
    ):
        assert line in lines, line


def test_format_run_takes_the_output_and_the_record():
    text = format_run({"messages": [], "rehearsal": RUN, "task_state": {}})
    assert str(text) == str(format_run(RUN)) == repr(text) == str(format_run(GraphOutput({"rehearsal": RUN})))
    for wrong in ({}, {"messages": []}, None, "run", [RUN], {"__interrupt__": []}):
        with pytest.raises(GeckoError):
            format_run(wrong)


def test_what_is_long_is_cut_and_says_so():
    patch = [{"op": "remove", "path": f"/{n}"} for n in range(40)]
    text = text_of(attempt(1, [step("read", {"q": "y" * 5000}, result="x" * 9000, patch=patch)], verdict()))
    assert all(each in text for each in ("(9,000 characters)", "(5,002 characters)", "…  34 more changes"))
    assert len(text) < 2000


# what a run rests on ---------------------------------------------------------------------------------

BY_MODEL = {"kind": "chosen", "from": "result", "path": "/number", "step": 1, "rung": "model"}
NOWHERE = {"kind": "chosen", "from": "planner", "path": ""}


def made_up(where, value, origin):
    return note("made_up", "nothing real supports it", where, call="pay-1", tool="pay", value=value, origin=origin)


JUDGED = verdict("accepted", "success", "not_asked_for", feedback="Look at the amount.") | {
    "notes": [
        made_up("/number", "INV-1042", BY_MODEL),
        made_up("/to/amount", 1240.5, NOWHERE),
        note("unclear", "state.x is undefined", tool="pay"),
        note("unasked", "remove /diary", "/diary"),
    ]
}
ORIGINS = {
    "find-1": {"/x": [{"kind": "stated", "from": "state", "path": "/a"}]},
    "pay-1": {
        "/number": [BY_MODEL],
        "/to/amount": [NOWHERE],
        "/to/who": [{"kind": "stated", "from": "task", "path": ""}],
    },
}
UNCLEAR = note("unclear", "state.x is undefined")
ATTEMPT = attempt(
    1,
    [
        step("find", {"x": "a"}, result={"number": "INV-1042"}, rung="model", notes=[UNCLEAR]),
        step("pay", {"number": "INV-1042", "to": {"amount": 1240.5, "who": "Ann"}}),
    ],
    JUDGED,
    origins=ORIGINS,
)
RESTS = rehearsal(ATTEMPT) | {
    "origins": ORIGINS,
    "changes": ["replace /fuel 5.0 → 45.0", 'shrink /users 400 items → 1, lost: ["u1"]'],
    "supposed_state": {"paths": ["/a"], "state": {"a": [1]}, "notes": [note("unclear", "find: state.a is a list")]},
}
EVERYWHERE = [
    "accepted, 1 of 1; rests on 2 made-up values: number, to/amount; 1 point could not be checked; 1 unasked change",
    "thing 2 holds",
    "pay number: nothing real supports it; made up by model, step 1",
    "pay to/amount: nothing real supports it; made up by the planner",
    "pay: state.x is undefined",
    "remove /diary",
    "Look at the amount.",
    "a: [1]",
    "find: state.a is a list",
    "400 items → 1",
]


def plain():
    out = io.StringIO()
    show(Console(file=out, width=200), RESTS)
    return out.getvalue()


def page():
    html = format_run(RESTS)._repr_html_().replace("</dt>", ": ")
    return " ".join(unescape(re.sub("<[^>]+>", "", html)).split())


@pytest.mark.parametrize("shown", [lambda: text_of(RESTS), plain, page], ids=["text", "lines", "page"])
def test_what_a_run_rests_on_is_shown(shown):
    text = shown()
    assert [each for each in EVERYWHERE if each not in text] == []


# harmless --------------------------------------------------------------------------------------------


@given(st.text(max_size=80) | st.text("\x1b[]0;m\x07\x9b<>&x ", max_size=40))
def test_clean_leaves_nothing_that_acts(text):
    told = words.clean(text)
    assert all(char in words._JOINERS or unicodedata.category(char) not in words._UNSAFE for char in told)
    assert words.clean(told) == told
    told.encode()


def test_clean_shows_what_it_cannot_keep():
    assert words.clean("a\x07b\u202ec\ud800") == "a\\x07b\\u202ec\\ud800"
    assert words.clean("\x1b[2Jx\x1b]0;t\x1b\\y\x1bc") == "xy"
    assert words.clean("one\r\ntwo\tthree") == "one ⏎ two three"
    assert words.clean("one\r\ntwo", lines=True) == "one\ntwo"
    assert words.clean("👩‍👩‍👧") == "👩‍👩‍👧"
    assert words.clean("\u200da \u200d\u200db") == "\\u200da \\u200d\\u200db"


def test_what_others_wrote_is_no_markup_and_no_escape_sequence():
    judged = JUDGED | {"notes": [made_up(f"/{NASTY}", NASTY, BY_MODEL | {"rung": NASTY}), note("unclear", NASTY)]}
    origins = {"pay-1": {pointer((NASTY,)): [{"kind": "chosen", "from": "planner", "path": "", "rung": NASTY}]}}
    run = rehearsal(attempt(1, [step("pay", {NASTY: NASTY})], judged, origins=origins))
    run |= {"origins": origins, "changes": [NASTY], "supposed_state": {"state": {NASTY: NASTY}}}
    for each in (run, nasty_run()):
        assert printable(text_of(each))
        assert "<script>" not in format_run(each)._repr_html_()
    assert all(each in text_of(nasty_run()) for each in ("[bold]x[/bold]", ":smile:", "\\u202e"))


WIDE = st.text(st.sampled_from("ab 漢字🦎é\u200d\x1b\n"), max_size=80)


@given(WIDE, st.integers(40, 120))
@example("aaaaaaaaaaaaaa\x1b\x1b\x1ba \u200d\u200d字字字字字字", 68)
def test_lines_fit_the_width(text, width):
    shown = text_of(nasty_run(text), width=width)
    assert max(map(cell_len, shown.split("\n"))) <= width
