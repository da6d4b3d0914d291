"""Rows of the real calls of agents that exist already."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain")

from evals.reality.killing import Fate, Killed, KillingSaver
from gecko_graph import GeckoError
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
@pytest.mark.parametrize("late", [0, 1, 2])
def test_killed_once_the_call_has_settled_it_has_its_row_and_is_not_made_again(mode, embedded, late):
    whole, settled, rows = Fate(), [], []
    given = {"mode": mode, "embedded": embedded}
    said = [calls(pay("a", 30)), "Paid."]
    start(Bank(), KillingSaver(whole), *said, **given, observe=lambda row: settled.append(whole.count)).invoke(
        TASK, THREAD
    )
    # the last write before the row is the claim's result
    fate, bank = Fate(settled[0] + late, after=not late), Bank()
    saver = KillingSaver(fate)
    with pytest.raises((Killed, GeckoError)):
        start(bank, saver, *said, **given, observe=rows.append).invoke(TASK, THREAD)
    assert len(rows) == bool(late)
    fate.kill_at = 0
    start(bank, saver, "Paid.", **given, observe=rows.append).invoke(None, THREAD)
    assert bank.calls == [PAID]
    assert [each["tool"] for each in rows] in (["transfer"], ["transfer"] * 2)
    assert all(row == rows[0] for row in rows)
