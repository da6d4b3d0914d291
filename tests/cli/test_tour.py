"""A newcomer's tour: a real document through every command, and mistakes with files (test_mistakes.py: with words)."""

import json
from pathlib import Path

import pytest

from gecko_graph.models import factory
from gecko_graph.models.recorded import RecordedModel
from tests.cli.bad_files import write_bad_files
from tests.cli.command import ROOT

DOCUMENTS = ROOT.parent / "shared" / "data" / "openapi"
CALL = {"call": "FetchLookupRateLimit", "args": {"Field": "caller_name", "Bucket": "b-1"}}
ITEMS = {"checklist": [{"items": [{"description": "it is found"}]}], "validator": [{"problems": []}] * 5}
SUPPOSED = {"bootstrapper": [{"domain": {}, "runtime_state": {}}], "simulator": []}


def test_a_real_document_goes_through_every_command(run, tmp_path, monkeypatch):
    document = DOCUMENTS / "twilio_lookups_v2.json"
    if not document.is_file():
        pytest.skip("the shared documents are not here")
    judge = [{"items": [{"id": "item-1", "status": "success"}]}] * 2
    model = RecordedModel(turns=[{**ITEMS, **SUPPOSED, "planner": [[CALL, {"say": "Found."}]], "judge": judge}])
    monkeypatch.setattr(factory, "chat_model", lambda given, **_: model if isinstance(given, str) else given)
    monkeypatch.chdir(tmp_path)
    task = ("--task", "Find it", "--model", "openai:any", "--save", "runs.sqlite")
    for words in (
        ("tools", document),
        ("convert", document, "-o", "again.yaml"),
        ("tools", "again.yaml"),
        ("run", document, *task, "--thread", "a", "--html", "run.html", "--json", "run.json"),
        ("run", "again.yaml", *task, "--thread", "b", "--only", CALL["call"]),
        ("run", document, *task, "--thread", "a", "--resume"),
        ("history", "runs.sqlite"),
        ("history", "runs.sqlite", "a", "--html", "history.html"),
    ):
        code, out, err = run(*words)
        assert (code, "Traceback" in out + err) == (0, False), (words, err)
    (turn,) = json.loads(Path("run.json").read_text())["turns"]
    (step,) = turn["rehearsal"]["attempts"][0]["steps"]
    assert (step["outcome"]["status"], step["outcome"]["rung"]) == ("ok", "schema")
    assert "Found." in Path("run.html").read_text()


NOWHERE = ("--task", "Hi", "--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1")
BAD = {
    "run empty.yaml": (2, "empty.yaml", "empty"),
    "run bytes.yaml": (2, "bytes.yaml:1:1", "UTF-8", "0xff"),
    "demo files --yes": (2, "--yes", "'files'"),
    "run twice.yaml": (2, "twice.yaml:2:1", "'a'"),
    "run broken.yaml": (2, "broken.yaml:2:1", "YAML"),
    "run later.yaml": (2, "later.yaml", "version"),
    "run notools.yaml": (2, "notools.yaml", "tools", "missing"),
    "run key.yaml": (2, "turns[0].chekclist", "did you mean checklist?"),
    "run check.yaml": (2, "turns[0].checklist[0].check", "`state.`"),
    "run outside.yaml": (2, "outside.yaml", "../api.yaml", "--allow-outside"),
    "run unrecorded.yaml": (2, "turns[0].replies", "planner", "--model"),
    "tools swagger.yaml": (2, "swagger.yaml", "1.2", "2.0"),
    "tools contract.yaml": (2, "contract.yaml#/paths/~1pens/get/x-contract", "listPens", "requires[0].check"),
    "tools api.yaml --only gone": (2, "'gone'", "listPens"),
    "tools https://127.0.0.1:9/api.json": (2, "https://127.0.0.1:9/api.json", "--allow-remote"),
    "run api.yaml NOWHERE --state half.json": (2, "half.json:1:2", "JSON"),
    "demo nothing": (2, "'nothing'", "files, airline, calendar"),
    "completion tcsh": (2, "'tcsh'", "'bash', 'zsh', 'fish'"),
    "run refused.yaml": (1, "failed, 0 of 1", "its check does not hold"),
    "demo calendar": (1, "needs the user", "Which of them shall I invite?"),
}


@pytest.mark.parametrize("line", BAD)
def test_a_bad_command_line_ends_with_its_exit_code_and_names_what_to_mend(run, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    write_bad_files(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    words = [word for each in line.split() for word in (NOWHERE if each == "NOWHERE" else [each])]
    code, out, err = run(*words)
    expected, *names = BAD[line]
    assert code == expected
    shown = err if code == 2 else out
    assert [name for name in names if name not in shown] == []
    assert "Traceback" not in out + err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
