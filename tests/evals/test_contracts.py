"""Recorded file-system calls answered by contract: the suite."""

from __future__ import annotations

import gzip
import json

import pytest

from evals.suites import contracts
from evals.suites.contracts import Contracts
from tests.evals.kept import kept_cases

STATE = {"tree": {"a": {"type": "directory", "contents": {}}}, "cwd": ["a"]}


def test_recorded_calls_come_to_the_same(run, tmp_path, shared_data, capsys):
    assert run(Contracts) == 0
    calls = [call for case in kept_cases(tmp_path) for call in case["values"]["calls"]]
    assert (len(calls), sum(case["values"]["raised"] for case in kept_cases(tmp_path))) == (1510, 25)
    assert sum(call["error"] for call in calls) == 380
    assert not [call["difference"] for call in calls if call["difference"]]
    assert "| mv | 89 | 29 | 100.0 %" in capsys.readouterr().out


def test_a_difference_is_counted_and_listed(run, tmp_path, capsys):
    step = {"class": contracts.CLASS, "call": {"name": "pwd", "args": {}}, "patch": [], "raised": None}
    task = {"id": "t", "initial_state": {contracts.CLASS: STATE}}
    task["turns"] = [[{**step, "result": {"current_working_directory": "/b"}}]]
    data = tmp_path / "data"
    data.mkdir()
    for name in contracts.FILES:
        (data / name).write_bytes(b"")
    (data / contracts.FILES[0]).write_bytes(gzip.compress(json.dumps(task).encode()))
    assert run(Contracts, "--data", data) == 1
    told = capsys.readouterr().out
    assert "t: pwd({}): {'current_working_directory': '/a'}, not {'current_working_directory': '/b'}" in told


def test_a_suite_that_asks_no_model_offers_none(run, capsys):
    with pytest.raises(SystemExit):
        run(Contracts, "--model", "openai:m")
    assert "unrecognized arguments: --model" in capsys.readouterr().err


def test_without_the_recordings_it_says_where_to_get_them(run, tmp_path, capsys):
    assert run(Contracts, "--data", tmp_path) == 2
    assert f"no data set {contracts.FILES[0]}" in capsys.readouterr().err
