"""What a rehearsal looks like: text, table, live tree, plain lines. Everything that others wrote is harmless."""

from __future__ import annotations

import io
import re
import time
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.types import GraphOutput
from rich.cells import cell_len
from rich.console import Console

from gecko_graph import GeckoError, format_run
from gecko_graph.display import words
from gecko_graph.display.live import LiveTree, PlainLines, event_lines, progress, show
from gecko_graph.display.story import Story, events_of

NASTY = "\x1b[31mred\x1b[0m \x1b]0;title\x07<script>alert(1)</script> [bold]x[/bold] \u202eturned\x00\x9b2J :smile:"
TEXT = st.text(max_size=60)


def step(name, args, status="ok", result=None, patch=(), **more):
    outcome = {
        "status": status,
        "result": result,
        "patch": list(patch),
        "rung": "contract",
        "simulated": True,
        "passed": [],
    }
    return {"v": 1, "call": {"id": f"{name}-1", "name": name, "args": args}, "outcome": outcome | more}


def complaint(path="$.date", expected="a date", got='"soon"'):
    return {"tool": "book", "path": path, "expected": expected, "got": got, "source": "rule"}


def verdict(word="failed", *statuses, feedback=""):
    items = [
        {"id": f"i{n}", "description": f"thing {n} holds", "status": status, "reason": "", "by": "rule"}
        for n, status in enumerate(statuses, 1)
    ]
    return {"word": word, "score": 0.5, "items": items, "feedback": feedback}


def attempt(number, steps, outcome, **more):
    return {
        "v": 1, "number": number, "start_digest": "abcdef0123", "end_digest": "ffff", "steps": steps,
        "answer": "Done.", "verdict": outcome, "change": [], "usage": {}, "stop_reason": "answered",
    } | more  # fmt: skip


def rehearsal(*attempts, chosen=None, usage=None):
    last = chosen or attempts[-1]
    plan = [each["call"] for each in last["steps"] if each.get("outcome", {}).get("status") == "ok"]
    return {
        "v": 1, "plan": plan, "verdict": last["verdict"], "answer": last["answer"], "attempts": list(attempts),
        "chosen": last["number"], "usage": usage or {},
    }  # fmt: skip


FIRST = attempt(
    1,
    [
        {"v": 1, "call": {"id": "c0", "name": "book", "args": {"date": "soon"}}, "complaints": [complaint()]},
        step("mkdir", {"name": "temp"}, patch=[{"op": "add", "path": "/tree/temp", "value": {}}]),
        step("mv", {"from": "a", "to": "temp"}, "error", "mv: no such file"),
    ],
    verdict("failed", "failed", "unknown", feedback="- thing 1 holds: failed\nLook where you are."),
)
MOVED = [{"op": "replace", "path": "/cwd", "value": "docs"}]
SECOND = attempt(
    2,
    [
        step("cd", {"folder": "docs"}, result={"cwd": "docs"}, patch=MOVED),
        step("pay", {}, "error", "not done: credit below zero", refused="credit below zero"),
        step("look", {}, result=[1, 2], rung="real", simulated=False),
        step("guess", {}, result=1, rung="schema", passed=[
            {"rung": "real", "reason": "nothing was opened"},
            {"rung": "contract", "reason": "it cannot be evaluated: division by zero"},
        ]),
    ],
    verdict("accepted", "success"),
    change=MOVED,
)  # fmt: skip
USAGE = {"planner": {"calls": 5, "input_tokens": 1234, "output_tokens": 56, "cost": 0.0021}}
RUN = rehearsal(FIRST, SECOND, usage=USAGE)


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
    with pytest.raises(GeckoError, match="format_run wants what the graph returned"):
        format_run(wrong)
    with pytest.raises(GeckoError, match="of a list give it one by one"):
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
    lines = list(event_lines(list(events_of(ended))[-1]))
    assert ("stopped", why) in lines
    assert lines[-2:] == [("item", "failed: the pen is in (not judged)"), ("feedback", "Look.")]


def test_long_values_are_cut_and_say_so():
    text = str(format_run(rehearsal(attempt(1, [step("read", {"q": "y" * 5000}, result="x" * 9000)], verdict()))))
    assert "(9,000 characters)" in text
    assert "(5,002 characters)" in text
    assert len(text) < 2000


def test_many_operations_are_counted():
    patch = [{"op": "remove", "path": f"/{n}"} for n in range(40)]
    assert words.tell_patch(patch)[-1] == ("…", "34 more changes", "")


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


def nasty_run(text=NASTY):
    broken = {"id": "m", "name": "m", "args": {}, "malformed": text}
    steps = [
        step(text, {text: text}, "error", {"error": text, text: 1}, [{"op": "add", "path": f"/{text}", "value": text}]),
        step("a", {}, result=text, refused=text, race=[text], passed=[{"rung": text, "reason": f"x: {text}"}]),
        {"v": 1, "call": broken, "complaints": [complaint(text, text, text)]},
    ]
    items = {"items": [{"id": "i", "description": text, "status": "failed", "reason": text, "by": "model"}]}
    judged = verdict(feedback=text) | items
    return rehearsal(attempt(1, steps, judged, answer=text, stop_reason=text))


def printable(text):
    return all(char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs") for char in text)


def test_what_tools_wrote_is_no_markup_and_no_escape_sequence():
    text = str(format_run(nasty_run(), width=200))
    assert printable(text)
    assert "[bold]x[/bold]" in text
    assert ":smile:" in text
    assert "\\u202e" in text


class Page(HTMLParser):
    """Elements in order, and whether every one is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        assert set(dict(attrs)) <= {"style", "colspan"}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


OURS = {"table", "thead", "tbody", "tr", "th", "td", "span", "b", "i", "br", "small", "p"}


@given(TEXT)
def test_html_holds_only_our_elements(text):
    page = Page()
    page.feed(format_run(nasty_run(text + "</td></table><img src=x onerror=y>"))._repr_html_())
    assert page.open == []
    assert set(page.seen) <= OURS
    assert printable(page.text)
    assert "<img src=x onerror=y>" in page.text


def test_html_tells_the_run():
    page = Page()
    page.feed(format_run(RUN)._repr_html_())
    for told in (
        "Attempt 1",
        "Attempt 2 (chosen)",
        "accepted, 1 of 1",
        "run for real",
        "mkdir",
        "expected a date",
        "$0.0021",
    ):
        assert told in page.text
    assert page.seen.count("tr") == 1 + 2 * 2 + len(FIRST["steps"]) + len(SECOND["steps"])


WIDE = st.text(st.sampled_from("ab 漢字🦎é\u200d\x1b\n"), max_size=80)


@given(WIDE, st.integers(40, 120))
def test_lines_fit_the_width(text, width):
    shown = str(format_run(nasty_run(text), width=width))
    assert max(map(cell_len, shown.split("\n"))) <= width


# events ----------------------------------------------------------------------------------------------


def drawable(record):
    kept = ("number", "start_digest", "verdict", "answer", "stop_reason")
    steps = [{key: each[key] for key in ("call", "complaints", "outcome") if key in each} for each in record["steps"]]
    return {key: record[key] for key in kept} | {"steps": steps}


@pytest.mark.parametrize("record", [FIRST, SECOND, nasty_run()["attempts"][0]])
def test_a_story_is_the_record_again(record):
    story = Story()
    for event in events_of(record):
        story.take(event)
    (draft,) = story.attempts
    expected = drawable(record)
    for each in expected["steps"]:
        if each.get("outcome", {}).get("refused") is None:
            each.get("outcome", {}).pop("refused", None)
    assert draft == expected


def test_a_story_may_begin_in_the_middle_and_ignores_what_it_does_not_know():
    story = Story()
    story.take({"type": "gecko.new", "attempt": 3})
    for event in list(events_of(SECOND))[2:]:
        story.take(event)
    assert [each["call"]["name"] for each in story.attempts[0]["steps"]] == ["cd", "pay", "look", "guess"]
    assert "start_digest" not in story.attempts[0]


def console(**options):
    return Console(file=io.StringIO(), width=80, height=20, highlight=False, **options)


def test_plain_lines_one_an_event():
    shown = console(soft_wrap=True)
    with progress(shown) as lines:
        assert isinstance(lines, PlainLines)
        for event in events_of(FIRST):
            lines.take(event)
    lines.sum_up(RUN)
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
        for event in events_of(raced):
            lines.take(event)
    assert "[1] race     put: put (c2) at /a\n" in shown.file.getvalue()


def test_plain_lines_stay_one_line_each():
    shown = console(soft_wrap=True)
    lines = PlainLines(shown)
    for event in events_of(nasty_run()["attempts"][0]):
        lines.take(event)
    told = shown.file.getvalue()
    assert printable(told)
    assert all(line.startswith("[1] ") for line in told.splitlines())


def test_the_live_tree_leaves_each_attempt_once():
    shown = console(force_terminal=True, color_system="truecolor")
    with progress(shown) as tree:
        assert isinstance(tree, LiveTree)
        for record in (FIRST, SECOND):
            for event in events_of(record):
                tree.take(event)
    tree.sum_up(RUN)
    left = screen(shown.file.getvalue())
    assert left.count("Attempt 1") == left.count("Attempt 2") == 1
    assert left.count("cd(folder") == 2, "once in the attempt, once in the plan"
    assert "thinking" not in left
    assert left.rstrip().endswith("$0.0021")


def test_the_live_tree_keeps_what_was_interrupted():
    shown = console(force_terminal=True)
    with LiveTree(shown) as tree:
        for event in list(events_of(FIRST))[:4]:
            tree.take(event)
    left = screen(shown.file.getvalue())
    assert "mkdir" in left
    assert "stopped here" in left


def test_the_live_tree_shows_the_end_of_what_does_not_fit():
    shown = console(force_terminal=True)
    many = attempt(1, [step(f"tool{n}", {}, result=n) for n in range(30)], verdict())
    with LiveTree(shown) as tree:
        for event in list(events_of(many))[:-1]:
            tree.take(event)
        time.sleep(0.4)  # it is drawn eight times a second
        frame = screen(shown.file.getvalue())
    assert "lines above" in frame
    assert "tool29()" in frame
    assert len(frame.splitlines()) <= 20


def test_an_attempt_seen_only_in_part_is_shown_from_the_record():
    shown = console(force_terminal=True)
    with LiveTree(shown) as tree:
        for event in list(events_of(SECOND))[3:]:
            tree.take(event)
    tree.sum_up(RUN)
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
