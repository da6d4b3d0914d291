"""BFCL single-turn: right answers, recorded calls, a model that learns from feedback, the official evaluator's word."""

from __future__ import annotations

import gzip
import json
import sys
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals import bfcl
from evals.bfcl import package
from evals.bfcl.single import (
    CATEGORIES,
    IRRELEVANT,
    Checker,
    Task,
    Words,
    chosen,
    folder_name,
    of_plan,
    official_result,
    recorded_case,
    right_calls,
    tasks_of,
    write_results,
)
from evals.bfcl.single_worker import CheckerFailed
from evals.harness.options import EvalError
from evals.suites.bfcl_single_turn import SUITE, UNANSWERABLE
from gecko_graph.testing import recorded


@pytest.fixture(scope="module")
def official():
    """The official evaluator; the test is skipped where its package is not installed."""
    try:
        return Checker()
    except EvalError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def calls_file(shared_data):
    return shared_data / "bfcl_calls.jsonl.gz"


def records_of(folder: Path) -> dict[str, dict]:
    lines = [json.loads(line) for line in (folder / "cases.jsonl").read_text().splitlines()]
    return {line["id"]: line for line in lines if line["kind"] == "case"}


def rows_of(path: Path, step: int) -> list[dict]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in islice(lines, 0, None, step)]


def category_of(name: str) -> str:
    return name.rpartition("_")[0]


def task(*functions, answers, category="simple_python"):
    return Task(f"{category}_0", category, [{"role": "user", "content": "Do it."}], functions, answers)


def function(name="f", **properties):
    return {"name": name, "parameters": {"type": "dict", "properties": properties, "required": []}}


# right answers as calls


def test_of_right_values_the_first_is_taken_that_the_schema_allows():
    tool = function(unit={"type": "string", "enum": ["metre"]}, n={"type": "integer"}, odd={"type": "integer"})
    answer = {"f": {"unit": ["Metre", "metre"], "n": ["", 3], "odd": ["three", ""]}}
    assert right_calls(task(tool, answers=[answer])) == [{"call": "f", "args": {"unit": "metre", "n": 3}}]


def test_a_right_value_that_no_schema_allows_is_given_where_it_must_be():
    answer = {"f": {"unit": ["Metre"], "unknown": ["x", ""], "n": [2]}}
    tool = function(unit={"type": "string", "enum": ["metre"]}, n={"type": "integer"})
    assert right_calls(task(tool, answers=[answer])) == [{"call": "f", "args": {"unit": "Metre", "n": 2}}]


def test_members_of_objects_are_lists_of_right_values():
    tool = function(place={"type": "dict", "properties": {}}, legs={"type": "array", "items": {"type": "dict"}})
    answer = {
        "f": {"place": [{"city": ["Rome", "Roma"], "zip": ["", 1]}], "legs": [[{"a": [1]}, {"a": [2], "b": [""]}]]}
    }
    (call,) = right_calls(task(tool, answers=[answer]))
    assert call["args"] == {"place": {"city": "Rome", "zip": 1}, "legs": [{"a": 1}, {"a": 2}]}


def test_a_required_argument_may_rightly_be_empty():
    tool = {"name": "f", "parameters": {"type": "dict", "properties": {"a": {"type": "string"}}, "required": ["a"]}}
    assert right_calls(task(tool, answers=[{"f": {"a": [""]}}])) == [{"call": "f", "args": {"a": ""}}]


def test_categories_are_official_names():
    assert chosen("parallel,simple_python") == ("simple_python", "parallel")
    assert chosen("") == chosen("single_turn") == CATEGORIES
    with pytest.raises(EvalError, match="simple_cobol: the single-turn categories are simple_python"):
        chosen("simple_cobol")


def test_the_command_finds_the_suite():
    assert bfcl.suite_of(["simple_python", "live_irrelevance"]) is SUITE


# the official format


def test_a_plan_is_written_as_a_model_in_function_calling_mode_leaves_it():
    plan = [{"id": "1", "name": "math.hypot", "args": {"x": 4, "é": [1.5, None]}}]
    assert of_plan(plan, answer="Done.") == [{"math.hypot": '{"x": 4, "é": [1.5, null]}'}]
    assert of_plan([], answer="Done.") == "Done."


@settings(max_examples=40)
@given(st.lists(st.tuples(st.text(), st.dictionaries(st.text(), st.none() | st.integers() | st.text()))))
def test_calls_are_read_back_as_they_were(calls):
    written_down = official_result(calls, text="")
    assert [(name, json.loads(args)) for each in written_down or [] for name, args in each.items()] == calls


@given(st.text(), st.text())
def test_a_folder_s_name_is_safe_and_the_evaluator_s(planner, model):
    name = folder_name("gecko-graph", planner, model)
    assert name.startswith("gecko-graph")
    assert not set(name) & set("_/\\: ")
    assert Path(name).name == name


def test_result_files_lie_where_the_evaluator_looks(tmp_path):
    write_results(
        tmp_path, "m", {"multiple": {"multiple_0": "no"}, "live_simple": {"live_simple_0-0-0": [{"f": "{}"}]}}
    )
    assert (
        tmp_path / "m/non_live/BFCL_v4_multiple_result.json"
    ).read_text() == '{"id": "multiple_0", "result": "no"}\n'
    live = json.loads((tmp_path / "m/live/BFCL_v4_live_simple_result.json").read_text())
    assert live == {"id": "live_simple_0-0-0", "result": [{"f": "{}"}]}


# the official evaluator


def test_verdicts_are_those_that_were_recorded(official, calls_file):
    rows = rows_of(calls_file, step=40)
    assert len(rows) == 505
    for row in rows:
        calls = [{"call": call["name"], "args": call["arguments"]} for call in row["calls"]]
        found = official.check(category_of(row["task_id"]), row["task_id"], Words(calls, row.get("raw", "")).result)
        assert found.valid == row["official"]["valid"], row
        if row["label"] != "NO_CALL":
            assert found.error_type == (row["official"]["error_type"] or "")


@pytest.mark.parametrize("category", CATEGORIES)
def test_right_answers_are_officially_valid(official, category):
    for each in islice(tasks_of(category), 25):
        calls = right_calls(each)
        assert bool(calls) == (category not in IRRELEVANT)
        assert official.check(category, each.id, Words(calls, "No.").result).valid


def test_some_tasks_take_no_answer(official):
    tasks = {each.id: each for category in ("live_simple", "live_multiple") for each in tasks_of(category)}
    for name in UNANSWERABLE:
        assert not official.check(category_of(name), name, Words(right_calls(tasks[name]), "").result).valid
    record = tasks["live_simple_112-68-0"]
    empty = {**right_calls(record)[0]["args"], **{name: [] for name in record.functions[0]["parameters"]["required"]}}
    assert not official.check("live_simple", record.id, Words([{"call": "record", "args": empty}], "").result).valid


def test_where_no_tool_fits_any_call_is_wrong(official):
    found = official.check("irrelevance", "irrelevance_0", [{"determine_body_mass_index": "{}"}])
    assert (found.valid, found.error_type) == (False, "irrelevance_error:decoder_success")
    assert official.check("irrelevance", "irrelevance_0", "There is no tool for that.").valid


def test_nothing_that_is_stood_in_for_leaks(official):
    official.check("irrelevance", "irrelevance_0", "No.")
    assert "bfcl_eval.constants.model_config" not in sys.modules
    assert not [name for name, module in sys.modules.items() if type(module).__name__ == "StandIn"]


def test_what_the_evaluator_raises_is_the_case_s_failure(official):
    with pytest.raises(CheckerFailed, match="KeyError"):
        official.check("multiple", "multiple_9999", "")
    assert official.check("irrelevance", "irrelevance_0", "").valid


# whole runs


def test_ground_truth_is_valid_from_task_to_score_file(official, run, tmp_path):
    assert run(SUITE, "--category", ",".join(CATEGORIES), "--limit", 20) == 0
    records = records_of(tmp_path / "out")
    assert len(records) == 20
    assert all(each["values"]["valid"] or each["values"]["refused"] for each in records.values())
    assert {each["values"]["judged"] for each in records.values()} == {"nobody"}
    files = list((tmp_path / "out").rglob("*_result.json"))
    assert sum(len(path.read_text().splitlines()) for path in files) == 20


def test_a_right_answer_that_its_schema_forbids_is_told(official, run, tmp_path, capsys):
    assert run(SUITE, "--category", "live_multiple", "--only", "live_multiple_947-197-0") == 0
    (record,) = records_of(tmp_path / "out").values()
    assert record["values"]["planned"]
    assert not record["values"]["valid"]
    assert "Officially valid answers that rehearsal lost" in capsys.readouterr().out


def test_recorded_calls_speak_and_are_judged_as_they_were(official, run, tmp_path, calls_file):
    words = ["--planner", f"recorded:{calls_file}", "--only", "*@Qwen_Qwen3-8B-FC,*@uiuc-convai_CoALM-8B"]
    assert run(SUITE, "--category", "live_simple,parallel", "--limit", 6, *words) == 0
    records = records_of(tmp_path / "out")
    assert len(records) == 12
    assert all(each["values"]["planned"] == each["facts"]["recorded"] for each in records.values())
    assert {path.name for path in (tmp_path / "out/official/result").iterdir()} == {
        "gecko-graph-Qwen-Qwen3-8B-FC",
        "gecko-graph-uiuc-convai-CoALM-8B",
    }


def speaks(monkeypatch, **roles):
    """Every live model says what is written down here."""
    monkeypatch.setattr("evals.harness.options.patient_model", lambda name, **_: recorded(**roles))


WRONG = {"call": "triangle_properties_get", "args": {"side1": 5, "side2": 4, "side3": 4}}
RIGHT = {"call": "triangle_properties_get", "args": {"side1": 5, "side2": 4, "side3": 3}}
HELPERS = {
    "validator": [{"problems": []}, {"problems": []}],
    "simulator": [{"status": "ok", "result": {"area": 6}, "patch": []}] * 2,
    "checklist": [{"items": [{"description": "the triangle's third side is 3"}]}],
    "bootstrapper": [{"domain": {}, "runtime_state": {}}],
    "judge": [
        {
            "items": [{"id": "item-1", "status": "failed", "reason": "a side is wrong"}],
            "feedback": "Read the sides again.",
        },
        {"items": [{"id": "item-1", "status": "success"}]},
    ],
}


def test_a_model_that_learns_from_feedback_ends_valid(official, run, tmp_path, monkeypatch):
    attempts = [[WRONG, {"say": "Done."}], [RIGHT, {"say": "Done."}]]
    speaks(monkeypatch, planner=attempts, **HELPERS)
    words = ["--only", "multiple_0", "--planner", "openai:fake", "--model", "openai:fake", "--max-retries", 2]
    assert run(SUITE, "--category", "multiple", *words) == 0
    values = records_of(tmp_path / "out")["multiple_0"]["values"]
    assert (values["valid"], values["verdict"], values["judged"], values["attempts"]) == (True, "accepted", "model", 2)
    assert values["result"] == [{"triangle_properties.get": json.dumps(RIGHT["args"])}]
    assert not values["first"]
    assert "planned" not in values


def test_recorded_calls_alone_have_one_attempt_that_a_model_judges(official, run, tmp_path, monkeypatch):
    file = tmp_path / "calls.jsonl"
    calls = [{"name": "triangle_properties.get", "arguments": WRONG["args"]}]
    file.write_text(json.dumps({"task_id": "multiple_0", "model": "m", "calls": calls}) + "\n")
    speaks(monkeypatch, **HELPERS)
    assert run(SUITE, "--category", "multiple", "--planner", f"recorded:{file}", "--model", "openai:fake") == 0
    values = records_of(tmp_path / "out")["multiple_0@m"]["values"]
    assert (values["verdict"], values["judged"], values["attempts"]) == ("failed", "model", 1)
    assert "planner" not in values["usage"]


def test_users_mistakes_say_what_to_do(official, run, calls_file, capsys, monkeypatch):
    assert run(SUITE, "--category", "simple_cobol") == 2
    assert run(SUITE, "--planner", f"recorded:{calls_file}", "--only", "*@nobody") == 2
    assert run(SUITE, "--category", "irrelevance", "--planner", f"recorded:{calls_file}") == 2
    told = capsys.readouterr().err
    assert "simple_cobol" in told
    assert "has no calls for irrelevance" in told
    assert "patterns are of ids or groups; try --list" in told


def test_a_row_that_is_no_answer_is_told(official, run, tmp_path, capsys):
    file = tmp_path / "calls.jsonl"
    for broken in ({"task_id": "multiple_0", "model": "m"}, {"model": "m"}, ["multiple_0"]):
        file.write_text(json.dumps(broken) + "\n")
        assert run(SUITE, "--category", "multiple", "--planner", f"recorded:{file}") == 2
        assert "a row is no recorded answer" in capsys.readouterr().err


def test_names_that_the_model_saw_with_underscores_become_the_tool_s():
    row = {"model": "m", "name_style": "underscore", "calls": [{"name": "math_hypot", "arguments": {"x": 4}}]}
    _, words = recorded_case(task(function("math.hypot"), answers=[]), row).data
    assert words.result == [{"math.hypot": '{"x": 4}'}]


def test_without_the_package_it_says_how_to_get_it(run, capsys, monkeypatch):
    def missing():
        raise EvalError(f"the official package is not installed: {package.INSTALL}")

    monkeypatch.setattr(package, "version", missing)
    assert run(SUITE, "--category", "irrelevance") == 2
    assert "pip install --no-deps bfcl-eval==" in capsys.readouterr().err
