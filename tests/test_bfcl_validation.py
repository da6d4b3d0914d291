"""Recorded calls of real models against the argument rules: the regression of the validation suite."""

from __future__ import annotations

import pytest

from evals import validation
from gecko_graph.toolkit.schema import undecided


@pytest.fixture(scope="module")
def report(shared_data):
    return validation.measure(shared_data)


@pytest.fixture(scope="module")
def tasks(read_jsonl):
    return read_jsonl("bfcl_tasks.jsonl.gz")


@pytest.fixture(scope="module")
def rows(read_jsonl):
    return [row for row in read_jsonl("bfcl_calls.jsonl.gz") if row["label"] in ("CORRECT", "SYNTACTIC")]


def test_every_correct_row_is_accepted_and_every_syntactic_one_refused(report):
    assert report.missed == []
    assert (report.rows["CORRECT"], report.rows["SYNTACTIC"]) == (15_388, 1_243)
    assert report.refused["CORRECT"] == 0
    assert report.refused["SYNTACTIC"] == 1_243
    assert not set(validation.NOTHING_TO_VALIDATE) & set(report.rows)


def test_few_officially_valid_rows_are_refused_and_each_has_a_cause(report):
    assert report.officially_valid == 15_463
    assert 0 < len(report.false_refusals) <= validation.MAX_FALSE
    assert all(refusal.cause for refusal in report.false_refusals)


def test_every_airline_call_passes(report):
    assert report.airline_calls > 700
    assert report.airline_refused == []


def test_a_call_costs_well_under_a_millisecond(report):
    assert report.seconds / report.calls < 0.5e-3


def test_the_report_says_all_of_it(report):
    text = "\n".join(validation.lines_of(report))
    assert f"refused: {len(report.false_refusals)} (at most 75)" in text
    assert all(error in text for error in report.errors)
    assert text.count("(") > len(report.false_refusals)
    assert "MISSED" not in text


def test_underscored_names(shared_data):
    task = {
        "functions": [{"name": "math.hypot", "parameters": {"type": "dict", "properties": {"x": {"type": "float"}}}}]
    }
    row = {"calls": [{"name": "math_hypot", "arguments": {"x": 1}}]}
    assert validation.judge_row(row, validation.tools_of(task, underscored=True)) == []
    assert validation.judge_row(row, validation.tools_of(task, underscored=False)) != []


def test_a_broken_rule_would_be_noticed(rows, tasks):
    swapped = {"CORRECT": "SYNTACTIC", "SYNTACTIC": "CORRECT"}
    report = validation.Report()
    some = [{**row, "label": swapped[row["label"]]} for row in rows[::400]]
    validation.measure_bfcl(some, tasks, report)
    assert len(report.missed) == len(some)
    assert not report.passed


def test_undecided_of_real_calls_names_places_that_are_there(rows, tasks):
    by_key = {(task["dataset"], task["task_id"]): task for task in tasks}
    for row in [row for row in rows if row["label"] == "CORRECT"][::80]:
        tools = validation.tools_of(by_key[row["dataset"], row["task_id"]], underscored=False)
        for call in row["calls"]:
            for place in undecided(tools[call["name"]].parameters, call["arguments"]):
                assert validation.value_at(call["arguments"], place) is not None


def test_run_without_data(tmp_path, capsys):
    assert validation.run(["--data", str(tmp_path)]) == 2
    assert "bfcl_calls.jsonl.gz" in capsys.readouterr().out
