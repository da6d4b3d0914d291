"""The suite that judges derived milestones: the changes that it makes to a plan."""

from __future__ import annotations

import pytest

pytest.importorskip("scipy")
pytest.importorskip("rouge_score")

from evals.suites import milestones


def test_changes_of_a_plan_are_made_where_they_can_be():
    look, write = ({"name": name, "args": {"id": 1}, "patch": patch} for name, patch in (("a", []), ("b", [{}])))
    other = {"name": "c", "args": {"id": 5}, "patch": [{}]}
    made = dict(milestones.mutate([[look, write]], [other, look], "seed", 1))
    assert {*made} <= {*milestones.KINDS}
    assert [call["name"] for call in made["each look twice"][0]] == ["a", "a", "b"]
    assert made["a failing attempt before"][0][0]["name"] == "no_such_tool"
    assert milestones.write(other) == "c(id=5)"
