"""Rows of others become samples, and what is none is named with its reason."""

import json

import pytest

from gecko_graph import GeckoError
from gecko_graph.training.files import write_rows
from gecko_graph.training.formats import FORMATS
from gecko_graph.training.shapes import read_row, read_samples
from gecko_graph.values.rows import LARGEST, read_lines
from tests.training.shelf import ASKED, OPENAI, SHAPES, calling


def read(row, **more):
    return read_row(row, name="rows:1", source="rows:1", **more)


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_is_read(shape):
    (one,) = read(SHAPES[shape])
    assert one["label"] == [{"name": "add", "arguments": {"a": 3, "b": 4}}]
    assert one["messages"][-1]["role"] == "user"
    assert one["tools"][0]["function"]["name"] == "add"
    assert {rule["type"] for rule in one["tools"][0]["function"]["parameters"]["properties"].values()} == {"integer"}
    assert one.get("results") == ([7] if shape == "openai" else None)
    assert one.get("text") == ("Well." if shape == "hermes" else None)
    assert one.get("also") == SHAPES[shape].get("ground_truth")
    assert read(one) == [one]


def test_a_conversation_is_a_sample_for_each_message_of_the_assistant():
    answer = {"role": "assistant", "content": "7"}
    row = {**SHAPES["openai"], "messages": [*SHAPES["openai"]["messages"], answer]}
    first, last = read({**row, "state": {"x": 1}})
    assert (first["id"], last["id"]) == ("rows:1#1", "rows:1#2")
    assert (len(first["messages"]), len(last["messages"])) == (1, 3)
    assert (last["label"], last["text"], last["state"]) == ([], "7", {"x": 1})
    assert last["from"] == [{"row": "rows:1", "step": 2, "steps": 2}]
    (made,) = FORMATS["nemo-gym"](last)  # requests to the responses API
    kinds = [one.get("type", one.get("role")) for one in made["responses_create_params"]["input"]]
    assert (kinds, made["ground_truth"]) == (["user", "function_call", "function_call_output"], [])
    row = {"prompt": SHAPES["openai"]["messages"], "completion": [answer], "tools": OPENAI}
    assert [len(one["messages"]) for one in read(row)] == [3], "only the completion is a label"


def test_xlams_types_are_pythons():
    types = {"a": "List[int]", "b": "Dict[str, Any], optional"}
    rules = {key: {"type": kind, "description": ""} for key, kind in types.items()}
    (one,) = read({**SHAPES["xlam"], "tools": [{"name": "add", "parameters": rules}]})
    schema = one["tools"][0]["function"]["parameters"]
    assert [rule["type"] for rule in schema["properties"].values()] == ["array", "object"]
    assert schema["required"] == ["a"]


def test_bfcls_answers_are_in_a_second_file():
    row = {key: each for key, each in SHAPES["bfcl"].items() if key != "ground_truth"}
    (one,) = read(row, answers={"simple_1": [{"add": {"a": [3], "b": ["", 4]}}]})
    assert one["label"] == [{"name": "add", "arguments": {"a": 3}}]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"foo": 1}, "unknown shape"),
        ([1], "unknown shape"),
        ({"messages": [], "tools": []}, "no message"),
        ({"messages": [{"role": "tool", "content": "7"}]}, "before its call"),
        ({"messages": [ASKED, calling("[1]")]}, "no object"),
        ({"messages": [ASKED, calling("{")]}, "no JSON"),
        ({"messages": [ASKED, calling('{"a": NaN}')]}, "no JSON"),
        ({"messages": [{"role": "wizard"}]}, "role"),
        ({"conversations": [{"from": "wizard", "value": ""}]}, "unknown shape"),
        ({"conversations": [{"from": "function_call", "value": "{}"}], "tools": "[]"}, "name"),
        ({"query": "", "answers": "3", "tools": "[]"}, "no list"),
        ({"messages": [ASKED, calling({})], "tools": [3]}, "tool"),
        ({"messages": [ASKED, calling({})], "tools": "{"}, "no JSON"),
        ({"id": "x", "question": [[ASKED]], "function": []}, "file of answers"),
        ({"tools": [], "messages": [], "label": [{"name": "a"}], "results": []}, "0 results for 1"),
        ({"tools": [], "messages": [], "label": [], "state": 3}, "state"),
    ],
)
def test_what_cannot_be_used_has_a_reason(row, reason):
    with pytest.raises(ValueError, match=reason):
        read(row)


def test_bad_lines_are_named_and_the_others_read(tmp_path):
    file, bad = tmp_path / "rows.jsonl", []
    good = json.dumps(SHAPES["openai"]).encode()
    large = b'{"x": "' + b"a" * LARGEST + b'"}'
    file.write_bytes(b"\n".join([good, b"{", b'{"x": "\xff"}', b"", large, b"[" * 100_000, good]))
    assert [one["id"] for one in read_samples(file, bad)] == ["rows.jsonl:1", "rows.jsonl:7"]
    assert [one.where.rpartition(":")[2] for one in bad] == ["2", "3", "5", "6"]
    assert ["JSON" in bad[0].reason, "UTF-8" in bad[1].reason, "MB" in bad[2].reason] == [True] * 3


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz", "rows.parquet"])
def test_samples_are_the_same_in_every_file(tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="the extra `training` is not installed")
    samples = [read_row(row, name=f"{at}", source=at)[0] for at, row in enumerate(SHAPES.values())]
    samples[1] |= {"state": {"x": {"y": None}}, "goal": {"milestones": [{"id": "end"}]}, "results": [None]}
    assert write_rows(tmp_path / name, samples) == len(samples)
    assert list(read_samples(tmp_path / name, [])) == samples
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_json_list_is_rows_and_what_is_missing_is_told(tmp_path):
    (tmp_path / "rows.json").write_text(json.dumps([*SHAPES.values()]))
    assert len(list(read_samples(tmp_path / "rows.json", []))) == len(SHAPES)
    with pytest.raises(GeckoError, match="cannot be read"):
        list(read_lines(tmp_path / "none.jsonl"))
    (tmp_path / "cut.jsonl.gz").write_bytes(b"\x1f\x8b\x08")
    with pytest.raises(GeckoError, match="cannot be read"):
        list(read_lines(tmp_path / "cut.jsonl.gz"))


@pytest.mark.parametrize("to", ["openai", "trl", "sharegpt"])
def test_what_is_written_for_others_is_read_again(to):
    (one,) = read(SHAPES["openai"])
    (row,) = FORMATS[to](one)
    (again,) = read(row)
    assert [again[key] for key in ("label", "messages")] == [one[key] for key in ("label", "messages")]
    assert again["tools"][0]["function"]["name"] == "add"


def test_pairs_are_a_fixs_and_dropped_rows_are_not_trained_on():
    (one,) = read(SHAPES["openai"])
    fix = {**one, "verdict": {"status": "fix", "wrong": [{"name": "add", "arguments": {"a": 0}}]}}
    (pair,) = FORMATS["dpo"](fix)
    chosen, rejected = (pair[key][0]["tool_calls"][0]["function"]["arguments"] for key in ("chosen", "rejected"))
    assert (json.loads(chosen), json.loads(rejected)) == ({"a": 3, "b": 4}, {"a": 0})
    assert list(FORMATS["dpo"](one)) == []
    for to in FORMATS:
        assert list(FORMATS[to]({**one, "verdict": {"status": "drop"}})) == []
