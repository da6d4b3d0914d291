"""What the command line says of mistakes, and its help."""

import re
import shlex
from pathlib import Path

import pytest

from gecko_graph import GeckoContext
from gecko_graph.cli.arguments import cli
from tests.cli.command import SHOP, SHOP_API, as_id, mistake, parse

PHONE = str(Path(SHOP).resolve().parents[1] / "phone" / "cases" / "wifi-off.gecko.yaml")
KNOBS = ("knob", "max_retries", "seed")
NEEDS_PLANNER = ("a --task needs a model", "planner", "--model openai:gpt-5-mini")
MISTAKES = {
    ("run",): ("give a scenario", "--task", "--help"),
    ("run", "nowhere.yaml"): ("nowhere.yaml", "no such file"),
    ("run", SHOP_API): (SHOP_API, "OpenAPI document, not a scenario", "gecko-graph run", "--task"),
    ("run", SHOP, "--task", "x", "--model", "openai:x"): (SHOP, "is a scenario", f"gecko-graph run {SHOP}"),
    ("tools", SHOP): (SHOP, "is a scenario", f"gecko-graph run {SHOP}"),
    ("run", SHOP, "--state", SHOP): ("--state", "--task", "scenario"),
    ("run", SHOP_API, "--task", " ", "--model", "openai:x"): ("--task is empty",),
    ("run", SHOP, "--model", "gpt"): ("model 'gpt'", "provider:name"),
    ("run", SHOP, "--model", "openai:gpt-5-mini"): ("model 'openai:gpt-5-mini'", "OPENAI_API_KEY"),
    ("run", SHOP, "--model", "openai:x", "--timeout", "0"): ("timeout", "0.0", "seconds"),
    ("run", SHOP_API, "--task", "Buy", "--role-model", "judge=openai:x"): NEEDS_PLANNER,
    ("run", SHOP, "--role-model", "jugde=openai:x"): ("unknown role 'jugde'", "roles: planner, validator"),
    ("run", SHOP, "--model", "opnai:gpt-5-mini"): ("unknown provider 'opnai'", "did you mean openai?"),
    ("run", SHOP, "--resume"): ("--resume needs --save FILE",),
    ("run", SHOP, "--set", "retries=1"): ("--set retries=1", "did you mean max_retries?", *KNOBS),
    ("run", SHOP, "--set", "max_retries=-1"): ("--set max_retries=-1", "greater than or equal to 0", "Retries after"),
    ("run", SHOP, "--json", "/no/such/folder.json"): (
        "--json /no/such/folder.json",
        "cannot be written",
        "folder /no/such does not exist",
    ),
    ("run", SHOP, "--save", "none.sqlite", "--resume"): ("none.sqlite", "no such file", "resume"),
    ("run", SHOP, "--save", __file__): (__file__, "not a file of saved runs"),
    ("history", "runs.sqlite", "--html", "a.html"): ("--html needs THREAD",),
}


@pytest.mark.parametrize("words", MISTAKES, ids=as_id)
def test_a_mistake_is_named_without_a_traceback(run, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = mistake(run(*words))
    assert message.startswith(MISTAKES[words][0])
    assert [part for part in MISTAKES[words] if part not in message] == []


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("her_tools.py", "her_tools:NAME"),
        ("./her_tools.py", "her_tools:NAME"),
        ("her_tools.py:TOOLS", "her_tools:TOOLS"),
        ("inner/more.py", "inner.more:NAME"),
        ("inner.more", "inner.more:NAME"),
    ],
)
def test_what_is_of_python_is_told_how_it_is_given(run, tmp_path, monkeypatch, given, written):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner").mkdir()
    for file in ("her_tools.py", "inner/more.py"):
        (tmp_path / file).write_text("def build(tools):\n    pass  # build: it\n", encoding="utf-8")
    for words in (("tools", given), ("test", PHONE, "--agent", given)):
        message = mistake(run(*words))
        assert given in message
        assert written in message
        assert "YAML" not in message
        assert "openai" not in message


def test_an_agent_that_may_be_a_module_or_a_model_is_told_both(run):
    message = mistake(run("test", PHONE, "--agent", "her_agent"))
    assert "her_agent:NAME" in message
    assert "provider:name" in message


def test_no_command_at_all_is_answered_with_the_help(run):
    code, out, err = run()
    assert (code, out) == (2, "")
    assert "Usage: gecko-graph" in err
    assert "gecko-graph demo" in err
    assert run("--version")[1].startswith("gecko-graph 0.")


STRANGE = {
    ("dmeo",): ("gecko-graph", "'dmeo'", "Did you mean", "'demo'"),
    ("api.yaml", "--task", "x"): ("gecko-graph", "'api.yaml'", "gecko-graph run api.yaml"),
    ("tools",): ("gecko-graph tools", "Missing", "SPEC"),
    ("run", "--sve", "x"): ("gecko-graph run", "'--sve'", "Did you mean", "'--save'"),
    ("run", SHOP, "--max-retries=2"): ("gecko-graph run", "--max-retries", "--set max_retries=VALUE"),
    ("run", SHOP_API, "Buy tea"): ("gecko-graph run", "Buy tea"),
    ("run", SHOP, "--timeout", "soon"): ("gecko-graph run", "--timeout", "'soon'"),
    ("test", "cases", "--agent", "a:b", "--trials", "0"): ("gecko-graph test", "--trials", "0"),
}


@pytest.mark.parametrize("words", STRANGE, ids=as_id)
def test_an_unrecognized_argument_is_named_with_the_nearest_one(run, words):
    message = mistake(run(*words))
    command, *parts = STRANGE[words]
    assert [part for part in parts if part not in message] == []
    _, second = message.splitlines()
    assert second.strip().startswith(f"{command} --help")


def test_the_help_of_run_names_every_knob_with_its_default(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setitem(cli.context_settings, "max_content_width", 400)
    _, out, _ = run("run", "--help")
    for name, field in GeckoContext.model_fields.items():
        (line,) = [line for line in out.splitlines() if line.startswith(f"  {name} ")]
        default = field.default
        default = f"[{', '.join(map(str, default))}]" if isinstance(default, tuple) else str(default)
        shown = {"True": "true", "None": "null"}.get(default, default)
        assert line.endswith(f"({shown})"), line


@pytest.mark.parametrize("command", [(), ("demo",), ("run",), ("tools",), ("convert",), ("history",), ("completion",)])
def test_help_teaches_with_examples_that_parse(run, command):
    code, out, _ = run(*command, "--help")
    assert code == 0
    lines = [re.split(r" {2,}", line.strip())[0] for line in out.splitlines() if line.startswith("  gecko-graph ")]
    assert lines
    for _, name, *words in map(shlex.split, lines):
        parse(name, *words)
