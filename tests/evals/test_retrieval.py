"""The suite `retrieval`: what its queries and catalogues are made of, and a small run beside plain bm25s."""

from __future__ import annotations

import gzip
import json

import pytest

pytest.importorskip("bm25s", reason="the extra `retrieval` is not installed")

from evals.suites.retrieval import HELD_OUT, Retrieval, half_of, measure_speed, read_bfcl, read_documents, read_turns
from gecko_graph import ToolSpec


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

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "T", "version": "1"},
    "paths": {
        "/parcels": {
            "get": {"operationId": "a1", "summary": "Find parcels", "description": "Find parcels. By weight."}
        },
        "/bills": {
            "get": {"operationId": "a2", "summary": "List all"},
            "delete": {"operationId": "a3", "summary": "List all", "description": "Away with them."},
            "post": {"operationId": "a1_2", "description": "Pay."},
        },
    },
}


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    (folder / "openapi").mkdir(parents=True)
    lines = "\n".join(json.dumps(task) for task in TASKS)
    (folder / "bfcl_tasks.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (folder / "openapi" / "t.json").write_text(json.dumps(DOCUMENT))
    return folder


def test_bfcl_s_tools_are_distinct_and_its_choices_are_the_queries(data):
    catalogue = read_bfcl(data / "bfcl_tasks.jsonl.gz")
    assert [tool.name for tool in catalogue.tools] == ["weather.getRain", "sell", "get_snow", "other"]
    assert catalogue.tools[1].description == "Sell a house."
    assert [(query.text, query.right) for query in catalogue.queries] == [
        ("rain in the city today?", ("weather.getRain",)),
        ("Sell the house, then get rain", ("sell", "weather.getRain")),
    ]
    assert catalogue.search("ours", "rain in the city today?")[0] == "weather.getRain"
    assert catalogue.search("plain", "quantum") == []


def test_a_summary_is_a_query_and_nowhere_in_what_is_searched(data):
    catalogue = read_documents([data / "openapi" / "t.json"])
    assert [(query.text, query.right) for query in catalogue.queries] == [("Find parcels", ("a1",))]
    assert "2 summaries that several have are no queries" in catalogue.notes[0]
    descriptions = {tool.name: tool.description for tool in catalogue.tools}
    assert descriptions == {"a1": ". By weight.", "a2": "", "a3": "Away with them.", "a1_2": "Pay."}
    assert "Find parcels" not in catalogue.raw[0]


def test_the_run_has_recall_and_times_by_method(data, run, capsys):
    assert run(Retrieval, "--data", data, "--size", "200") in (0, 1)
    shown = capsys.readouterr().out
    assert "| BFCL, all | held out | ToolIndex, weights chosen on the other half |" in shown
    assert "| BFCL, all | chosen on | bm25s on the raw text |" in shown
    assert "chosen on the other half: Weights(" in shown
    assert "from the cache" in shown


def test_times_are_of_as_many_tools_as_asked():
    times = measure_speed([ToolSpec(name="a", description="b")], ["b", "c"], 30)
    assert len(times["queries"]) == 2
    assert times["indexed"] >= 0


def test_what_other_tasks_taught_helps_with_people_s_turns(shared_data):
    catalogue = read_turns(shared_data)
    taught = catalogue.lessons(0)
    asked = [query for query in catalogue.queries if half_of(query, 0) == HELD_OUT]
    assert not {query.unit for query in asked} & {
        query.unit for query in catalogue.queries if half_of(query, 0) != HELD_OUT
    }
    found = {
        method: sum({*query.right} <= {*catalogue.search(method, query.text, taught=taught)} for query in asked)
        for method in ("ours", "taught")
    }
    assert found["taught"] >= found["ours"] + len(asked) / 25
