"""What the command line says of mistakes, and its help."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from gecko_graph import GeckoContext
from gecko_graph.cli import build_parser
from tests.cli.command import ENVIRONMENT, SHOP, SHOP_API, mistake

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
    ("run", SHOP, "--timeout", "5"): "--timeout is how long a model may take: give --model as well",
    ("run", SHOP, "--model", "openai:x", "--timeout", "0"): "timeout_s is 0.0: give the seconds that a reply",
    ("convert", SHOP_API, "--model", "openai:x", "--timeout", "nan"): "timeout_s is nan: give the seconds that a",
    ("run", SHOP, "--timeout", "soon"): "argument --timeout: invalid float value: 'soon'",
    ("run", SHOP, "--model", "openai:x", "--base-url", "localhost:1"): (
        "base_url 'localhost:1': write the whole address, for example 'http://localhost:8000/v1'"
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
    ("run", SHOP, "--save", __file__): f"{__file__}: it is no file of saved runs",
    ("history", "none.sqlite"): "none.sqlite: no such file; `gecko-graph run ... --save none.sqlite` makes one",
    ("history", SHOP, "t"): f"{SHOP}: it is no file of saved runs",
    ("tools", "none.yaml"): "none.yaml: no such file",
    ("convert", SHOP_API, "-o", SHOP_API): f"-o {SHOP_API}: is the same file as IN {SHOP_API}; write",
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
        shown = {"True": "true"}.get(str(default), str(default))
        assert "(null: " in line if default is None else line.endswith(f"({shown})"), line


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
