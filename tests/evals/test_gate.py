"""Forward execution beside the rehearsal and a plain loop, without P and without Q: the suite."""

from __future__ import annotations

import pytest

from evals.suites.gate import ARMS, PAPER, Gate, lenient, without_q
from gecko_graph import GeckoContext
from gecko_graph.models.node import NodeScope, silent
from gecko_graph.values.notes import notes_of
from tests import shop
from tests.evals.kept import kept_cases


@pytest.mark.slow
def test_the_truth_is_refused_by_no_arm(run, tmp_path, official, shared_data, capsys):
    assert run(Gate, "--limit", 1, "--data", shared_data) == 0
    made = {case["id"]: case["values"] for case in kept_cases(tmp_path)}
    assert {name.split("@")[1] for name in made} == set(ARMS)
    assert all(values["valid"] and not values["failed"] for values in made.values())
    told = capsys.readouterr().out
    assert all(words in told for words, _ in PAPER.values())


@pytest.mark.parametrize(
    ("p", "q", "status", "refused"),
    [(True, True, "error", False), (False, True, "error", True), (False, False, "ok", False)],
)
def test_without_p_a_call_that_it_refuses_runs_into_the_tool_s_own_error(p, q, status, refused):
    outcome = {"status": "error", "result": "closed", "patch": [], "rung": "contract", "simulated": True, "passed": []}
    proposal = {"call": {"id": "a", "name": "sell", "args": {"item": "pen"}}, "outcome": outcome}
    state = {"task": "Sell a pen", "conversation": [], "task_state": {}, "proposals": [proposal]}
    scope = NodeScope(GeckoContext(), silent, lambda role: False)
    (after,) = lenient(state, scope, toolkit=shop.toolkit(), p=p, q=q)["proposals"]
    assert after["outcome"]["status"] == status
    assert bool(notes_of(after["outcome"], "refused")) is refused


def test_without_q_nothing_is_left_of_what_results_must_fulfil():
    bare = without_q(shop.toolkit())
    assert not bare.invariants
    assert not any(tool.contract.data.get("ensures") for tool in bare)
    assert bare["sell"].contract.data["requires"]
