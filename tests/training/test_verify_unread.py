"""What was not read is never kept: rows whose calls or tools are written otherwise are judged, open, or named."""

import gzip
import json
from pathlib import Path

import pytest

from gecko_graph import GeckoError, verify_samples
from tests.training.test_call_texts import CALL, FORMS, TOOLS

SEAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "seal_tools_50.json.gz"
STRICT = [{"type": "function", "function": {"name": "take", "parameters": {"properties": {"item": {"enum": ["pen"]}}}}}]


def verify(said, tools, asked="An axe"):
    turns = [{"from": "human", "value": asked}, {"from": "gpt", "value": said}]
    try:
        (row,) = verify_samples([{"conversations": turns, **({"tools": json.dumps(tools)} if tools else {})}]).rows
    except GeckoError as error:
        return str(error), None
    return row["verdict"]["status"], row["label"]


@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_call_is_dropped_and_open_where_the_tools_are_unknown(form):
    assert verify(FORMS[form], STRICT) == ("drop", [CALL])
    if form != "a tool's name as key":  # which only tools tell
        assert verify(FORMS[form], None) == ("open", [CALL])
    assert verify(FORMS[form].replace("axe", "pen"), TOOLS)[0] == "open"  # whose count nobody has named


@pytest.mark.parametrize(
    "said",
    [
        '<tool_call>{"name": "take", "arguments": {"item": "axe"}}', '<tool_call>{"name": "take", "arguments": {"it',
        "[Take Things(item='axe')]", 'I call {"name": "take", "parameters": {"item": "axe"}}.', "[take('axe')]",
    ],
)  # fmt: skip
def test_a_row_whose_call_cannot_be_read_is_named(said):
    for tools in (STRICT, None):
        message, label = verify(said, tools)
        assert "nothing could be read" in message
        assert label is None


@pytest.mark.parametrize(
    "asked", ["api_list = [{'api_name': 'take', 'parameters': {}}]", 'You may call {"name": "take", "parameters": {}}']
)
def test_tools_of_a_prompt_that_were_not_read_leave_an_answer_without_calls_open(asked):
    assert verify("It is done.", None, asked)[0] == "open"
    assert verify("It is done.", None)[0] == "keep"


def test_tools_between_marks_in_a_prompt_are_read():
    prompt = f"Signatures are within <tools></tools> tags: <tools> {json.dumps(STRICT)} </tools>"
    turns = [{"from": "system", "value": prompt}, {"from": "human", "value": "An axe"}]
    said = {"from": "gpt", "value": FORMS["Hermes, Qwen"]}
    (row,) = verify_samples([{"conversations": [*turns, said]}]).rows
    assert row["verdict"]["status"] == "drop"
    assert [each["function"]["name"] for each in row["tools"]] == ["take"]


def test_older_calls_of_openai_are_read_with_their_results():
    made = {"role": "assistant", "content": None, "function_call": {"name": "take", "arguments": '{"item": "axe"}'}}
    result = {"role": "function", "name": "take", "content": "7"}
    row = {"messages": [{"role": "user", "content": "An axe"}, made, result], "functions": [STRICT[0]["function"]]}
    (found,) = verify_samples([row]).rows
    assert (found["verdict"]["status"], found["results"]) == ("drop", [7])


@pytest.mark.skipif(not SEAL.exists(), reason="the shared data are not beside the project")
def test_no_row_of_seal_tools_is_kept_unread():
    rows = json.loads(gzip.decompress(SEAL.read_bytes()))
    found = verify_samples(rows)
    assert dict(found.counts) == {"open": 50}
    assert all(row["label"] for row in found.rows)
