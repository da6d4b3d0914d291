"""The live view: the record that events rebuild, as a tree and as plain lines."""

from __future__ import annotations

import io
import re
from threading import Thread

import pytest
from rich.console import Console

from gecko_graph import events as made
from gecko_graph.display.live import LiveTree, PlainLines, progress
from gecko_graph.display.records import Drafts
from gecko_graph.display.rows import build_attempt
from gecko_graph.display.text import as_text
from tests.runs_to_show import FIRST, RUN, SECOND, events_of, nasty_run, printable


def text_of(record):
    return as_text([build_attempt(record)], width=200)


def console(**options):
    return Console(file=io.StringIO(), width=80, height=20, highlight=False, **options)


def follow(view, *records, events=slice(None)):
    """Show the events of attempts."""
    with view:
        for record in records:
            for event in list(events_of(record))[events]:
                view.on_event(event)


@pytest.mark.parametrize("record", [FIRST, SECOND, nasty_run()["attempts"][0]])
def test_events_rebuild_what_the_record_shows(record):
    drafts = Drafts()
    assert drafts.add({"type": "gecko.new", "attempt": 3}) == []
    for event in events_of(record):
        drafts.add(event)
    assert text_of(drafts.attempts[record["number"]]) == text_of(record)


def test_plain_lines_one_a_row():
    shown = console(soft_wrap=True)
    lines = progress(shown)
    assert isinstance(lines, PlainLines)
    follow(lines, FIRST)
    lines.on_result(RUN)
    told = shown.file.getvalue().splitlines()
    assert told[1:3] == [
        '[1] call     book(date: "soon")',
        '[1] refused  book: /date: expected a date, got "soon" (rule)',
    ]
    assert "[1] change   mkdir: + /tree/temp {}" in told
    assert "[1] item     failed: thing 1 holds (rule)" in told
    assert told[-2] == 'state        ~ /cwd "docs"'


def test_plain_lines_stay_one_line_each():
    shown = console(soft_wrap=True)
    follow(PlainLines(shown), nasty_run()["attempts"][0])
    assert printable(shown.file.getvalue())
    assert all(line.startswith("[1] ") for line in shown.file.getvalue().splitlines())


def test_the_live_tree_leaves_each_attempt_once():
    shown = console(force_terminal=True, color_system="truecolor")
    tree = progress(shown)
    assert isinstance(tree, LiveTree)
    follow(tree, FIRST, SECOND)
    tree.on_result(RUN)
    left = screen(shown.file.getvalue())
    assert left.count("Attempt 1") == left.count("Attempt 2") == 1
    assert left.count("cd(folder") == 2, "once in the attempt, once in the plan"
    assert "waiting for a model" not in left
    assert left.rstrip().endswith("$0.0021")


def screen(output: str) -> str:
    """What is left on a terminal after this output: only what rich's live display uses."""
    lines, row = [""], 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\n|\r|[^\x1b\n\r]+", output):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part == "\x1b[2K":
            lines[row] = ""
        elif match := re.fullmatch(r"\x1b\[(\d+)A", part):
            row = max(0, row - int(match[1]))
        elif part[0] not in "\x1b\r":
            lines[row] += part
    return "\n".join(lines)


def test_the_picture_may_be_asked_for_while_a_line_is_printed():
    """Rich's thread asks for the picture while it holds the console's lock: a view that prints under its own hangs."""
    shown = console(force_terminal=True)
    view, printed = LiveTree(shown), shown.print

    def print_slowly(*args, **kwargs):
        asking = Thread(target=view._render, daemon=True)
        asking.start()
        asking.join(5)
        assert not asking.is_alive()
        printed(*args, **kwargs)

    shown.print = print_slowly
    view.on_event(
        made.event("gecko.checklist", attempt=0, items=[{"id": "a", "description": "it is filed"}], failure="")
    )
