"""The HTML page of a run: what stands on it, that it loads nothing, and that data never becomes markup."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph.cli import main
from gecko_graph.display import html_page
from gecko_graph.display.page import PageTurn, html_part
from gecko_graph.scenario import play, shipped
from gecko_graph.values.notes import note
from tests.runs_to_show import RUN, nasty_run, printable

VOID = {"meta", "br"}


class Page(HTMLParser):
    """Tags, attributes, the text of each element by class, and whether all elements are closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], set(), set(), ""
        self.by_class = {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= set(attrs)
        if tag not in VOID:
            self.open.append((tag, dict(attrs).get("class") or tag))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if any(tag == "style" for tag, _ in self.open):
            return
        self.text += data
        for _, kind in self.open:
            self.by_class[kind] = self.by_class.get(kind, "") + data

    def has(self, kind, *texts):
        """Return whether elements of a class hold all texts."""
        return all(text in " ".join(self.by_class.get(kind, "").split()) for text in texts)


def run_shipped(name):
    scenario = shipped(name)
    outputs = play(scenario, scenario.gecko(checkpointer=InMemorySaver()), thread_id=name)
    return html_page(*outputs, title=scenario.name, start_state=scenario.state)


def test_a_page_shows_the_whole_run():
    page = Page(run_shipped("files"))
    assert page.has("task", "Move final_report.pdf within document directory")
    assert page.has(
        "verdict good",
        "accepted, 3 of 3",
        "attempt 2 of 2",
        "tokens read",
        "tokens are an estimate",
        "I made the directory temp",
    )
    assert page.has(
        "outcome", "the directory document has a directory temp", "state.tree.workspace", "its check does not"
    )
    assert page.has("attempt card", "Attempt 1: failed, 0 of 3", "Attempt 2: accepted", "chosen", "mv takes no paths")
    assert page.has("plain calls", "destination", '"../temp"', "path not allowed", "/tree/workspace/contents/temp")
    assert page.has("badge note", "simulated by contract")
    assert page.has("origin", "task")
    assert page.text.index("accepted") < page.text.index("Checklist") < page.text.index("Plan")
    assert page.text.index("Start state") < page.text.index("Attempt 1")


# data is never markup --------------------------------------------------------------------------------

TEMPLATES = [html_page, lambda run, **_: html_part(run)]
TAGS = {template: Page(template(nasty_run("x"))).tags | {"details", "summary", "pre", "ul"} for template in TEMPLATES}
ATTACK = "</style></summary><script src=//x>alert(1)</script><img src=x onerror=y>\" onload=z ' {{ 7*7 }} {% raw %}"


@pytest.mark.parametrize("template", TEMPLATES)
@given(text=st.text(max_size=60) | st.text("<>&\"'/= {}%\x1b\u202esrconid", max_size=60))
def test_no_tag_and_no_attribute_comes_from_data(template, text):
    run = nasty_run(text + ATTACK)
    run["supposed_state"] = {
        "paths": [],
        "state": {text: text, ATTACK: {text: ATTACK}},
        "notes": [note("unclear", text + ATTACK)],
    }
    run["checklist"] = [{"id": "i", "description": text, "check": ATTACK + text}]
    call = {"kind": "chosen", "from": "result", "path": "", "rung": text + ATTACK}
    run["attempts"][0]["origins"] = {f"{text}{ATTACK}-1": {f"/{text}": [call]}}
    drawn = template({**run, "title": text}, title=text + ATTACK) if template is html_page else template(run)
    page = Page(drawn)
    assert page.tags <= TAGS[template]
    allowed = {"class", "lang", "charset", "http-equiv", "content", "name", "open"}
    assert {name for name, _ in page.attributes} <= allowed
    assert not any(value == "x" or value == "z" for _, value in page.attributes)
    assert printable(page.text)
    assert "{{ 7*7 }}" in page.text
    drawn.encode()


def test_a_page_loads_nothing():
    drawn = run_shipped("calendar")
    page = Page(drawn)
    assert not page.tags & {"script", "link", "img", "iframe", "base", "form", "a"}
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'; img-src data:") in page.attributes
    assert "url(" not in drawn
    assert "@import" not in drawn
    assert "://" not in drawn


def test_turns_follow_each_other_and_an_unfinished_one_is_shown():
    open_turn = PageTurn(
        {"attempts": [{"number": 1, "steps": [{"call": {"id": "c", "name": "look", "args": {}}}]}]}, "Look"
    )
    page = Page(html_page(RUN, PageTurn(RUN, "Second task", note="at noon"), open_turn))
    assert page.has("turn", "Turn 1", "Turn 2: task", "Second task", "at noon", "Turn 3", "waiting for look …")
    assert "not finished" in page.text


def test_run_and_history_write_the_same_page(tmp_path, capsys):
    case = "examples/files/file-the-report.yaml"
    saved, first, second = (str(tmp_path / name) for name in ("runs.sqlite", "a.html", "b.html"))
    assert main(["run", case, "--save", saved, "--html", first]) == 0
    assert main(["history", saved, "file-the-report", "--html", second]) == 0
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page == (tmp_path / "b.html").read_text(encoding="utf-8")
    assert Page(page).has("verdict good", "accepted, 3 of 3", "UTC")
    assert Page(page).has("plain changes", "tree:"), "the start state stands in the checkpoints"
    assert main(["demo", "--html", first]) == 0
    capsys.readouterr()
