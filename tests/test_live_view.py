"""The live view: the drafts that events tell, as a tree and as plain lines."""

from __future__ import annotations

import io
import re
import time

import pytest
from rich.console import Console

from gecko_graph import Toolkit, create_gecko
from gecko_graph.display.drafts import Drafts, list_events
from gecko_graph.display.live import LiveTree, PlainLines, progress, show, show_opening
from gecko_graph.display.tree import as_text, attempt_tree
from gecko_graph.events import Reader, stream_options
from gecko_graph.testing import recorded
from tests.runs_to_show import FIRST, MOVED, RUN, SECOND, attempt, nasty_run, printable, step, verdict


def drawable(record):
    kept = ("number", "start_digest", "verdict", "answer", "stop_reason")
    steps = [{key: each[key] for key in ("call", "complaints", "outcome") if key in each} for each in record["steps"]]
    return {key: record[key] for key in kept} | {"steps": steps}


@pytest.mark.parametrize("record", [FIRST, SECOND, nasty_run()["attempts"][0]])
def test_a_story_is_the_record_again(record):
    drafts = Drafts()
    for event in list_events(record):
        drafts.add(event)
    (draft,) = drafts.attempts
    expected = drawable(record)
    for each in expected["steps"]:
        if each.get("outcome", {}).get("refused") is None:
            each.get("outcome", {}).pop("refused", None)
    assert draft == expected


def test_what_was_streamed_of_a_discarded_result_is_taken_back():
    look = {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}
    contract = {"ensures": [{"check": "result.balance < 100", "error": "too rich"}]}
    toolkit = Toolkit.from_tools([look], contracts={"look": contract}, effects={"look": "read"})
    done = {"items": [{"id": "item-1", "status": "success", "reason": "ok"}], "feedback": ""}
    answer = {"status": "ok", "result": {"balance": 987_123}}
    model = recorded(planner=[[{"call": "look"}, {"say": "Done."}]], simulator=[answer], judge=[done])
    graph = create_gecko(toolkit, models=dict.fromkeys(("planner", "simulator", "judge"), model))
    drafts, reader = Drafts(), Reader(lambda event: event["attempt"] and drafts.add(event))
    given = {"messages": [("user", "Look")], "task_state": {"runtime_state": {}}, "checklist": ["looked"]}
    for part in graph.stream(given, **stream_options(graph)):
        reader.read(part)
    (draft,) = drafts.attempts
    assert (draft["steps"][0]["outcome"]["status"], draft["steps"][0]["outcome"]["result"]) == (
        "error",
        "not done: too rich",
    )
    shown = [as_text(attempt_tree(each), width=80) for each in (draft, reader.rehearsal["attempts"][0])]
    assert shown[0] == shown[1]


def test_a_story_may_begin_in_the_middle_and_ignores_what_it_does_not_know():
    drafts = Drafts()
    drafts.add({"type": "gecko.new", "attempt": 3})
    for event in list(list_events(SECOND))[2:]:
        drafts.add(event)
    assert [each["call"]["name"] for each in drafts.attempts[0]["steps"]] == ["cd", "pay", "look", "guess"]
    assert "start_digest" not in drafts.attempts[0]


def console(**options):
    return Console(file=io.StringIO(), width=80, height=20, highlight=False, **options)


def test_plain_lines_one_an_event():
    shown = console(soft_wrap=True)
    with progress(shown) as lines:
        assert isinstance(lines, PlainLines)
        for event in list_events(FIRST):
            lines.on_event(event)
    lines.on_result(RUN)
    assert shown.file.getvalue() == (
        """\
[1] attempt  from state abcdef01
[1] call     book(date: "soon")
[1] refused  book: $.date: expected a date, got "soon" (rule)
[1] call     mkdir(name: "temp")
[1] ok       mkdir: null (simulated by contract)
[1] change   mkdir: + /tree/temp {}
[1] call     mv(from: "a", to: "temp")
[1] error    mv: mv: no such file (simulated by contract)
[1] answer   Done.
[1] verdict  failed, 0 of 2
[1] item     failed: thing 1 holds (rule)
[1] item     unknown: thing 2 holds (rule)
[1] feedback Look where you are.
result       accepted, 1 of 1 (attempt 2 of 2)
plan         1. cd(folder: "docs")
plan         2. look()
plan         3. guess()
state        ~ /cwd "docs"
cost         5 model replies (planner 5), 1,234 tokens read, 56 written, $0.0021
"""
    )


def test_a_race_is_told_while_the_run_goes_on():
    shown = console(soft_wrap=True)
    raced = attempt(1, [step("put", {}, race=["put (c2) at /a"], patch=MOVED)], verdict())
    with progress(shown) as lines:
        for event in list_events(raced):
            lines.on_event(event)
    assert "[1] race     put: put (c2) at /a\n" in shown.file.getvalue()


def test_plain_lines_stay_one_line_each():
    shown = console(soft_wrap=True)
    lines = PlainLines(shown)
    for event in list_events(nasty_run()["attempts"][0]):
        lines.on_event(event)
    told = shown.file.getvalue()
    assert printable(told)
    assert all(line.startswith("[1] ") for line in told.splitlines())


def test_the_live_tree_leaves_each_attempt_once():
    shown = console(force_terminal=True, color_system="truecolor")
    with progress(shown) as tree:
        assert isinstance(tree, LiveTree)
        for record in (FIRST, SECOND):
            for event in list_events(record):
                tree.on_event(event)
    tree.on_result(RUN)
    left = screen(shown.file.getvalue())
    assert left.count("Attempt 1") == left.count("Attempt 2") == 1
    assert left.count("cd(folder") == 2, "once in the attempt, once in the plan"
    assert "thinking" not in left
    assert left.rstrip().endswith("$0.0021")


def test_the_live_tree_keeps_what_was_interrupted():
    shown = console(force_terminal=True)
    with LiveTree(shown) as tree:
        for event in list(list_events(FIRST))[:4]:
            tree.on_event(event)
    left = screen(shown.file.getvalue())
    assert "mkdir" in left
    assert "stopped here" in left


def test_the_live_tree_shows_the_end_of_what_does_not_fit():
    shown = console(force_terminal=True)
    many = attempt(1, [step(f"tool{n}", {}, result=n) for n in range(30)], verdict())
    with LiveTree(shown) as tree:
        for event in list(list_events(many))[:-1]:
            tree.on_event(event)
        time.sleep(0.4)  # it is drawn eight times a second
        frame = screen(shown.file.getvalue())
    assert "lines above" in frame
    assert "tool29()" in frame
    assert len(frame.splitlines()) <= 20


def test_an_attempt_seen_only_in_part_is_shown_from_the_record():
    shown = console(force_terminal=True)
    with LiveTree(shown) as tree:
        for event in list(list_events(SECOND))[3:]:
            tree.on_event(event)
    tree.on_result(RUN)
    left = screen(shown.file.getvalue())
    assert left.count("Attempt 1") == left.count("Attempt 2") == 1
    assert 'ok {"cwd": "docs"}' in left


@pytest.mark.parametrize("terminal", [True, False])
def test_show_draws_trees_on_a_terminal_and_lines_in_a_pipe(terminal):
    shown = console(force_terminal=terminal, color_system=None)
    unfinished = {"number": 3, "start_digest": "ab", "steps": [{"call": {"id": "z", "name": "z", "args": {}}}]}
    show(shown, [FIRST, unfinished], RUN, waiting="interrupted here")
    told = shown.file.getvalue()
    assert ("├──" in told) is terminal
    assert ("interrupted here" in told) is terminal
    assert ("[3] call     z()" in told) is not terminal
    assert "accepted, 1 of 1" in told


def test_a_dumb_terminal_gets_plain_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(progress(console(force_terminal=True)), PlainLines)


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


@pytest.mark.parametrize("view", [PlainLines, LiveTree])
def test_what_was_made_up_of_the_state_is_shown_before_the_first_attempt(view):
    shown = console(force_terminal=view is LiveTree)
    with view(shown) as view_:
        told = {"supposed": ["/desk"], "state": {"desk": {"pens": 3}}, "unclear": ["look: no"]}
        view_.on_event({"type": "gecko.state", "attempt": 0, **told})
    said = shown.file.getvalue()
    assert "supposed" in said
    assert 'desk: {"pens": 3}' in said
    assert "look: no" in said
    assert "stopped here" not in said, "it is of no attempt"


def test_lines_before_the_attempts_are_rows_on_a_terminal_and_plain_in_a_pipe():
    lines = [("given", f"items: {'[1, 2] ' * 15}"), ("expected", "one is left")]
    shown, piped = console(force_terminal=True, color_system=None), console(soft_wrap=True)
    show_opening(shown, lines)
    show_opening(piped, lines)
    first, second, third = [line.rstrip() for line in shown.file.getvalue().splitlines()]
    assert (first[:16], second[:10], third) == ("given    items: ", "         [", "expected one is left")
    assert piped.file.getvalue().splitlines()[1] == "[-] expected one is left"


def test_a_result_without_a_change_of_the_state_shows_none():
    shown = console(force_terminal=True, color_system=None)
    show(shown, [], {**RUN, "changes": ["(nothing)"]})
    assert "state" not in shown.file.getvalue().split()
