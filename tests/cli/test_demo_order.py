"""`gecko-graph demo order`: nothing real before the yes, and what was previewed is what happens."""

from __future__ import annotations

import pytest

from gecko_graph.cli import main
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
    assert "Step 5 of 5, refundOrder" in shown
    assert "$.order_id: its value is the real $.order_id in the result of step 3 (placeOrder)" in shown
    ((log, state),) = services
    assert log == []
    assert state["orders"] == {}


def test_with_yes_the_service_comes_to_the_previewed_state(capsys, services):
    assert main(["demo", "order", "--yes"]) == 0
    shown = capsys.readouterr().out
    assert "carried out  done: 5 real calls, no drift" in shown
    assert "equals the service's database" in shown
    ((log, state),) = services
    assert [entry["operation"] for entry in log] == ["place_order", "place_order", "refund_order"]
    assert log[2]["args"]["order_id"] == "A-1001"
    assert state["balance"] == 89.8


def test_a_service_that_does_something_else_is_told_apart(capsys, services, monkeypatch):
    monkeypatch.setattr(OrderService, "state", lambda self: {"balance": 0.0})
    assert main(["demo", "order", "--yes"]) == 1
    assert "differs from the service's database" in capsys.readouterr().out
