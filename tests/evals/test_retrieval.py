"""The suite `retrieval`: what its queries and catalogues are made of, and a small run beside plain bm25s."""

from __future__ import annotations

import gzip
import json

import pytest

pytest.importorskip("bm25s", reason="the extra `retrieval` is not installed")

from evals.suites.retrieval import Retrieval


def function(name, about):
    properties = {"cityName": {"type": "string"}}
    return {"name": name, "description": about, "parameters": {"type": "dict", "properties": properties}}


TASKS = [
    {
        "task_id": "live_multiple_1",
        "category": "live_multiple",
        "question": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "rain in the city today?"}],
        "functions": [function("weather.getRain", "Rain."), function("sell", "Sell a house.")],
        "possible_answer": [{"weather.getRain": {"cityName": ["Rome"]}}],
    },
    {
        "task_id": "parallel_multiple_2",
        "category": "parallel_multiple",
        "question": [{"role": "user", "content": "Sell the house, then get rain"}],
        "functions": [function("sell", "Another text."), function("get_snow", "Snow.")],
        "possible_answer": [{"sell": {}}, {"weather.getRain": {}}, {"sell": {}}],
    },
    {
        "task_id": "simple_3",
        "category": "simple",
        "question": [{"role": "user", "content": "x"}],
        "functions": [function("other", "Other.")],
        "possible_answer": [{"other": {}}],
    },
]


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    lines = "\n".join(json.dumps(task) for task in TASKS)
    (folder / "bfcl_tasks.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return folder


def test_the_run_has_recall_by_method(data, run, capsys):
    assert run(Retrieval, "--data", data) in (0, 1)
    shown = capsys.readouterr().out
    assert "| BFCL, all | held out | ToolIndex, weights chosen on the other half |" in shown
    assert "| BFCL, all | chosen on | bm25s on the raw text |" in shown
    assert "chosen on the other half: Weights(" in shown
