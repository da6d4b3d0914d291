"""The command line: what it shows, what it says of mistakes, its exit codes; runs that are saved, killed, resumed."""

from __future__ import annotations

import http.server
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from gecko_graph import GeckoContext, GeckoError, RehearsalState
from gecko_graph.cli import build_parser, main
from gecko_graph.cli.asked import next_task, scenario_of
from gecko_graph.cli.running import exit_code
from gecko_graph.display.words import tell_verdict
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.scenario import examples, shipped

ROOT = Path(__file__).resolve().parents[1]
FILES, SHOP, CALENDAR = (str(examples()[name]) for name in ("files", "shop", "calendar"))
SHOP_API = str(ROOT / "examples" / "shop" / "shop.openapi.yaml")
COMMAND = [sys.executable, "-c", "import sys; from gecko_graph.cli import main; sys.exit(main())"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}


def process(*words, env=ENVIRONMENT, **options):
    return subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, timeout=120, env=env, check=False, **options
    )


@pytest.fixture
def run(capsys):
    """Run a command in this process: exit code, standard output, standard error."""

    def command(*words):
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def mistake(told):
    code, out, err = told
    assert code == 2
    assert out == ""
    assert err.startswith("gecko-graph: ")
    assert "Traceback" not in err
    return err.removeprefix("gecko-graph: ").strip()


# demo --------------------------------------------------------------------------------------------


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
    assert mistake(run("demo", "shoes")) == "no example is called 'shoes'; there are files, calendar, shop"


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
    assert turn["rehearsal"]["verdict"]["word"] == "accepted"
    assert [message["type"] for message in turn["messages"]] == ["human", "ai"]


def test_json_to_the_standard_output_leaves_the_lines_to_stderr(run):
    code, out, err = run("run", CALENDAR, "--json", "-")
    assert code == 1
    assert json.loads(out)["turns"][0]["rehearsal"]["verdict"]["word"] == "needs_user"
    assert "[1] verdict  needs the user" in err


def test_run_with_a_knob(run):
    code, out, _ = run("run", FILES, "--set", "max_retries=0")
    assert code == 1
    assert "result       failed, 0 of 3 (attempt 1 of 1)" in out


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


MISTAKES = {
    ("run",): "name a scenario, or tools and a --task",
    ("run", "nowhere.yaml"): "nowhere.yaml: no such file",
    ("run", SHOP_API): f"{SHOP_API}: is an OpenAPI document, not a scenario; to rehearse a task with its tools",
    ("run", SHOP, "--task", "x", "--model", "openai:x"): f"{SHOP} is a scenario, which has tools and tasks of its own",
    ("tools", SHOP): f"{SHOP} is a scenario, which has tools and tasks of its own",
    ("run", SHOP, "--task", "x"): "a task needs a model that plans: --model openai:gpt-5-mini",
    ("run", SHOP, "--tools", SHOP_API, "--task", "x"): f"{SHOP} and --tools {SHOP_API}: name one of both",
    ("run", SHOP, "--state", SHOP): "--state is for a task; a scenario has a state of its own",
    ("run", SHOP_API, "--task", "Buy"): "a task needs a model that plans: --model openai:gpt-5-mini",
    ("run", "none.yaml", "--task", "Buy", "--model", "openai:x"): "none.yaml: no such file",
    ("run", "--tools", SHOP_API, "--task", "Buy"): "a task needs a model that plans: --model openai:gpt-5-mini",
    ("run", "--tools", SHOP_API, "--task", " ", "--model", "openai:x"): "--task is empty: say what the user wants",
    ("run", SHOP, "--model", "gpt"): "model 'gpt': write 'provider:name'",
    ("run", SHOP, "--model", "openai:gpt-5-mini"): "model 'openai:gpt-5-mini' needs a key: set OPENAI_API_KEY",
    ("run", SHOP, "--base-url", "http://x"): "--base-url is the address of a model: give --model as well",
    ("convert", SHOP_API, "--base-url", "http://x"): "--base-url is the address of a model: give --model as well",
    ("run", SHOP, "--model", "openai:x", "--base-url", "localhost:1"): (
        "--base-url localhost:1: write the whole address, for example http://localhost:8000/v1"
    ),
    ("run", SHOP, "--resume"): "--resume needs --save FILE",
    ("run", SHOP, "--thread", "x"): "--thread names a run in a file: give --save FILE as well",
    ("run", SHOP, "--set", "x=1"): "--set x=1: there is no such knob; there are max_retries",
    ("run", SHOP, "--set", "retries=1"): "--set retries=1: there is no such knob, perhaps 'max_retries' is meant",
    ("run", SHOP, "--set", "max_retries"): "--set max_retries: write max_retries=VALUE; max_retries: Rounds after",
    ("run", SHOP, "--set", "max_retries=-1"): "--set max_retries=-1: should be greater than or equal to 0; max_retries",
    ("run", SHOP, "--set", "max_retries=two"): "--set max_retries=two: should be a whole number; max_retries: Rounds",
    ("run", SHOP, "--set", "ladder=model"): "--set ladder=model: should be a list, such as [contract, schema]",
    ("run", "shop"): "shop: no such file; the example of this name: gecko-graph demo shop",
    ("tools", __file__): f"{__file__}: is Python, and no code is run from here: in Python, Toolkit.from_tools(",
    ("run", SHOP, "--set", "seed=["): "--set seed:1:",
    ("run", SHOP, "--json", "/"): "--json /: is a folder; name a file",
    ("run", SHOP, "--json", "/no/such/folder.json"): "--json /no/such/folder.json: cannot be written",
    ("run", SHOP, "--save", "/"): "/: unable to open database file",
    ("run", SHOP, "--save", "none.sqlite", "--resume"): "none.sqlite: no such file; there is nothing to resume",
    ("run", SHOP, "--save", SHOP): f"{SHOP}: it is no file of saved runs",
    ("history", "none.sqlite"): "none.sqlite: no such file; `gecko-graph run ... --save none.sqlite` makes one",
    ("history", SHOP, "t"): f"{SHOP}: it is no file of saved runs",
    ("tools", "none.yaml"): "none.yaml: no such file",
    ("convert", SHOP_API, "-o", SHOP_API): f"{SHOP_API}: is the file to be read; write to another one",
    ("convert", SHOP_API, "-o", "/no/such/folder.json"): "/no/such/folder.json: cannot be written",
    ("convert", SHOP_API, "-o", "x.json", "--model", "gpt"): "model 'gpt': write 'provider:name'",
}


@pytest.mark.parametrize("words", MISTAKES, ids=" ".join)
def test_mistakes_are_said_without_a_traceback(run, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert mistake(run(*words)).startswith(MISTAKES[words])


def test_no_command_at_all_is_answered_with_the_help(run):
    code, out, err = run()
    assert (code, out) == (2, "")
    assert "usage: gecko-graph" in err
    assert "gecko-graph demo" in err


STRANGE = {
    ("fly",): ("there is no command 'fly'; there are demo, run, tools", "gecko-graph"),
    ("dmeo",): ("perhaps demo is meant", "gecko-graph"),
    ("api.yaml", "--task", "x"): ("to rehearse a file: gecko-graph run api.yaml", "gecko-graph"),
    ("tools",): ("the following arguments are required: SPEC", "gecko-graph tools"),
    ("run", "--sve", "x"): ("not understood: '--sve'; perhaps --save is meant", "gecko-graph run"),
    ("run", SHOP, "--max-retries=2"): ("it is a knob: --set max_retries=VALUE", "gecko-graph run"),
    ("run", SHOP_API, "Buy tea"): (
        "not understood: 'Buy tea'; what the user wants goes behind --task",
        "gecko-graph run",
    ),
    ("convert", SHOP_API, "new.yaml"): ("not understood: 'new.yaml'; the file to write goes behind -o", "gecko-graph"),
    ("demo", "shop", "--task"): ("not understood: '--task'", "gecko-graph demo"),
}


@pytest.mark.parametrize("words", STRANGE, ids=" ".join)
def test_words_that_are_not_understood_are_answered_with_what_was_probably_meant(run, words):
    told = mistake(run(*words))
    meant, command = STRANGE[words]
    assert meant in told.splitlines()[0]
    assert told.splitlines()[1].strip().startswith(command)
    assert told.endswith("--help shows what there is")


def test_the_help_of_run_names_every_knob_with_its_default(run):
    _, out, _ = run("run", "--help")
    for name, field in GeckoContext.model_fields.items():
        (line,) = [line for line in out.splitlines() if line.startswith(f"  {name} ")]
        default = field.default
        if isinstance(default, tuple):
            default = f"[{', '.join(default)}]"
        shown = {"True": "true", "None": "null: no limit"}.get(str(default), str(default))
        assert line.endswith(f"({shown})"), line


def test_a_state_that_is_no_object(run, tmp_path):
    (tmp_path / "state.json").write_text("[1]")
    words = ("run", "--tools", SHOP_API, "--task", "Buy", "--model", "openai:x", "--state", tmp_path / "state.json")
    assert mistake(run(*words)).endswith("state.json: the task state must be an object, not list")


@pytest.mark.parametrize("command", [(), ("demo",), ("run",), ("tools",), ("convert",), ("history",)])
def test_help_teaches_with_examples_that_parse(run, command):
    code, out, _ = run(*command, "--help")
    assert code == 0
    shown = [shlex.split(line, comments=True) for line in out.splitlines() if line.startswith("  gecko-graph ")]
    assert shown
    for line in shown:
        build_parser().parse_args(line[1:])


def test_version(run):
    code, out, _ = run("--version")
    assert code == 0
    assert out.startswith("gecko-graph 0.")


def test_the_package_is_the_command():
    words = [sys.executable, "-m", "gecko_graph", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=ENVIRONMENT, check=False)
    assert (done.returncode, done.stdout.startswith("gecko-graph 0.")) == (0, True)


def test_help_does_not_import_the_world():
    code = "import sys; from gecko_graph.cli import main; main(['--help']); sys.exit('langgraph' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, env=ENVIRONMENT, check=False)
    assert done.returncode == 0


# saved runs --------------------------------------------------------------------------------------


def test_save_and_history(run, tmp_path):
    file = tmp_path / "runs.sqlite"
    assert run("run", FILES, "--save", file)[0] == 0
    assert run("run", SHOP, "--save", file, "--thread", "monday")[0] == 0
    assert sorted(os.listdir(tmp_path)) == ["runs.sqlite"]
    before = file.read_bytes()
    code, out, _ = run("history", file)
    assert code == 0
    head, monday, report = out.splitlines()
    assert head == f"{file}: 2 runs"
    assert re.match(r"monday           \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  1 turn, accepted, 4 of 4: Please order", monday)
    assert "  1 turn, accepted, 3 of 3: Move final_report.pdf" in report
    code, out, _ = run("history", file, "file-the-report")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("Turn 1  Move final_report.pdf")
    assert "[1] verdict  failed, 0 of 3" in lines
    assert (
        '[2] change   mkdir: + /tree/workspace/contents/document/contents/temp {"type": "directory", "contents": {}}'
        in lines
    )
    assert "result       accepted, 3 of 3 (attempt 2 of 2)" in lines
    assert sorted(os.listdir(tmp_path)) == ["runs.sqlite"]
    assert file.read_bytes() == before, "history only reads"


def test_history_shows_what_the_run_showed(run, tmp_path):
    _, shown, _ = run("run", FILES, "--save", tmp_path / "runs.sqlite")
    _, told, _ = run("history", tmp_path / "runs.sqlite", "file-the-report")
    assert told.splitlines()[2:] == shown.splitlines()[1:]


def test_history_of_an_unknown_thread_names_the_known_ones(run, tmp_path):
    run("run", SHOP, "--save", tmp_path / "runs.sqlite", "--thread", "monday")
    assert mistake(run("history", tmp_path / "runs.sqlite", "tuesday")).endswith(
        "no thread 'tuesday'; it holds 'monday'"
    )


def test_a_thread_is_not_overwritten(run, tmp_path):
    words = ("run", SHOP, "--save", tmp_path / "runs.sqlite", "--thread", "monday")
    assert run(*words)[0] == 0
    assert "the thread 'monday' holds a run already: go on with it (--resume)" in mistake(run(*words))


def test_resuming_what_is_finished_shows_it_again(run, tmp_path):
    words = ("run", SHOP, "--save", tmp_path / "runs.sqlite")
    run(*words)
    code, out, _ = run(*words, "--resume")
    assert code == 0
    assert out.startswith("order-within-credit was finished before\nresult       accepted")


def test_resuming_an_unknown_thread(run, tmp_path):
    run("run", SHOP, "--save", tmp_path / "runs.sqlite")
    told = mistake(run("run", SHOP, "--save", tmp_path / "runs.sqlite", "--thread", "x", "--resume"))
    assert told.endswith("no thread 'x' to resume; it holds 'order-within-credit'")


@pytest.fixture
def interrupt(monkeypatch):
    """Let Ctrl-C come at the n-th question to a model."""
    reply = RecordedModel._reply

    def at(number):
        asked = []

        def replying(self, *args):
            asked.append(1)
            if len(asked) == number:
                raise KeyboardInterrupt
            return reply(self, *args)

        monkeypatch.setattr(RecordedModel, "_reply", replying)

    yield at
    monkeypatch.setattr(RecordedModel, "_reply", reply)


def test_ctrl_c_says_how_to_go_on_and_history_shows_how_far_it_came(run, tmp_path, interrupt):
    file = tmp_path / "my runs.sqlite"
    interrupt(7)
    code, out, err = run("run", FILES, "--save", file, "--thread", "t")
    assert code == 130
    assert "[2] ok       cd" in out
    assert err == (
        "gecko-graph: interrupted; what was done is saved. To go on:\n"
        f"  gecko-graph run {FILES} --save '{file}' --thread t --resume\n"
    )
    interrupt(0)
    code, told, _ = run("history", file, "t")
    assert code == 0
    assert "[1] verdict  failed, 0 of 3" in told
    assert "[2] change   mkdir: + /tree/workspace/contents/document/contents/temp" in told
    assert told.endswith("not over: `gecko-graph run ... --resume` goes on here\n")
    code, out, _ = run("run", FILES, "--save", file, "--thread", "t", "--resume")
    assert code == 0
    assert "[1] " not in out, "an attempt that is done is not done again"
    assert "result       accepted, 3 of 3 (attempt 2 of 2)" in out
    assert "(planner 9)" in out


TURN = {
    "user": "Go on.",
    "checklist": [{"id": "tea", "check": "state.cart['TEA-100'].quantity == 1"}],
    "replies": {
        "planner": [
            [{"say": "Done."}],
            [{"call": "setCartLine", "args": {"sku": "TEA-100", "quantity": 1}}, {"say": "Yes."}],
        ]
    },
}


def test_history_of_several_turns_the_last_one_interrupted(run, tmp_path, interrupt):
    data = yaml.safe_load(Path(SHOP).read_text()) | {"tools": SHOP_API}
    data["turns"].append(TURN)
    (tmp_path / "case.yaml").write_text(yaml.safe_dump(data))
    words = ("run", tmp_path / "case.yaml", "--save", tmp_path / "runs.sqlite")
    interrupt(12)
    assert run(*words)[0] == 130
    interrupt(0)
    _, told, _ = run("history", tmp_path / "runs.sqlite", "order-within-credit")
    first, second = told.split("Turn 2  Go on.")
    assert "result       accepted, 4 of 4" in first
    assert "[1] verdict  failed, 0 of 1" in second
    assert "[2] ok       setCartLine" in second
    assert "not over" in second
    code, shown, _ = run(*words, "--resume", "--json", tmp_path / "out.json")
    assert code == 0
    assert shown.startswith("task Go on.")
    (turn,) = json.loads((tmp_path / "out.json").read_text())["turns"]
    assert turn["task_state"]["cart"]["TEA-100"]["quantity"] == 1
    assert "not over" not in run("history", tmp_path / "runs.sqlite", "order-within-credit")[1]


def test_history_of_a_thread_that_another_graph_has_written(run, tmp_path):
    class Notes(TypedDict):
        note: str

    builder = StateGraph(Notes)
    builder.add_node("write", lambda state: {"note": "x"})
    builder.add_edge(START, "write")
    with SqliteSaver.from_conn_string(str(tmp_path / "runs.sqlite")) as saver:
        builder.compile(checkpointer=saver).invoke({"note": ""}, {"configurable": {"thread_id": "t"}})
    assert "the thread 't' holds no rehearsal" in mistake(run("history", tmp_path / "runs.sqlite", "t"))
    code, out, _ = run("history", tmp_path / "runs.sqlite")
    assert code == 0
    assert out.splitlines()[1].endswith("  no rehearsal")


def test_history_of_a_graph_that_embeds_the_rehearsal(run, tmp_path):
    scenario = shipped("shop")
    parent = StateGraph(RehearsalState)
    parent.add_node("rehearse", scenario.gecko())
    parent.add_node("approve", lambda state: {})
    parent.add_edge(START, "rehearse")
    parent.add_edge("rehearse", "approve")
    given = {"messages": [("user", "Buy one")], "task_state": scenario.state}
    with SqliteSaver.from_conn_string(str(tmp_path / "runs.sqlite")) as saver:
        done = parent.compile(checkpointer=saver).invoke(given, {"configurable": {"thread_id": "p"}})
    _, listed, _ = run("history", tmp_path / "runs.sqlite")
    assert listed.endswith(f"1 turn, {tell_verdict(done['rehearsal']['verdict'])}: Buy one\n")
    code, told, _ = run("history", tmp_path / "runs.sqlite", "p")
    assert code == 0
    assert told.startswith("Turn 1  Buy one\n2 checkpoints")
    assert told.count(" attempt ") == len(done["rehearsal"]["attempts"])


def test_history_of_a_run_whose_attempts_went_on_at_once(run, tmp_path, interrupt):
    interrupt(5)
    words = ("run", FILES, "--set", "parallel_attempts=2", "--save", tmp_path / "runs.sqlite")
    assert run(*words)[0] == 130
    interrupt(0)
    _, told, _ = run("history", tmp_path / "runs.sqlite", "file-the-report")
    assert "[1] attempt  from state" in told
    assert "[2] attempt  from state" in told
    code, shown, _ = run(*words, "--resume")
    assert code == 0
    assert "result       accepted, 3 of 3 (attempt 2 of 2)" in shown


def test_ctrl_c_without_save(run, interrupt):
    interrupt(2)
    code, _, err = run("run", FILES)
    assert code == 130
    assert "nothing was kept (--save FILE keeps a run" in err


def test_a_run_that_is_killed_is_resumed_to_the_same_end(run, tmp_path):
    dies = (
        "import os, sys; from gecko_graph.cli import main; from gecko_graph.models.recorded import RecordedModel as M\n"
        "reply, asked = M._reply, []\n"
        "M._reply = lambda self, *a: (asked.append(1), len(asked) == 6 and os._exit(9), reply(self, *a))[2]\n"
        "main()"
    )
    words = ["run", FILES, "--save", str(tmp_path / "runs.sqlite"), "--json", str(tmp_path / "out.json")]
    killed = subprocess.run([sys.executable, "-c", dies, *words], timeout=60, env=ENVIRONMENT, check=False)
    assert killed.returncode == 9
    assert not (tmp_path / "out.json").exists()
    assert "not over" in run("history", tmp_path / "runs.sqlite", "file-the-report")[1]
    assert run(*words, "--resume")[0] == 0
    resumed = json.loads((tmp_path / "out.json").read_text())
    assert run("run", FILES, "--json", tmp_path / "whole.json")[0] == 0
    assert resumed == json.loads((tmp_path / "whole.json").read_text())


# a server that speaks like OpenAI's ----------------------------------------------------------------


SAID = {
    "Checklist": {"items": [{"description": "tea is in the cart"}]},
    "SemanticVerdict": {"problems": []},
    "Judgement": {"items": [{"id": "item-1", "status": "success"}], "ask_user": False, "feedback": ""},
    "ToolSchema": {"description": "Say hello.", "result": {"type": "string"}, "effect": "read"},
}


class Server:
    """Answers chat completions on this machine; `hang` makes it wait."""

    def __init__(self):
        self.asked, self.hang = [], threading.Event()
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                owner.asked.append(body)
                if owner.hang.is_set():
                    time.sleep(30)
                data = json.dumps(owner.reply(body)).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                del args

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reply(self, body):
        role = body.get("response_format", {}).get("json_schema", {}).get("name")
        if role:
            message = {"content": json.dumps(SAID[role])}
        elif any(each["role"] == "tool" for each in body["messages"]):
            message = {"content": "Two packs of tea are in the cart."}
        else:
            arguments = json.dumps({"sku": "TEA-100", "quantity": 2})
            call = {"id": "c1", "type": "function", "function": {"name": "setCartLine", "arguments": arguments}}
            message = {"content": None, "tool_calls": [call]}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
        return {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}


@pytest.fixture
def server():
    made = Server()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_a_task_with_the_tools_of_an_openapi_document_and_a_model(run, server, tmp_path):
    (tmp_path / "state.yaml").write_text(yaml.safe_dump(shipped("shop").state))
    words = (
        "run",
        "--tools",
        SHOP_API,
        "--task",
        "Put two packs of tea into my cart.",
        "--state",
        tmp_path / "state.yaml",
    )
    code, out, _ = run(*words, "--model", "openai:any", "--base-url", server.url, "--json", tmp_path / "out.json")
    assert code == 0, out
    assert '[1] ok       setCartLine: {"lines": {"TEA-100"' in out
    state = json.loads((tmp_path / "out.json").read_text())["turns"][0]["task_state"]
    assert state["cart"]["TEA-100"] == {"name": "Mint tea, 100 g", "quantity": 2, "amount": 12.4}
    assert {body["model"] for body in server.asked} == {"any"}


def test_another_task_goes_on_with_the_conversation(run, server, tmp_path):
    (tmp_path / "state.yaml").write_text(yaml.safe_dump(shipped("shop").state))
    file = tmp_path / "runs.sqlite"
    saved = ("--model", "openai:any", "--base-url", server.url, "--save", file)
    begun = ("run", SHOP_API, "--task", "Put tea into my cart.", *saved)
    assert run(*begun, "--state", tmp_path / "state.yaml")[0] == 0
    asked = len(server.asked)
    code, out, _ = run(*begun, "--resume")
    assert out.startswith("task was finished before\nresult       accepted")
    assert (code, len(server.asked)) == (0, asked), "the same task is not done again"
    code, out, _ = run("run", SHOP_API, "--task", "Is it in?", *saved, "--resume", "--json", tmp_path / "out.json")
    assert code == 0
    assert out.startswith("task Is it in?\n")
    assert len(server.asked) > asked
    (turn,) = json.loads((tmp_path / "out.json").read_text())["turns"]
    assert [each["content"] for each in turn["messages"][::2]] == ["Put tea into my cart.", "Is it in?"]
    assert turn["task_state"]["cart"]["TEA-100"]["quantity"] == 2
    assert "  2 turns, accepted, 1 of 1: Is it in?" in run("history", file)[1]
    words = ("run", SHOP_API, "--task", "And mugs.", *saved, "--resume", "--state", tmp_path / "state.yaml")
    assert "--state: the next task begins from the state that the last one left" in mistake(run(*words))


@pytest.mark.parametrize("saved", [True, False])
def test_a_question_is_followed_by_how_to_answer_it(run, server, tmp_path, monkeypatch, saved):
    asking = {"items": [{"id": "item-1", "status": "unknown"}], "ask_user": True, "feedback": ""}
    monkeypatch.setitem(SAID, "Judgement", asking)
    words = ["run", SHOP_API, "--task", "Buy tea.", "--model", "openai:any", "--base-url", server.url]
    code, out, _ = run(*words, *(["--save", tmp_path / "runs.sqlite"] if saved else []))
    assert code == 1
    assert "needs the user" in out
    start = "to answer: the same command with --resume" if saved else "to be able to answer, keep the run with --save"
    assert out.splitlines()[-1].startswith(f"hint         {start}")


def test_another_task_waits_until_an_interrupted_one_is_over():
    words = ["run", SHOP_API, "--task", "Buy mugs.", "--model", "openai:x", "--save", "runs.sqlite", "--resume"]
    options = build_parser().parse_args(words)
    scenario = scenario_of(options)
    saved = SimpleNamespace(values={"messages": [HumanMessage("Buy tea.")]}, tasks=("attempt",))
    with pytest.raises(GeckoError, match=r"this run was interrupted: resume it with its own --task 'Buy tea.' first"):
        next_task(scenario, options, saved)
    options.task = "Buy tea."
    assert next_task(scenario, options, saved) is scenario


def test_where_no_model_replies_the_address_and_the_name_are_told(run):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    code, out, _ = run("run", SHOP_API, "--task", "Buy tea", "--model", "openai:qwen3", "--base-url", url)
    assert code == 1
    hint = next(line for line in out.splitlines() if line.startswith("hint"))
    assert f"does an OpenAI-compatible server listen at {url} " in hint
    assert "does it know the model 'qwen3'?" in hint


def test_ctrl_c_does_not_wait_for_the_model(server, tmp_path):
    server.hang.set()
    words = ["run", SHOP, "--model", "openai:any", "--base-url", server.url, "--save", str(tmp_path / "runs.sqlite")]
    child = subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    for _ in range(300):
        if server.asked:
            break
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=25)
    assert child.returncode == 130
    assert "--resume" in err
    assert "Traceback" not in err


# tools, convert ------------------------------------------------------------------------------------


def test_the_exit_code_of_several_turns():
    def outputs(*words):
        return [{"rehearsal": {"verdict": {"word": word}}} for word in words]

    assert exit_code(outputs("needs_user", "accepted")) == 0
    assert exit_code(outputs("accepted", "accepted")) == 0
    assert exit_code(outputs("failed", "accepted")) == 1
    assert exit_code(outputs("accepted", "needs_user")) == 1
    assert exit_code([]) == 1


def test_tools_of_an_example(run):
    code, out, _ = run("tools", SHOP_API)
    assert code == 0
    assert out.startswith("Shop: 6 tools\n")
    assert "findProducts(text?, max_price?)  read, contract\n" in out
    assert "3 invariants of the task state" in out
    assert out.endswith("Nothing is left unsaid.\n")


FUNCTIONS = [
    {"name": "greet", "parameters": {"type": "dict", "properties": {"who": {"type": "string"}}, "required": ["who"]}},
    {"name": "part", "description": "Say \x1b[31mgoodbye[/red].", "parameters": {"type": "object", "properties": {}}},
]


def test_tools_says_what_is_left_unsaid(run, tmp_path):
    (tmp_path / "tools.json").write_text(json.dumps(FUNCTIONS))
    code, out, _ = run("tools", tmp_path / "tools.json")
    assert code == 0
    assert "greet(who)  read or write" in out
    assert "no result schema: any JSON passes as its result: greet, part" in out
    assert "the parameter 'who' has no description: greet" in out
    assert "Say goodbye[/red]." in out
    assert "\x1b" not in out


@pytest.mark.parametrize("name", ["api.json", "api.yaml"])
def test_convert_writes_what_can_be_read_back(run, tmp_path, name):
    (tmp_path / "tools.json").write_text(json.dumps(FUNCTIONS))
    code, out, err = run("convert", tmp_path / "tools.json", "-o", tmp_path / name)
    assert (code, out) == (0, "")
    assert f"2 tools written to {tmp_path / name}" in err
    code, out, _ = run("tools", tmp_path / name)
    assert code == 0
    assert "greet(who)" in out


def test_convert_to_the_standard_output(run):
    code, out, _ = run("convert", SHOP_API, "-o", "-")
    assert code == 0
    assert json.loads(out)["openapi"].startswith("3.1")


def test_convert_without_a_target_writes_to_the_standard_output(run):
    code, out, err = run("convert", SHOP_API)
    assert code == 0
    assert json.loads(out) == json.loads(run("convert", SHOP_API, "-o", "-")[1])
    assert err.startswith("6 tools written to the standard output\n")


def test_a_document_without_operations_says_so(run, tmp_path):
    (tmp_path / "hooks.yaml").write_text("openapi: 3.1.0\ninfo: {title: Hooks, version: '1'}\nwebhooks: {}\n")
    code, out, _ = run("tools", tmp_path / "hooks.yaml")
    assert code == 0
    assert out == (
        "Hooks: 0 tools\nIt has no operations under `paths`: there is nothing to rehearse. Webhooks are no tools.\n"
    )


def test_convert_asks_a_model_for_what_is_missing(run, tmp_path, server):
    (tmp_path / "tools.json").write_text(json.dumps(FUNCTIONS))
    words = ("convert", tmp_path / "tools.json", "-o", tmp_path / "api.json", "--model", "openai:any")
    code, _, err = run(*words, "--base-url", server.url)
    assert code == 0, err
    assert "result schema" not in err
    assert len(server.asked) == 2
    _, out, _ = run("tools", tmp_path / "api.json")
    assert "greet(who)  read" in out


def test_convert_says_which_tools_a_model_could_not_complete(run, tmp_path, server, monkeypatch):
    monkeypatch.setitem(SAID, "ToolSchema", {"description": 1})
    (tmp_path / "tools.json").write_text(json.dumps(FUNCTIONS))
    words = ("convert", tmp_path / "tools.json", "-o", tmp_path / "api.json", "--model", "openai:any")
    code, _, err = run(*words, "--base-url", server.url)
    assert code == 1
    assert "greet: no result schema: " in err
    assert (tmp_path / "api.json").exists(), "what is known is written all the same"
