"""`run` with real calls, and `do`: refused before a model is asked, shown, asked about, carried out, each call once."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from gecko_graph.cli.inputs import Screen
from gecko_graph.models import factory
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.scenario.examples import service_module
from gecko_graph.values.documents import read_document
from tests.cli.command import COMMAND, ENVIRONMENT, ROOT, SHOP, mistake
from tests.cli.real_calls import KEY, ORDER, THREAD, done, free_port, on_terminal, real, start, wait_for

OrderService = service_module()["OrderService"]
WRITES = ["place_order", "place_order", "refund_order"]


@pytest.fixture
def service(monkeypatch):
    monkeypatch.setattr(OrderService, "key", KEY)
    monkeypatch.setenv("ORDER_KEY", KEY)
    with OrderService() as running:
        yield running


@pytest.fixture
def typed(monkeypatch):
    """Let somebody sit at the terminal and type these lines."""

    def lines(*answers):
        left = iter(answers)
        monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
        monkeypatch.setattr(Screen, "is_terminal", property(lambda self: True))
        monkeypatch.setattr("builtins.input", lambda: next(left))

    return lines


@pytest.fixture
def saved(run, service, tmp_path):
    """A run that waits for a decision."""
    file = tmp_path / "runs.sqlite"
    assert run(*real(service, "--save", file))[0] == 4
    return file


URL = "http://127.0.0.1:9"
REFUSED = {
    f"--server {URL} --auth ApiKey=env:ORDER_KEY": (f"server: nothing answers at {URL}",),
    "--server SERVICE": ("findItems needs a credential", "--auth SCHEME=env:NAME", "ApiKey"),
    "--server SERVICE --auth ApiKey=env:NO_KEY": ("environment variable NO_KEY", "ApiKey", "not set"),
    "--server SERVICE --auth Apikey=env:ORDER_KEY": ("'Apikey'", "did you mean ApiKey?"),
    f"--server SERVICE --auth ApiKey={KEY}": ("--auth: write SCHEME=env:NAME",),
    "--server localhost:80 --auth ApiKey=env:ORDER_KEY": ("server: expected an address", "'localhost:80'"),
    "--set reads=real": ("names its server, or --server URL",),
    "--reads real --auth ApiKey=env:ORDER_KEY": ("--server URL",),
    "--yes": ("--yes", "--server URL"),
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_missing_is_said_before_anything_is_asked_or_done(run, service, line):
    message = mistake(run("run", ORDER, *line.replace("SERVICE", service.url).split()))
    assert [part for part in REFUSED[line] if part not in message] == []
    assert KEY not in message


def test_without_a_terminal_it_stops_and_do_carries_it_out_from_any_folder(run, service, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    for file in ORDER.parent.iterdir():
        shutil.copy(file, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    code, out, err = run(*real(service, "--save", "runs.sqlite", file=ORDER.name))
    assert (code, err, service.log()) == (4, "", [])
    assert "Step 1 of 3, placeOrder: it changes something" in out
    assert "Returns, by contract:" in out
    assert f"gecko-graph do runs.sqlite {THREAD}" in out
    monkeypatch.chdir(tmp_path)
    code, out, err = run("do", "here/runs.sqlite", THREAD, "--yes")
    assert (code, err, done(service)) == (0, "", WRITES)
    assert "carried out  done: 3 real calls, no drift" in out
    assert run("do", "runs.sqlite", THREAD, "--yes")[0] == 0, "the folder is its own now"
    assert done(service) == WRITES
    assert KEY.encode() not in b"".join(file.read_bytes() for file in (tmp_path / "here").iterdir())
    assert KEY not in out


def test_a_run_that_nobody_has_seen_is_approved_only_without_made_up_values(run, service, tmp_path):
    case = read_document(ORDER)
    case["turns"][0]["replies"]["planner"] = [
        [{"call": "placeOrder", "args": {"sku": "TEA", "quantity": 17}}, {"say": "."}]
    ]
    case |= {"tools": read_document(ORDER.parent / "order.openapi.yaml")}
    case["turns"][0] |= {"user": "Order something for tea", "checklist": [{"check": "len(state.orders) == 1"}]}
    file, runs = tmp_path / "case.json", tmp_path / "runs.sqlite"
    file.write_text(json.dumps(case))
    code, out, _ = run(*real(service, "--yes", "--save", runs, file=file))
    assert (code, service.log()) == (4, []), out
    assert "made up" in out
    assert run("do", runs, THREAD, "--yes")[0] == 0
    assert done(service) == ["place_order"]
    service.reset()
    assert run(*real(service, "--yes"))[0] == 0, "a plan without any is"


@pytest.mark.parametrize(("answer", "code", "calls"), [("y", 0, WRITES), ("n", 1, []), ("", 4, [])])
def test_a_person_says_yes_no_or_nothing(run, saved, service, typed, answer, code, calls):
    typed(answer)
    assert run("do", saved, THREAD)[0] == code
    assert done(service) == calls


def test_who_says_it_in_words_is_shown_another_plan(run, service, typed, tmp_path):
    less = [{"call": "placeOrder", "args": {"sku": "TEA", "quantity": 1}}, {"say": "Only the tea."}]
    case = read_document(ORDER)
    case["turns"][0]["replies"]["planner"].append(less)
    case |= {"tools": read_document(ORDER.parent / "order.openapi.yaml"), "limits": {"max_retries": 0}}
    case["turns"][0]["checklist"] = [{"check": "len(state.orders) > 0"}]
    file = tmp_path / "case.json"
    file.write_text(json.dumps(case))
    typed("only the tea, please", "yes")
    code, out, _ = run(*real(service, file=file))
    assert (code, done(service)) == (0, ["place_order"]), out
    assert out.count("for a decision") == 2
    assert "The plan, " not in out, "it stands above already"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("keys", [True, False])
def test_killed_in_a_call_the_same_command_makes_each_once(run, service, typed, tmp_path, monkeypatch, after, keys):
    document = ORDER.parent / "order.openapi.yaml"
    text = document.read_text() if keys else re.sub(r".*parameters/Key.*\n", "", document.read_text())
    (tmp_path / document.name).write_text(text)
    file = tmp_path / ORDER.name
    shutil.copy(ORDER, file)
    assert run(*real(service, "--save", tmp_path / "runs.sqlite", file=file))[0] == 4
    command = ("do", tmp_path / "runs.sqlite", THREAD, "--yes")
    process, answer = [], service.answer

    def deadly(request, body, key):
        if process and len(service.log()) == 1 and request == "POST /orders":
            result = answer(request, body, key) if after else None
            os.kill(process.pop().pid, signal.SIGKILL)
            return result
        return answer(request, body, key)

    monkeypatch.setattr(service, "answer", deadly)
    with start(*command) as child:
        process.append(child)
        child.communicate(timeout=120)
    assert child.returncode == -signal.SIGKILL
    assert len(service.log()) == 1 + after
    code, out, _ = run(*command)
    if not keys:
        assert (code, len(service.log())) == (4, 1 + after), "--yes does not say what became of it"
        assert "in doubt" in out
        assert "it is not known whether it took effect" in out
        typed("what?", f"happened {json.dumps(service.log()[1]['result'])}" if after else "make_now")
        code, out, _ = run(*command)
    assert (code, done(service)) == (0, WRITES), out
    assert service.state()["balance"] == 89.8


def test_two_at_once_make_each_call_once(run, saved, service):
    both = [start("do", saved, THREAD, "--yes") for _ in range(2)]
    told = [(process.communicate(timeout=240)[0], process.returncode) for process in both]
    assert {code for _, code in told} <= {0, 2}, told
    assert "Traceback" not in "".join(text for text, _ in told)
    assert run("do", saved, THREAD, "--yes")[0] == 0
    assert done(service) == WRITES


def test_what_cannot_be_carried_out_is_said_with_what_can(run, service, saved, tmp_path):
    other = tmp_path / "other.sqlite"
    run("run", SHOP, "--save", other, "--thread", "monday")
    message = mistake(run("do", other, "monday"))
    assert all(part in message for part in ("rehearsed without real calls", "--server URL"))
    assert "gecko-graph do" in mistake(run("run", ORDER, "--save", saved, "--resume"))
    for command in ("do", "undo"):
        assert f"it has '{THREAD}'" in mistake(run(command, saved, "monday"))
        assert "no such file" in mistake(run(command, tmp_path / "gone.sqlite", "x"))
    code, _, err = run("undo", saved, THREAD, "--yes")
    assert (code, service.log()) == (2, []), "it carries out no plan that waits"
    assert f"gecko-graph do {saved} {THREAD}" in err
    assert run("do", saved, THREAD, "--yes")[0] == 0
    assert done(service) == WRITES


SUPPOSED = {"balance": 500.0, "items": {"TEA": {"name": "tea", "price": 2.0, "stock": 40}}, "orders": {}}
SAID = {
    "bootstrapper": [{"domain": SUPPOSED, "runtime_state": {}}],
    "checklist": [{"items": [{"description": "tea is ordered"}]}],
    "planner": [[{"call": "placeOrder", "args": {"sku": "TEA", "quantity": 17}}, {"say": "Done."}]],
    "simulator": [{"status": "ok", "result": {"id": 1}, "patch": [{"op": "add", "path": "/order", "value": 17}]}],
    "judge": [{"items": [{"id": "item-1", "status": "success"}]}],
    "validator": [{"problems": []}] * 3,
}
ARGS = {"sku": {"type": "string"}, "quantity": {"type": "integer"}}
DICTS = [
    {"name": "placeOrder", "description": "Order", "inputSchema": {"type": "object", "properties": ARGS}},
    {"name": "find", "inputSchema": {"type": "object", "properties": {}}, "annotations": {"readOnlyHint": True}},
]


def test_after_made_up_values_the_next_step_is_said_and_the_supposed_state_written(run, tmp_path, monkeypatch):
    model = RecordedModel(turns=[SAID])
    monkeypatch.setattr(factory, "chat_model", lambda given, **_: model if isinstance(given, str) else given)
    task = ("--task", "Order some tea", "--model", "openai:any")
    code, out, _ = run("run", ORDER.parent / "order.openapi.yaml", *task, "--write-state", tmp_path / "state.yaml")
    assert (code, read_document(tmp_path / "state.yaml")) == (0, SUPPOSED)
    hint = out[out.index("hint  ") :]
    for part in ("made-up values", "findItems", "--reads real --server URL", "--state FILE"):
        assert part in hint
    again = ("run", ORDER.parent / "order.openapi.yaml", *task, "--state", tmp_path / "state.yaml")
    assert "given    balance: 500.0" in run(*again)[1]
    (tmp_path / "tools.json").write_text(json.dumps(DICTS))
    out = run("run", tmp_path / "tools.json", *task)[1]
    assert "read for real" in out


def test_the_session_in_the_docs_comes_to_real_calls(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "real-tools.md").read_text("utf-8")
    (session,) = re.findall(r"^```console\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    export, serve, *commands = [part.splitlines() for part in session.removeprefix("$ ").split("\n$ ")]
    name, _, key = export[0].removeprefix("export ").partition("=")
    port = free_port()
    env = {**ENVIRONMENT, name: key, "COLUMNS": "300", "TERM": "xterm"}
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    started = [sys.executable, *serve[0].replace("8765", port).removesuffix(" &").split()[1:]]
    with subprocess.Popen(started, env=env, stderr=subprocess.DEVNULL) as service:
        try:
            wait_for(port)
            for line, *expected in commands:
                words = line.replace("8765", port).split()[1:]
                typed = [
                    each.rpartition(":")[2].strip() for each in expected if each.startswith("carry this out?")
                ] or [""]
                code, shown = on_terminal([*COMMAND, *words], typed, env=env, cwd=tmp_path)
                assert code == (4 if "" in typed else 0), shown
                flat = " ".join(shown.split())
                assert [each for each in expected if " ".join(each.split()) not in flat] == [], flat
                assert key not in shown
        finally:
            service.kill()


def test_undo_takes_back_what_can_be_and_says_what_cannot(run, service, tmp_path):
    file, runs = tmp_path / "case.yaml", tmp_path / "runs.sqlite"
    document = read_document(ORDER.parent / "order.openapi.yaml")
    document["x-state"] = {"type": "object", "properties": {"orders": {"x-journal": True}}}
    case = read_document(ORDER) | {"tools": document}
    case["limits"] = {**case.get("limits", {}), "undo_s": 5}
    file.write_text(json.dumps(case))
    run(*real(service, "--save", runs, file=file))
    code, out, _ = run("do", runs, THREAD, "--yes")
    assert code == 0
    assert f"to undo it: gecko-graph undo {runs} {THREAD}" in " ".join(out.split())
    assert "way back" in out
    start = read_document(ORDER)["state"]
    assert run("undo", runs, THREAD)[0] == 4, "nobody is there to approve"
    assert done(service) == WRITES
    code, out, err = run("undo", runs, THREAD, "--yes")
    assert (code, err) == (0, ""), out
    flat = " ".join(out.split())
    assert 'refundOrder({"order_id": "A-1001", "amount": 5}): No way back' in flat
    assert 'placeOrder({"sku": "TEA", "quantity": 1}): Undone by cancelOrder(order_id="A-1002").' in flat
    assert 'placeOrder({"sku": "MUG", "quantity": 2}): No way back' in flat, "its refund stays"
    assert service.state()["items"]["TEA"] == start["items"]["TEA"]
    written = done(service)
    code, out, _ = run("undo", runs, THREAD, "--yes")
    assert (code, done(service)) == (1, written), "an undo is no turn to undo"
    assert "No way back" in out
    assert run("history", runs, THREAD)[0] == 0
