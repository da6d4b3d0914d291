"""--only and --tag, the warning where tools are too many, and a provider that refuses them."""

from __future__ import annotations

import json

import pytest

from gecko_graph.retrieval import search
from gecko_graph.tools import selection
from tests.cli.command import SHOP, SHOP_API, mistake
from tests.tools.small_documents import document


@pytest.fixture(autouse=True)
def without_extra(monkeypatch):
    """Without the extra `retrieval`, which has large toolkits searched."""
    monkeypatch.setattr(selection, "find_spec", lambda name: None)
    monkeypatch.setattr(search, "is_installed", lambda: False)


@pytest.fixture
def large(tmp_path):
    """A document with 130 operations under two tags."""
    paths = {
        f"/{tag}/{number}": {"get": {"operationId": f"{tag}_{number}", "tags": [tag], "description": "d"}}
        for tag, count in (("issues", 90), ("repos", 40))
        for number in range(count)
    }
    (tmp_path / "large.json").write_text(json.dumps(document(paths)))
    return tmp_path / "large.json"


def test_tools_are_chosen_and_counted(run, large):
    code, out, _ = run("tools", large)
    assert code == 0
    assert "130 tools, and providers take 128 at most" in out.replace("\n", " ")
    assert "issues (90), repos (40)" in out.replace("\n", " ")
    code, out, _ = run("tools", large, "--tag", "repos")
    assert (code, out.splitlines()[0]) == (0, "T: 40 tools")
    assert "providers take" not in out
    code, out, _ = run("tools", large, "--only", "issues_1*", "--only", "repos_0", "--tag", "issues")
    assert out.splitlines()[0] == "T: 11 tools"


def test_only_what_is_chosen_is_converted(run, large, tmp_path):
    assert run("convert", large, "-o", tmp_path / "out.json", "--only", "repos_3*")[0] == 0
    written = json.loads((tmp_path / "out.json").read_text())
    assert len(written["paths"]) == 11


@pytest.mark.parametrize("command", [["tools"], ["convert"], ["run", "--task", "x", "--model", "openai:any"]])
def test_a_pattern_that_matches_nothing_is_a_mistake(run, large, command):
    message = mistake(run(*command, large, "--tag", "issue"))
    assert "'issue' matches nothing (did you mean issues?)" in message


def test_a_scenario_runs_with_the_tools_that_are_chosen(run):
    assert run("run", SHOP, "--only", "*")[0] == 0
    assert "'nothing*' matches nothing" in mistake(run("run", SHOP, "--only", "nothing*"))


def test_a_provider_that_refuses_so_many_tools_is_quoted(run, server, large):
    words = ("run", large, "--task", "x", "--model", "openai:any", "--base-url", server.url)
    refusal = "Invalid 'tools': array too long. Expected an array with maximum length 128"
    server.fails = (400, json.dumps({"error": {"message": refusal}}).encode())
    code, out, _ = run(*words)
    assert code == 3, out
    shown = " ".join(out.split())
    assert "warning 130 tools, and providers take 128 at most" in shown
    assert "maximum length 128" in shown.split("hint")[-1]


def test_a_run_with_few_tools_does_not_warn(run, server, tmp_path):
    code, out, _ = run(
        "run", SHOP_API, "--task", "Put tea into my cart.", "--model", "openai:any", "--base-url", server.url
    )
    assert code in (0, 1)
    assert "warning" not in out


LOUD = """
contracts:
  repos_1: {requires: [{check: false, error: not today}]}
"""


def test_contracts_come_from_a_file_beside_the_tools(run, large, tmp_path):
    file = tmp_path / "loud.yaml"
    file.write_text(LOUD)
    assert run("convert", large, "-o", tmp_path / "out.json", "--only", "repos_1", "--contracts", file)[0] == 0
    (item,) = json.loads((tmp_path / "out.json").read_text())["paths"].values()
    assert item["get"]["x-contract"] == {"requires": [{"check": False, "error": "not today"}]}
    _, out, _ = run("tools", large, "--only", "repos_1", "--contracts", file)
    assert "contract" in out.splitlines()[1]


def test_contracts_of_unknown_tools_are_a_mistake(run, large, tmp_path):
    file = tmp_path / "loud.yaml"
    file.write_text(LOUD.replace("repos_1", "repo_1"))
    assert "loud.yaml: contract: unknown tool 'repo_1'" in mistake(run("tools", large, "--contracts", file))
    assert "is the same file as --contracts" in mistake(run("convert", large, "--contracts", file, "-o", file))
