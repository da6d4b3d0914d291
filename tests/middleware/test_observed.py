"""Rows of the real calls of agents that exist already."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain")

from evals.reality.killing import Fate, Killed, KillingSaver
from gecko_graph import GeckoError
from gecko_graph.real.claims import Claims
from tests.middleware.bank import Bank, calls, pay
from tests.middleware.test_claims import PAID, TASK, THREAD, start


@pytest.mark.parametrize(
    ("mode", "seen"), [("shadow", ["balance", "transfer"]), ("guard", ["balance", "transfer"]), ("hybrid", ["balance"])]
)
def test_each_mode_writes_what_it_really_calls_once(run, mode, seen):
    from langgraph.checkpoint.memory import InMemorySaver

    bank, rows = Bank(), []
    said = [calls(("a", "balance", {})), calls(pay("b", 30)), "Paid."]
    run(start(bank, InMemorySaver(), *said, mode=mode, observe=rows.append), TASK, THREAD)
    assert [row["tool"] for row in rows] == seen
    assert [call[0] for call in bank.calls] == seen
    assert rows[0]["before"] == {"balance": 100, "transfers": {}}
    if mode != "hybrid":
        assert rows[1]["shown"] == [{"name": "balance", "args": {}, "result": {"balance": 100}}]


@pytest.mark.parametrize("embedded", [False, True])
@pytest.mark.parametrize("mode", ["guard", "shadow"])
@pytest.mark.parametrize("late", [False, True])
def test_killed_once_the_call_has_settled_it_has_its_row_and_is_not_made_again(monkeypatch, mode, embedded, late):
    fate, bank, rows, settle = Fate(), Bank(), [], Claims.settle
    saver, given = KillingSaver(fate), {"mode": mode, "embedded": embedded}

    def settle_and_die(self, row, **fields):
        row = yield from settle(self, row, **fields)
        fate.kill_at = 1  # nothing more is written
        raise Killed

    def observe_and_die(row):
        rows.append(row)
        fate.kill_at = 1

    said = [calls(pay("a", 30)), "Paid."]
    with monkeypatch.context() as patch:
        if not late:
            patch.setattr(Claims, "settle", settle_and_die)
        agent = start(bank, saver, *said, **given, observe=observe_and_die)
        with pytest.raises((Killed, GeckoError)):
            agent.invoke(TASK, THREAD)
    assert len(rows) == late
    fate.kill_at = 0
    start(bank, saver, "Paid.", **given, observe=rows.append).invoke(None, THREAD)
    assert bank.calls == [PAID]
    assert [each["tool"] for each in rows] in (["transfer"], ["transfer"] * 2)
    assert all(row == rows[0] for row in rows)
