"""Every code block of the docs is run: Python in order in one namespace a file, data loaded, commands parsed."""

from __future__ import annotations

import io
import json
import re
import shlex
from pathlib import Path
from typing import get_args

import pytest

from evals.__main__ import SUITES
from gecko_graph import GeckoContext, events
from gecko_graph.cli import main
from gecko_graph.context import LADDER
from gecko_graph.contracts.contract import Contract
from gecko_graph.contracts.language.builtin import METHODS
from gecko_graph.contracts.language.functions import FUNCTIONS
from gecko_graph.models import factory
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.values.documents import parse_document
from tests.learning.traffic import files_to_learn_from

ROOT = Path(__file__).resolve().parents[1]
DOCS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)

SAID = {
    "planner": [
        [
            {"call": "find_invoice", "args": {"customer": "Miller & Sons"}},
            {"call": "pay_invoice", "args": {"number": "A-1", "amount": 12.5}},
            {"say": "Paid."},
        ]
    ]
    * 9,
    "checklist": [{"items": [{"description": "the invoice is paid"}]}],
    "bootstrapper": [{"domain": {"invoices": []}, "runtime_state": {}}],
    "validator": [{"problems": []}] * 9,
    "simulator": [
        {
            "status": "ok",
            "result": {"number": "A-1", "amount": 12.5},
            "patch": [{"op": "add", "path": "/paid", "value": "A-1"}],
        }
    ]
    * 9,
    "judge": [{"items": [{"id": "item-1", "status": "success"}]}] * 9,
}

API = """
openapi: 3.1.0
info: {title: Invoices, version: "1"}
paths:
  /invoices:
    get:
      operationId: find_invoice
      description: Find a customer's open invoice.
      parameters: [{name: customer, in: query, required: true, schema: {type: string}}]
      responses: {"200": {description: it, content: {application/json: {schema: {type: object}}}}}
"""


NAMED = re.compile(r"# ([\w.-]+\.(?:yaml|py))\n")


def blocks(path: Path, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(path.read_text(encoding="utf-8")) if found == language]


def write_files(path: Path, folder: Path) -> None:
    """What the commands of a page name: the shipped examples, an API, and the files whose text stands on the page."""
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "api.yaml").write_text(API)
    (folder / "state.yaml").write_text("books: {}")
    for name, text in files_to_learn_from().items() if path.name == "learning.md" else ():
        (folder / name).write_text(text)
    for text in [*blocks(path, "yaml"), *blocks(path, "python")]:
        if named := NAMED.match(text):
            (folder / named[1]).write_text(text)


@pytest.fixture
def recorded(monkeypatch):
    """Models named in the docs speak recorded words."""
    model = RecordedModel(turns=[SAID] * 3)
    monkeypatch.setattr(factory, "chat_model", lambda model_, **_: model if isinstance(model_, str) else model_)


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_blocks_run(path, recorded, tmp_path, monkeypatch, capsys):
    if "from langchain.agents" in path.read_text(encoding="utf-8"):
        pytest.importorskip("langchain")
    if any("from_mcp" in text for text in blocks(path, "python")):
        pytest.importorskip("mcp.server.mcpserver", reason="the extra `mcp` (2.x) is not installed")
    if any("ToolIndex" in text for text in blocks(path, "python")):
        pytest.importorskip("bm25s", reason="the extra `retrieval` is not installed")
    write_files(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    namespace: dict = {"__name__": "docs"}
    for text in blocks(path, "python"):
        exec(compile(text, str(path), "exec", dont_inherit=True), namespace)
    if path.name == "langgraph.md":
        assert "gecko.verdict 1" in capsys.readouterr().out


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_data_blocks_load(path):
    for text in blocks(path, "yaml"):
        data = parse_document(text, where=str(path))
        if "x-contract" in data:
            shared = {"lets": data.get("x-contract-let"), "requires": data.get("x-contract-requires")}
            Contract.load(data["x-contract"], **shared, where=str(path))
    for text in blocks(path, "json"):
        json.loads(text)


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_do_what_they_should(path, recorded, tmp_path, monkeypatch, capsys):
    write_files(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    lines = [line for text in blocks(path, "bash") for line in text.splitlines()]
    within = re.findall(r"`((?:gecko-graph \w+|python -m evals) [^`<>]+)`", path.read_text(encoding="utf-8"))
    lines += [line for line in within if not re.search(r"\b[A-Z]{2,}\b|\.\.\.|\|", line)]  # placeholders
    for line in lines:
        for command in line.split("#")[0].split("&&"):
            words = shlex.split(command)
            if words and words[0] == "gecko-graph":
                assert main(words[1:]) == 0, (command, capsys.readouterr().err)
            elif words[:3] == ["python", "-m", "evals"] and len(words) > 3 and words[3] != "--help":
                assert words[3] in SUITES


def test_knobs_on_the_page_are_knobs():
    section = (ROOT / "docs" / "python.md").read_text("utf-8").partition("## Knobs")[2]
    named = re.findall(r"`(\w+)`", "\n".join(line for line in section.splitlines() if line.startswith("- `")))
    assert named
    assert set(named) <= GeckoContext.model_fields.keys()


def test_what_can_be_added_is_documented():
    """A new event, rung or word of the contract language stands where users look for it."""
    words = [*FUNCTIONS, *METHODS]
    for names, page in (
        (get_args(events.EventType), "docs/langgraph.md"),
        (get_args(events.EventType), "gecko_graph/events.py"),
        (LADDER, "docs/python.md"),
        (words, "docs/contracts.md"),
    ):
        text = (ROOT / page).read_text(encoding="utf-8")
        text = text.partition("EventType = ")[0]
        assert [name for name in names if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)] == [], page


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_links_lead_somewhere():
    for path in [*DOCS, *ROOT.glob("evals/*.md"), *ROOT.glob("evals/reports/*.md"), *ROOT.glob("findings/*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#:]*)#?([^)]*?)\)", BLOCK.sub("", path.read_text(encoding="utf-8"))):
            page = path.parent / target if target else path
            assert page.exists(), f"{path.name}: {target}"
            assert not anchor or anchor in anchors(page), f"{path.name}: {target}#{anchor}"


def test_results_are_one_table_that_names_suites():
    lines = (ROOT / "evals" / "RESULTS.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if re.match(r"\| (?!claim|---)", line)]
    assert len(rows) <= 45
    for claim, figure, n, command, *_ in rows:
        assert figure, claim
        assert n, claim
        assert command.strip("`").split()[0] in SUITES, claim


def test_the_results_in_the_readme_are_what_a_terminal_shows(capsys, monkeypatch):
    for name, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "140"}.items():
        monkeypatch.setenv(name, value)
    assert main(["demo", "order", "--yes"]) == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().out)
    block = next(text for text in blocks(ROOT / "README.md", "") if "wait for a decision" in text)
    assert [line for line in block.splitlines() if line not in shown] == []


def test_the_recording_of_a_first_case_is_what_a_terminal_shows(tmp_path, monkeypatch, capsys):
    """What is typed behind `you: ` is piped in; of what is printed the page may leave lines out."""
    pytest.importorskip("langchain")
    page = ROOT / "docs" / "conversations.md"
    write_files(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    (recording,) = (text for text in blocks(page, "") if text.startswith("$ gecko-graph new-case"))
    codes = []
    for part in re.split(r"^\$ gecko-graph ", recording, flags=re.MULTILINE)[1:]:
        command, *told = part.splitlines()
        typed = [line.removeprefix("you:").strip() for line in told if line.startswith("you:")]
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(typed)))
        codes.append(main(shlex.split(command)))
        shown = iter(line.rstrip() for line in capsys.readouterr().out.splitlines())
        assert [line for line in told if line and line not in shown] == [], command
    assert codes == [0, 1, 0]


def test_the_first_screen_of_the_readme():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:40]
    text = "\n".join(lines)
    assert "pip install . && gecko-graph demo" in text
    assert "pip install '.[dev]' && pytest" in text


def test_extras_are_installed_from_a_checkout():
    """The package is on no index: `pip install gecko-graph` would install nothing, or something else."""
    files = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("examples/**/*.py"),
        *ROOT.glob("gecko_graph/**/*.py"),
    ]
    assert [file.name for file in files if re.search(r"gecko-graph\[", file.read_text(encoding="utf-8"))] == []
