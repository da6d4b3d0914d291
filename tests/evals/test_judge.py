"""Table 2: given attempts, judged by rule or by a model, with real and with simulated tools."""

from __future__ import annotations

import json

import pytest

from evals.__main__ import main
from gecko_graph.models.recorded import RecordedModel

pytestmark = pytest.mark.usefixtures("official")


@pytest.fixture
def few(shared_data, tmp_path):
    """The recorded data with the base tasks 2 and 29 alone."""
    import gzip

    folder = tmp_path / "data"
    folder.mkdir()
    for name, key in (("bfcl_multiturn_tasks", "id"), ("bfcl_multiturn_recorded", "task_id")):
        with gzip.open(shared_data / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            kept = [line for line in lines if json.loads(line)[key] in ("multi_turn_base_2", "multi_turn_base_29")]
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(kept)
    return folder


def judge(few, tmp_path, *words):
    out = tmp_path / "out"
    code = main(["judge", "--data", str(few), "--out", str(out), *words])
    lines = [json.loads(line) for line in (out / "cases.jsonl").read_text().splitlines()]
    return code, {line["id"]: line for line in lines if line["kind"] == "case"}


def test_the_rule_judge_agrees_with_the_official_checker(few, tmp_path, capsys):
    code, records = judge(few, tmp_path)
    out = capsys.readouterr().out
    assert code == 0
    assert "Table 2: task success and failure, real tools" in out
    assert "Table 2: task success and failure, simulated tools" in out
    assert "96.7 %" in out
    assert "no accuracy of the method" in out
    assert {record["status"] for record in records.values()} == {"done"}
    real = [record for record in records.values() if record["tools"] == "real"]
    assert {record["facts"]["succeeds"] for record in real} == {True, False}
    assert all(record["values"]["judged"] == record["facts"]["succeeds"] for record in real)
    assert all(set(record["values"]["rungs"]) <= {"python"} for record in real)


def test_contracts_simulate_the_file_system_as_it_is(few, tmp_path):
    _, records = judge(few, tmp_path, "--tools", "simulated", "--only", "multi_turn_base_2:ground*")
    truth = records["multi_turn_base_2:ground truth:simulated"]
    assert truth["values"]["judged"]
    assert truth["values"]["rungs"].keys() == {"contract"}


def test_without_contracts_the_schema_makes_things_up_and_is_found_out(few, tmp_path):
    code, records = judge(few, tmp_path, "--tools", "simulated", "--limit", "1", "--without-contracts")
    assert code == 0
    assert all(set(record["values"]["rungs"]) <= {"schema"} for record in records.values())
    assert not any(record["values"]["judged"] for record in records.values())


@pytest.mark.parametrize("word", ["success", "failed"])
def test_a_model_judges_by_a_checklist_of_its_own(few, tmp_path, monkeypatch, word, capsys):
    said = {
        "checklist": [{"items": [{"description": "the user's wish is done"}]}],
        "judge": [{"items": [{"id": "item-1", "status": word, "reason": "so"}]}],
    }
    monkeypatch.setattr("evals.harness.options.patient_model", lambda name, **knobs: RecordedModel(turns=[said] * 9))
    code, records = judge(few, tmp_path, "--tools", "real", "--limit", "1", "--role-model", "judge=any:judge")
    assert code == 0
    assert "judge any:judge" in capsys.readouterr().out
    assert {record["values"]["judged"] for record in records.values()} == {word == "success"}
    assert all(set(record["values"]["usage"]) == {"checklist", "judge"} for record in records.values())
