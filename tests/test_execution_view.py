"""What an agent asks and what it really did, below the rehearsal: text, page, live view."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from gecko_graph import format_run
from gecko_graph.display import html_page
from gecko_graph.display.live import show
from gecko_graph.display.rows import list_results
from gecko_graph.values.notes import note
from tests.runs_to_show import NASTY, RUN


def entry(name, status="ok", **more):
    return {"call": {"id": name, "name": name, "args": {"n": 1}}, "status": status, "tries": 1} | more


DRIFT = {"kind": "value", "path": "/price", "predicted": 5, "real": 6}
UNDOCUMENTED = note("undocumented", "no orders")
EXECUTION = {
    "v": 1,
    "turn": 1,
    "status": "in_doubt",
    "digest": "d",
    "calls": [
        entry("order", result={"price": 6}, drift=[DRIFT]),
        entry("note", result="written", by="person"),
        entry("pay", "error", result="no money", departure={"code": "error", "message": "no money"}),
        entry("look", result=[], departure={"code": "schema", "message": "not a list of orders"}, notes=[UNDOCUMENTED]),
        entry("ship", "skipped", departure={"code": "precondition", "message": "it is not paid"}),
        entry("mail", "in_doubt"),
    ],
    "left": [{"id": "z", "name": "close", "args": {}}],
    "undo": [
        entry("order", "found", calls=[{"name": "cancel", "args": {"n": 1}, "bindings": []}]),
        entry("note", "none", calls=[]),
    ],
    "rehearsals": 2,
}
ROWS = [
    ("ok", '{"price": 6}'),
    ("drift", "value /price: predicted → real 5 → 6"),
    ("ok", "written (a person's words)"),
    ("error", "no money"),
    ("departed", "not a list of orders"),
    ("undocumented", "no orders"),
    ("skipped", "it is not paid"),
    ("in doubt", "no answer yet"),
    ("way back", "Undone by cancel(n=1)."),
    ("way back", "No way back is known."),
]
OUTPUT = {"messages": [], "rehearsal": RUN, "execution": EXECUTION}


def squeezed(text):
    return " ".join(text.replace("│", " ").split())


@pytest.mark.parametrize("is_terminal", [True, False])
def test_each_real_call_says_what_came_of_it(is_terminal):
    out = io.StringIO()
    console = Console(file=out, width=200, force_terminal=is_terminal, color_system=None, legacy_windows=False)
    show(console, {**RUN, "execution": EXECUTION})
    lines = re.sub(r"(?<= )(order|note|pay|look|ship|mail): ", "", squeezed(out.getvalue()))
    for shown in (lines, squeezed(str(format_run(OUTPUT, width=200)))):
        assert "in doubt: 5 real calls, 1 drifted, 1 not made; 2 rehearsals" in shown
        assert all(f"{word} {text}" in shown for word, text in ROWS)
        assert "left close()" in shown
        assert shown.count("no money") == 1, "an error is its own departure"


def test_a_page_says_first_what_was_really_done():
    asked = {"action_requests": [{"name": "pay", "args": {}, "description": "Pays:\n````\n```5```\n````\nfor it"}] * 2}
    waiting = {**OUTPUT, "__interrupt__": [SimpleNamespace(value=asked)]}
    for run, says in (
        (RUN, "Only rehearsed: nothing was done for real but 1 read<"),
        ({**RUN, "attempts": RUN["attempts"][:1]}, "Only rehearsed: nothing was done for real<"),
        (waiting, "Not done yet: 2 calls below wait for a decision<"),
        (OUTPUT, "For real: in doubt: 5 real calls, 1 drifted, 1 not made; 2 rehearsals<"),
    ):
        for page in (html_page(run), format_run(run)._repr_html_()):
            assert page.index(says) < page.index('<div class="verdict')
            assert page.count("Answer in the rehearsal") == 1
    for shown in (html_page(waiting), str(format_run(waiting))):
        assert "````" not in shown
        assert shown.count("```5```") == 2


def test_texts_of_reality_are_harmless():
    drift = [{"kind": "value", "path": f"/{NASTY}", "predicted": NASTY, "real": 6}]
    nasty = entry("x", result={NASTY: NASTY}, departure={"code": "ensures", "message": NASTY}, drift=drift)
    output = {**OUTPUT, "execution": {**EXECUTION, "calls": [nasty]}}
    action = {"name": NASTY, "args": {NASTY: NASTY}, "description": NASTY}
    for run in (output, {**OUTPUT, "__interrupt__": [SimpleNamespace(value={"action_requests": [action]})]}):
        assert "<script>" not in html_page(run)
        assert "\x1b" not in str(format_run(run))


def test_data_of_a_question_hides_nothing_of_it():
    """Only our own plan and the last line are left out, whatever a result says, and only our fence ends its data."""
    data = "The plan, as agreed\n```\nApprove, and pay is called for real."
    text = f"The plan, 2 calls:\n````\n1. pay()\n````\n\nReturns:\n````\n{data}\n````\nNo way back.\n"
    action = {"name": "pay", "args": {}, "description": text + "Approve, and pay is called for real."}
    shown = list_results({"asked": [action]})
    ((question,),) = (row.rows for row in shown)
    assert [(row.label, row.text) for row in question.rows] == [
        ("", "Returns:"),
        *(("data", line) for line in data.splitlines()),
        ("", "No way back."),
    ]
