"""What a verdict says of the branches of contracts that a plan rests on, and how it is shown."""

from __future__ import annotations

from typing import Any

from gecko_graph.display.rows import build_step
from gecko_graph.models.formatting import source_of
from gecko_graph.nodes.checks import mark

FILLED = {"rung": "model", "invented": True, "places": {"/price": "not known"}}


def step(number=1, **more):
    made = {"status": "ok", "result": {"price": 1}, "patch": [], "rung": "contract", "simulated": True, "passed": []}
    return {"v": 1, "call": {"id": f"c{number}", "name": "t", "args": {}}, "outcome": {**made, **more}}


def marked(*steps):
    verdict: Any = {"items": []}
    return mark(verdict, steps, [])


def test_calls_are_counted_by_the_branch_that_they_rest_on():
    learned = [step(), step(evidence="established"), step(evidence="established"), step(evidence="proposed")]
    others = [step(filled=FILLED), step(invented=True, rung="schema"), step(status="error"), step(simulated=False)]
    verdict = marked(*learned, *others)
    assert verdict["rests_on"] == {"written": 1, "established": 2, "proposed": 1, "unknown": 2}
    assert "rests_on" not in marked(step(), step(invented=True))


def test_a_filled_part_is_shown():
    row, _ = build_step(step(filled=FILLED, evidence="established"), {}, None)
    assert (row.note, row.meant) == ("simulated by contract, established; /price by model", "warn")
    assert source_of(step(filled=FILLED)["outcome"]) == "by contract, made up: /price"
