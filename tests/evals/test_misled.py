"""Misled rehearsals: what the data must hold, and a judge in the place of the recorded one."""

from __future__ import annotations

import pytest

from evals.suites.misled import Misled
from gecko_graph.models.recorded import RecordedModel
from tests.evals.kept import kept_cases


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
