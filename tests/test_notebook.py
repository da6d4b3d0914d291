"""Notebooks: the shipped ones in a real Jupyter kernel, and what `watch` shows there, on a terminal and in a pipe."""

from __future__ import annotations

import io
import warnings
from html.parser import HTMLParser
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from gecko_graph.display import awatch, watch
from tests import desk

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "examples" / "rehearse.ipynb"
ACT = ROOT / "examples" / "act.ipynb"


class Part(HTMLParser):
    """The number of turns, and the text."""

    def __init__(self, page):
        super().__init__()
        self.turns, self.text = 0, ""
        self.feed(page)
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag, attributes):
        self.turns += ("class", "turn") in attributes

    def handle_data(self, data):
        self.text += data + " "


@pytest.fixture(scope="module")
def executed():
    """The code cells of both notebooks after a kernel has run them, each by names of its own; two cells are ours."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook, act = (nbformat.read(path, as_version=4) for path in (NOTEBOOK, ACT))
    more = ["format_run(run)", "print(repr(str(format_run(run))[:9]), repr(format_run(run)) != '')", "%reset -f"]
    notebook.cells += [*map(nbformat.v4.new_code_cell, more), *act.cells]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Jupyter's own
        patch.setenv("PYTHONPATH", str(ROOT))
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    at = [cell.source for cell in cells].index(more[2])
    return cells[:at], cells[at + 1 :]


def printed_by(cell):
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


def shown(cell):
    """What a cell displays beside what it prints."""
    return [output.data for output in cell.outputs if output.output_type in ("display_data", "execute_result")]


def test_the_notebook_shows_each_run_once_in_a_real_kernel(executed):
    watched, printed, table, text = (executed[0][number] for number in (2, 4, -2, -1))
    for cell in (watched, table):
        (data,) = shown(cell)
        assert Part(data["text/html"]).turns == 1
        assert "insufficient_credit" in data["text/html"]
        assert data["text/plain"].startswith("Attempt 1")
        assert printed_by(cell) == "", "nothing beside it"
    assert shown(printed) == []
    assert "Attempt 1" in printed_by(printed)
    assert printed_by(text) == "'Attempt 1' True\n"


def test_the_agent_s_notebook_shows_preview_execution_and_drift_in_a_real_kernel(executed):
    asked, acted, asked_again, acted_again = (shown(executed[1][number]) for number in (2, 4, 6, 7))
    for data in (asked, acted, asked_again, acted_again):
        assert len(data) == 1, "one view a run"
        assert Part(data[0]["text/html"]).turns == 1
    preview = Part(asked[0]["text/html"]).text
    assert "accepted, 3 of 3" in preview
    assert "3 calls wait for a decision" in preview
    assert "order_id: its value is the real order_id" in preview
    done = Part(acted[0]["text/html"]).text
    assert "Carried out done: 5 real calls, no drift" in done
    assert "A-1001" in done
    assert "from state" not in done, "the rehearsal is of the cell before"
    assert "1 call waits for a decision" in Part(asked_again[0]["text/html"]).text
    assert "predicted → real 96.0 → 77.4" in Part(acted_again[0]["text/html"]).text
    assert "drift value /balance" in " ".join(acted_again[0]["text/plain"].split())


def ask_first(state, tray, paper):
    return desk.put(state, tray, paper) if interrupt("may I?") == "yes" else None


@pytest.mark.parametrize("terminal", [True, False])
async def test_watch_returns_what_invoke_returns(monkeypatch, terminal):
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
    make = lambda: desk.gecko(desk.RIGHT, tools=desk.toolkit(put=ask_first), checkpointer=InMemorySaver())  # noqa: E731
    told, watched, awaited = make(), make(), make()
    thread = {"configurable": {"thread_id": "t"}}
    for given in (desk.inputs(), Command(resume="yes")):
        expected = told.invoke(given, thread)
        seen = [watch(watched, given, thread), await awatch(awaited, given, thread, durability="sync")]
        for run in seen:
            assert run.keys() == expected.keys()
            assert run.get("rehearsal") == expected.get("rehearsal")
            assert [each.value for each in run.get("__interrupt__", ())] == [
                each.value for each in expected.get("__interrupt__", ())
            ]
        assert ("accepted, 2 of 2" in out.getvalue()) is ("rehearsal" in expected)
    assert watch(watched, None, thread, interrupt_before=["finish"])["rehearsal"] == expected["rehearsal"]
