"""--only, the warning where tools are too many, and a provider that refuses them."""

import json

import pytest

from gecko_graph.retrieval import search
from gecko_graph.tools import problems
from tests.cli.command import mistake
from tests.tools.small_documents import document


@pytest.fixture(autouse=True)
def without_extra(monkeypatch):
    """Without the extra `retrieval`, which has large toolkits searched."""
    monkeypatch.setattr(problems, "find_spec", lambda name: None)
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
    assert "130 tools, and providers accept at most 128" in out.replace("\n", " ")
    assert "issues (90), repos (40)" in out.replace("\n", " ")
    code, out, _ = run("tools", large, "--only", "repos_*")
    assert (code, out.splitlines()[0]) == (0, "T: 40 tools")
    assert "providers accept" not in out
    code, out, _ = run("tools", large, "--only", "issues_1*", "--only", "repos_0")
    assert out.splitlines()[0] == "T: 12 tools"


@pytest.mark.parametrize("command", [["tools"], ["convert"], ["run", "--task", "x", "--model", "openai:any"]])
def test_a_pattern_that_matches_nothing_is_a_mistake(run, large, command):
    message = mistake(run(*command, large, "--only", "issue"))
    assert "'issue' matches nothing" in message


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
    assert "contract" in run("tools", large, "--only", "repos_1", "--contracts", file)[1].splitlines()[1]
