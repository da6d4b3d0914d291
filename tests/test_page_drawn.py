"""Pages as Chromium draws them: readable (WCAG AA) and no wider than the window, from a phone's width on."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph.conversation.result import build_report, read_conversation
from gecko_graph.display import html_page
from gecko_graph.display.page import conversations_page
from gecko_graph.scenario import play, shipped
from tests.browser import browser  # noqa: F401
from tests.runs_to_show import RUN, nasty_run

LONG = "x" * 300


def asked():
    """A run that waits for a decision, with names and values that do not break by themselves."""
    text = f"Changes, by contract:\n```\norders > {LONG}: new {LONG}\n```\nNo way back."
    action = {"name": LONG, "args": {LONG: LONG}, "description": text}
    return {**nasty_run(LONG), "asked": [action]}


def report():
    pytest.importorskip("scipy.optimize")
    from tests.phone import played

    records = [read_conversation(played("home-safely", route)).record for route in ("good", "bad")]
    records[1]["messages"][0]["text"] = LONG
    records = [{**record, "trial": number} for number, record in enumerate(records)]
    return conversations_page(build_report(records), records, title=LONG)


def demo():
    scenario = shipped("files")
    return html_page(
        *play(scenario, scenario.gecko(checkpointer=InMemorySaver()), thread_id="x"), start_state=scenario.state
    )


@pytest.mark.parametrize("page", [demo, report, lambda: html_page(RUN), lambda: html_page(asked(), title=LONG)])
def test_a_page_can_be_read_at_every_width_in_both_themes(page, browser, tmp_path):  # noqa: F811
    file = tmp_path / "page.html"
    file.write_text(page(), encoding="utf-8")
    assert browser.look(file.as_uri()) == []
    assert browser.faults == []
