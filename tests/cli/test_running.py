"""demo and run: what they show, their exit codes, and that nothing real is done before the yes."""

import json
import subprocess

import pytest

from gecko_graph.cli import main
from gecko_graph.scenario import examples, shipped
from gecko_graph.scenario.examples import service_module
from tests import forked
from tests.cli.command import CALENDAR, COMMAND, ENVIRONMENT, SHOP


def test_demo_is_plain_lines_in_a_pipe_and_a_tree_on_a_terminal(run, monkeypatch):
    code, out, err = run("demo")
    assert (code, err, "\x1b" in out) == (0, "", False)
    assert all(str(path) in run("demo", "--list")[1] for path in examples().values())
    lines = out.splitlines()
    assert "[1] error    mv: " in out
    assert "[1] verdict  failed, 0 of 3" in lines
    assert "[2] verdict  accepted, 3 of 3" in lines
    assert "result       accepted, 3 of 3 (attempt 2 of 2)" in lines
    assert [line for line in lines if line.startswith("plan")][-1] == "plan         4. ls()"
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "NO_COLOR": ""}.items():
        monkeypatch.setenv(name, value)
    code, out, _ = run("demo")
    assert (code, out.count("accepted, 3 of 3")) == (0, 2)
    assert all(part in out for part in ("├── ", "\x1b[?25h")), "the cursor is shown again"


# run ---------------------------------------------------------------------------------------------


def test_json_to_the_standard_output_leaves_the_lines_to_stderr(run):
    code, out, err = run("run", CALENDAR, "--json", "-")
    assert code == 1
    assert json.loads(out)["turns"][0]["rehearsal"]["verdict"]["status"] == "needs_user"
    assert "[1] verdict  needs the user" in err


def test_a_scenario_with_its_given_state_and_checklist_is_shown_saved_and_written_as_json(run, tmp_path):
    (tmp_path / "out.json").write_text("{}")  # an earlier result may be replaced
    code, out, err = run("run", SHOP, "--json", tmp_path / "out.json", "--save", tmp_path / "runs.sqlite")
    assert (code, err) == (0, "")
    assert "result       accepted, 4 of 4" in out
    before = out[: out.index("[1] attempt")]
    assert '[-] given    customer: {"name": "Lena Brandt", "credit": 40.0}' in before
    assert "[-] expected exactly one order was placed" in before
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["start_state"] == shipped("shop").state
    assert written["scenario"] == "order-within-credit"
    (turn,) = written["turns"]
    assert turn["task_state"]["customer"]["credit"] == 8.6
    assert turn["rehearsal"]["verdict"]["status"] == "accepted"
    assert turn["rehearsal"]["checklist"][0]["description"] == "exactly one order was placed"
    assert [message["type"] for message in turn["messages"]] == ["human", "ai"]
    history = run("history", tmp_path / "runs.sqlite", "order-within-credit")[1]
    assert before.splitlines()[1:] == history.splitlines()[2 : len(before.splitlines()) + 1]


def test_a_reader_that_goes_while_the_run_goes_on_is_no_error():
    words = [*COMMAND, "run", SHOP]
    with forked.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as child:
        assert child.stdout.readline().startswith(b"[-] task ")
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 141


# demo order ----------------------------------------------------------------------------------------------------------


OrderService = service_module()["OrderService"]


@pytest.fixture
def services(monkeypatch):
    """The services that the command starts, with their logs as they were at the end."""
    ended = []
    leave = OrderService.__exit__

    def note(self, *error):
        ended.append((self.log(), self.state()))
        leave(self, *error)

    monkeypatch.setattr(OrderService, "__exit__", note)
    return ended


def test_in_a_pipe_the_preview_is_shown_and_nothing_runs(capsys, services):
    assert main(["demo", "order"]) == 0
    shown = capsys.readouterr().out
    assert "--yes" in shown
    assert "Step 5 of 5, refundOrder" in shown
    assert "order_id: its value is the real order_id in the result of step 3 (placeOrder)" in shown
    ((log, state),) = services
    assert log == []
    assert state["orders"] == {}


def test_with_yes_the_service_comes_to_the_previewed_state(capsys, services):
    assert main(["demo", "order", "--yes"]) == 0
    shown = capsys.readouterr().out
    assert "carried out  done: 5 real calls, no drift" in shown
    assert "equals the service's database" in shown
    ((log, state),) = services
    assert [entry["operation"] for entry in log] == ["place_order", "place_order", "refund_order"]
    assert log[2]["args"]["order_id"] == "A-1001"
    assert state["balance"] == 89.8


def test_a_service_that_does_something_else_is_told_apart(capsys, services, monkeypatch):
    monkeypatch.setattr(OrderService, "state", lambda self: {"balance": 0.0})
    assert main(["demo", "order", "--yes"]) == 1
    assert "differs from the service's database" in capsys.readouterr().out
