"""`gecko-graph demo order`: nothing real before the yes, and what was previewed is what happens."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from gecko_graph.cli import main, order
from gecko_graph.demo.service import OrderService


@pytest.fixture
def services(monkeypatch):
    """The services that the command starts, with their logs as they were at the end."""
    ended = []
    leave = OrderService.__exit__

    def note(self, *error):
        ended.append((self.log(), self.state()))
        leave(self, *error)

    monkeypatch.setattr(OrderService, "__exit__", note)
    return ended


def test_in_a_pipe_the_preview_is_shown_and_nothing_runs(capsys, services):
    assert main(["demo", "order"]) == 0
    shown = capsys.readouterr().out
    assert "--yes" in shown
    assert "5. ask" in shown
    assert "order_id: the order_id that the service gives" in shown
    ((log, state),) = services
    assert log == []
    assert state["orders"] == {}


def test_with_yes_the_service_comes_to_the_previewed_state(capsys, services):
    assert main(["demo", "order", "--yes"]) == 0
    shown = capsys.readouterr().out
    assert "0 differences from the preview" in shown
    assert "equals the service's database" in shown
    ((log, state),) = services
    assert [entry["operation"] for entry in log] == ["place_order", "place_order", "refund_order"]
    assert log[2]["args"]["order_id"] == "A-1001"
    assert state["balance"] == 89.8


def test_a_service_that_does_something_else_is_told_apart(capsys, services, monkeypatch):
    monkeypatch.setattr(OrderService, "state", lambda self: {"balance": 0.0})
    assert main(["demo", "order", "--yes"]) == 1
    assert "differs from the service's database" in capsys.readouterr().out


@pytest.mark.parametrize(("typed", "answer"), [("y", True), ("", False)])
def test_on_a_terminal_it_says_what_can_be_answered(monkeypatch, typed, answer):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: typed)
    console = Console(file=io.StringIO(), force_terminal=True)
    assert order._is_approved(console) is answer
    assert "y/N" in console.file.getvalue()


def test_ctrl_d_at_the_question_is_a_no(monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", raise_end)
    assert order._is_approved(Console(file=io.StringIO(), force_terminal=True)) is False


def raise_end():
    raise EOFError
