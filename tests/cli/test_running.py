"""demo and run: what they show, and their exit codes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from gecko_graph.scenario import examples, shipped
from tests.cli.command import CALENDAR, COMMAND, ENVIRONMENT, FILES, SHOP, SHOP_API, mistake, process


def test_demo_in_a_pipe_is_plain_lines(tmp_path):
    done = process("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert "[1] error    mv: " in done.stdout
    assert "[1] verdict  failed, 0 of 3" in lines
    assert "[2] verdict  accepted, 3 of 3" in lines
    assert "result       accepted, 3 of 3 (attempt 2 of 2)" in lines
    assert [line for line in lines if line.startswith("plan")][-1] == "plan         4. ls()"


@pytest.mark.parametrize(("name", "code"), [("files", 0), ("shop", 0), ("calendar", 1)])
def test_demos_and_their_exit_codes(run, name, code):
    assert run("demo", name)[0] == code


def test_demo_calendar_ends_with_a_question(run):
    _, out, _ = run("demo", "calendar")
    assert "refused  listEvents: $.date: expected a date" in out
    assert "result       needs the user, 1 of 2" in out
    assert "asks         The design review ends at 14:30" in out


def test_demo_list(run):
    code, out, _ = run("demo", "--list")
    assert code == 0
    assert all(str(path) in out for path in examples().values())


def test_an_unknown_demo(run):
    message = mistake(run("demo", "shoes"))
    assert all(name in message for name in ("'shoes'", "files", "calendar", "shop"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a pseudo-terminal")
def test_demo_on_a_terminal_is_a_tree(tmp_path):
    import pty

    leader, follower = pty.openpty()
    environment = {**ENVIRONMENT, "TERM": "xterm-256color", "NO_COLOR": ""}
    child = subprocess.Popen([*COMMAND, "demo"], stdout=follower, stderr=follower, cwd=tmp_path, env=environment)
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(leader)
    assert child.wait(timeout=60) == 0
    text = shown.decode()
    assert "├── " in text
    assert "\x1b[?25h" in text, "the cursor is shown again"
    assert text.count("accepted, 3 of 3") == 2


# run ---------------------------------------------------------------------------------------------


def test_run_a_scenario_and_write_json(run, tmp_path):
    code, out, err = run("run", SHOP, "--json", tmp_path / "out.json")
    assert (code, err) == (0, "")
    assert "result       accepted, 4 of 4" in out
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["scenario"] == "order-within-credit"
    (turn,) = written["turns"]
    assert turn["task_state"]["customer"]["credit"] == 8.6
    assert turn["rehearsal"]["verdict"]["status"] == "accepted"
    assert [message["type"] for message in turn["messages"]] == ["human", "ai"]


def test_json_to_the_standard_output_leaves_the_lines_to_stderr(run):
    code, out, err = run("run", CALENDAR, "--json", "-")
    assert code == 1
    assert json.loads(out)["turns"][0]["rehearsal"]["verdict"]["status"] == "needs_user"
    assert "[1] verdict  needs the user" in err


def test_the_given_state_and_the_checklist_stand_before_the_first_attempt_and_in_the_json(run, tmp_path):
    _, out, _ = run("run", SHOP, "--json", tmp_path / "out.json", "--save", tmp_path / "runs.sqlite")
    before = out[: out.index("[1] attempt")]
    assert '[-] given    customer: {"name": "Lena Brandt", "credit": 40.0}' in before
    assert "[-] expected exactly one order was placed" in before
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["start_state"] == shipped("shop").state
    assert written["turns"][0]["rehearsal"]["checklist"][0]["description"] == "exactly one order was placed"
    history = run("history", tmp_path / "runs.sqlite", "order-within-credit")[1]
    assert before.splitlines()[1:] == history.splitlines()[2 : len(before.splitlines()) + 1]


def test_a_run_names_what_of_its_document_cannot_be_read(run, tmp_path):
    document = yaml.safe_load(Path(SHOP_API).read_text(encoding="utf-8"))
    for number in range(5):
        document["paths"][f"/broken{number}"] = {"get": {"operationId": f"b{number}", "parameters": [{"$ref": "#/no"}]}}
    (tmp_path / "api.yaml").write_text(yaml.safe_dump(document))
    case = yaml.safe_load(Path(SHOP).read_text(encoding="utf-8")) | {"tools": "api.yaml"}
    (tmp_path / "case.yaml").write_text(yaml.safe_dump(case))
    code, out, _ = run("run", tmp_path / "case.yaml")
    assert code == 0
    warnings = [line for line in out.splitlines() if line.startswith("warning ")]
    assert len(warnings) == 4
    assert "b0" in warnings[0]
    assert "2 more" in warnings[-1]
    assert "gecko-graph tools" in warnings[-1]


def test_run_with_a_knob(run):
    code, out, _ = run("run", FILES, "--set", "max_retries=0")
    assert code == 1
    assert "result       failed, 0 of 3 (attempt 1 of 1)" in out


@pytest.mark.slow
def test_a_reader_that_has_gone_and_an_encoding_that_is_poor_are_no_errors():
    reading, writing = os.pipe()
    os.close(reading)
    gone = subprocess.run(
        [*COMMAND, "tools", SHOP_API], stdout=writing, stderr=subprocess.PIPE, timeout=60, env=ENVIRONMENT, check=False
    )
    os.close(writing)
    assert (gone.returncode, gone.stderr) == (141, b"")
    poor = process("demo", "calendar", env=ENVIRONMENT | {"PYTHONIOENCODING": "ascii"})
    assert (poor.returncode, poor.stderr) == (1, "")
    assert poor.stdout.isascii()


def test_a_reader_that_goes_while_the_run_goes_on_is_no_error():
    words = [*COMMAND, "run", SHOP]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as child:
        assert child.stdout.readline().startswith(b"task ")
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 141


def test_a_state_that_is_no_object(run, tmp_path):
    (tmp_path / "state.json").write_text("[1]")
    words = ("run", SHOP_API, "--task", "Buy", "--model", "openai:x", "--state", tmp_path / "state.json")
    message = mistake(run(*words))
    assert all(part in message for part in ("state.json", "expected an object", "list"))
