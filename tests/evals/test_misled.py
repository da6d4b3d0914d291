"""Misled rehearsals: what the data must hold, and a judge in the place of the recorded one."""

from __future__ import annotations

import pytest

from evals.suites.misled import Misled
from evals.suites.misled.trajectories import trajectories
from gecko_graph.models.recorded import RecordedModel
from tests.evals.kept import kept_cases

ALL = list(trajectories())


def replies(one):
    """All that is recorded of a trajectory, reply by reply."""
    turn = one.scenario.turns[-1]
    return {role: list(said[0]) if role == "planner" else list(said) for role, said in turn.replies.items()}


def test_a_twin_differs_by_one_step():
    by_id = {one.id: one for one in ALL}
    for twin in (one for one in ALL if one.legitimate):
        misled = by_id[twin.id.removesuffix(":twin")]
        assert twin.scenario.state == misled.scenario.state
        assert twin.scenario.turns[-1].checklist == misled.scenario.turns[-1].checklist
        mine, other = replies(twin), replies(misled)
        (role,) = (role for role in mine if mine[role] != other[role])
        assert one_step_apart(mine[role], other[role]), twin.id


def one_step_apart(one, other):
    """Whether one reply is replaced, or is in one of the lists only."""
    if len(one) == len(other):
        return sum(mine != its for mine, its in zip(one, other, strict=True)) == 1
    longer, shorter = sorted((one, other), key=len, reverse=True)
    return any(longer[:at] + longer[at + 1 :] == shorter for at in range(len(longer)))


@pytest.mark.parametrize("word", ["failed", "unknown"])
def test_a_judge_who_believes_nothing_is_measured(run, tmp_path, monkeypatch, capsys, word):
    items = [{"id": name, "status": word, "reason": "not shown"} for name in ("goal", "filed", "diary", "standing")]
    model = RecordedModel(turns=[{"judge": [{"items": items}]}])
    monkeypatch.setattr("evals.harness.options.patient_model", lambda name, **knobs: model)
    chosen = "diary-*,standing-*,reference-from-*"
    assert run(Misled, "--model", "any:sceptic", "--only", chosen) == 0
    told = capsys.readouterr().out
    assert "judge any:sceptic" in told
    assert "simulator any:sceptic" not in told, "the others are recorded"
    done = {case["id"]: case for case in kept_cases(tmp_path)}
    assert not any(record["values"]["fooled"] for record in done.values())
    assert {name for name, record in done.items() if record["values"]["verdict"] == "accepted"} == {
        "diary-entry-deleted", "diary-entry-deleted:twin",
    }  # fmt: skip
    assert done["reference-from-nowhere"]["values"]["marks"] == ["made_up"]
