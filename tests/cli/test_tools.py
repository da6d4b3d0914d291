"""tools and convert."""

from __future__ import annotations

import json

import pytest

from gecko_graph.cli.running import exit_code
from tests.cli.command import SHOP_API


def test_the_exit_code_of_several_turns():
    def outputs(*words):
        return [{"rehearsal": {"verdict": {"status": word}}} for word in words]

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
    assert out.endswith("Nothing is missing.\n")


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
    assert out.startswith("Hooks: 0 tools\n")
    assert "no operations under `paths`" in out


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
    monkeypatch.setitem(server.said, "ToolSchema", {"description": 1})
    (tmp_path / "tools.json").write_text(json.dumps(FUNCTIONS))
    words = ("convert", tmp_path / "tools.json", "-o", tmp_path / "api.json", "--model", "openai:any")
    code, _, err = run(*words, "--base-url", server.url)
    assert code == 1
    assert "greet: no result schema: " in err
    assert (tmp_path / "api.json").exists(), "what is known is written all the same"
