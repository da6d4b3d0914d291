"""`gecko-graph test` and the pytest plugin: conversations as test cases."""

from __future__ import annotations

import json
import sys
from xml.etree import ElementTree

import pytest

from gecko_graph import Models
from gecko_graph.cli import main
from gecko_graph.conversation.result import build_report, find_pass_k, format_missed
from gecko_graph.scenario.cases.batch import read_finished
from tests.live_library import Live

pytest.importorskip("scipy.optimize")  # here: pytester forgets what is imported within it, and numpy loads but once
pytest_plugins = ["pytester"]
CASE = """
version: 1
name: {name}
tools:
  - name: note
    description: Note.
    parameters: {{type: object, properties: {{text: {{type: string}}}}, required: [text]}}
  - {{name: other, description: Other., parameters: {{type: object, properties: {{}}}}}}
  - {{name: noted, description: More., parameters: {{type: object, properties: {{}}}}}}
state: {{notes: []}}
categories: [{category}]
needs: [note]
user: {{goal: a note, opening: Note milk., script: [{{end: true}}]}}
milestones:
  - {{id: noted, call: {{name: note, args: {{text: milk}}}}}}
  - {{id: told, message: {{sender: agent, recipient: user, content: Noted.}}}}
"""
AGENTS = """
from gecko_graph.testing import scripted

GOOD = ({"call": "note", "args": {"text": "milk"}}, {"say": "Noted."})


def good(tools):
    from langchain.agents import create_agent

    name = next(tool.name for tool in tools if "Note" in tool.description or len(tools) == 1 or tool.name == "note")
    return create_agent(scripted({"call": name, "args": {"text": "milk"}}, {"say": "Noted."}), tools)


def bad(tools):
    from langchain.agents import create_agent

    return create_agent(scripted({"say": "Noted."}), tools)


model = scripted(*GOOD)


def makes_model(tools):
    return scripted(*GOOD)


def hostile(tools):
    return scripted({"say": "\\x1b]0;title\\x07\\x1b[2J hunter2: sk-" + "Zq12Cd34" * 4})
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    cases = tmp_path / "cases" / "deep"
    cases.mkdir(parents=True)
    for name, category in (("one", "single_tool_call"), ("two", "canonicalization")):
        (cases / f"{name}.gecko.yaml").write_text(CASE.format(name=name, category=category), encoding="utf-8")
    (tmp_path / "my_agents.py").write_text(AGENTS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_agents", raising=False)
    return tmp_path


@pytest.mark.parametrize("agent", ["my_agents:good", "my_agents:model", "my_agents:makes_model"])
def test_a_good_agent_passes(folder, capsys, agent):
    assert main(["test", "cases", "--agent", agent]) == 0
    shown = capsys.readouterr().out
    assert "2 of 2 passed" in shown
    assert "canonicalization" in shown
    assert "pass^1 1.000" in shown


def test_a_bad_agent_is_explained(folder, capsys):
    assert main(["test", "cases", "--agent", "my_agents:bad", "--json", "out.json", "--html", "out.html"]) == 1
    shown = capsys.readouterr().out
    assert "missed milestone noted: 0.000" in shown
    assert "ended" not in shown, "only an early end is worth a word"
    assert "0 of 2 passed" in shown
    report = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in report["categories"]] == ["canonicalization", "single_tool_call", "all"]
    assert report["categories"][-1]["similarity"] == 0.5
    assert report["categories"][-1]["idle"] == 0.0
    page = (folder / "out.html").read_text(encoding="utf-8")
    assert "The agent calls note(text = &#34;milk&#34;)." in page
    assert "Note milk." in page
    assert "<script" not in page


def test_no_case_is_written_over(folder, capsys):
    case = folder / "cases" / "deep" / "one.gecko.yaml"
    before = case.read_bytes()
    for option in ("--html", "--json", "--save"):
        assert main(["test", "cases", "--agent", "my_agents:good", option, str(case)]) == 2
        assert "is the same file as CASES" in capsys.readouterr().err
    assert case.read_bytes() == before
    assert main(["test", "cases", "--agent", "my_agents:good", "--html", "x", "--save", "x"]) == 2


def test_ctrl_c_says_that_the_same_command_goes_on(folder, capsys, monkeypatch):
    monkeypatch.setattr("gecko_graph.cli.test.build_report", raise_interrupt)
    assert main(["test", "cases", "--agent", "my_agents:good", "--save", "done.jsonl"]) == 130
    assert "rerun the same command to resume" in capsys.readouterr().err


def raise_interrupt(records):
    raise KeyboardInterrupt


def test_augmentations_and_trials(folder, capsys):
    assert main(["test", "cases", "--agent", "my_agents:good", "--augment", "all", "--trials", "2", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [one["held"] for one in report["augmentations"]] == [4] * 8
    assert report["pass_k"] == [1.0, 1.0]
    held = [(one["file"], one["augmentation"], one["trial"]) for one in report["conversations"]]
    assert held == sorted(held)
    assert main(["test", "cases", "--agent", "my_agents:good", "--augment", "al_tools"]) == 2
    assert "expected no_distraction_tools" in capsys.readouterr().err


def test_a_model_for_simulated_tools_is_named(folder, capsys):
    """--model audits alone: the first command reaches no address but its own, and finds nobody there."""
    for name in ("one", "two"):
        (folder / "cases" / "deep" / f"{name}.gecko.yaml").unlink()
    live = Live(lambda results: '{"status": "ok", "result": {"id": 7}, "patch": []}')
    case = CASE.format(name="one", category="x").replace("{text: milk}}}", "{text: milk}}, unchanged: []}")
    (folder / "cases" / "one.gecko.yaml").write_text(case, encoding="utf-8")
    with live:
        given = ["test", "cases", "--agent", "my_agents:good", "--base-url", live.url, "--json", "-"]
        for option, asked in (("--model", 0), ("--simulator-model", 1)):
            main([*given, option, "openai:x"])
            roles = json.loads(capsys.readouterr().out)["conversations"][0]["score"]["usage"]
            assert ("simulator" in roles) == bool(asked)


def test_processes_hold_the_same_conversations(folder, capsys):
    given = ["test", "cases", "--agent", "my_agents:makes_model", "--trials", "2", "--json", "-"]
    assert main(given) == 0
    held = capsys.readouterr().out
    assert main([*given, "--workers", "2", "--save", "done.jsonl"]) == 0
    assert capsys.readouterr().out == held
    assert sorted(each.name for each in folder.glob("done*")) == ["done.jsonl"]


def test_a_stopped_run_goes_on(folder, capsys):
    arguments = ["test", "cases", "--agent", "my_agents:good", "--save", "done.jsonl"]
    assert main(arguments) == 0
    lines = (folder / "done.jsonl").read_text(encoding="utf-8").splitlines()
    (folder / "done.jsonl").write_text(lines[0] + "\n" + lines[1][:50], encoding="utf-8")
    assert len(read_finished(folder / "done.jsonl")) == 1
    assert main(arguments) == 0
    assert "1 conversations are already finished" in capsys.readouterr().out
    (folder / "done.jsonl").write_text("no json\n{}\n", encoding="utf-8")
    assert main(arguments) == 2
    assert "line 1 is not a finished conversation" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "--agent", "my_agents:good"], "no such file or folder"),
        (["cases", "--agent", "my_agents:god"], "did you mean good"),
        (["cases", "--agent", "broken:x"], "cannot be imported"),
        (["cases", "--agent", "my_agent:x"], "No module named 'my_agent'"),
        (["cases", "--agent", "my_agents:good", "--trials", "0"], "'--trials': 0"),
        (["cases", "--agent", "my_agents:good", "--save", "no/x.jsonl"], "--save no/x.jsonl: cannot be written"),
        (["turns.gecko.yaml", "--agent", "my_agents:good"], "no user"),
    ],
)
def test_mistakes_are_named_before_the_first_conversation(folder, capsys, arguments, message):
    (folder / "broken.py").write_text("1 / 0", encoding="utf-8")
    turns = "version: 1\nname: x\ntools: [{name: a, parameters: {type: object}}]\nturns: [{user: Hi}]\n"
    (folder / "turns.gecko.yaml").write_text(turns, encoding="utf-8")
    assert main(["test", *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


def test_without_the_extra_nothing_is_held(folder, capsys, monkeypatch):
    monkeypatch.setattr("gecko_graph.conversation.milestones.measures.find_spec", lambda name: None)
    assert main(["test", "cases", "--agent", "my_agents:good"]) == 2
    assert "pip install '.[milestones]'" in capsys.readouterr().err


def test_pass_k_is_unbiased():
    score = {"end": "ended", "leaks": [], "usage": {}, "races": 0, "turns": 1, "calls": 0, "status": "passed"}
    base = {"file": "a", "augmentation": "", "categories": ["x"], "idle": 0.0, "tools": [], "invents": []}
    values = [("passed", 1.0), ("passed", 1.0), ("failed", 0.5)]
    records = [{**base, "score": {**score, "status": word, "similarity": value}} for word, value in values]
    assert find_pass_k(records) == pytest.approx([2 / 3, 1 / 3, 0.0])
    unscored = {**base, "score": {**score, "similarity": None}}
    group = build_report([*records, unscored]).categories[-1]
    assert (group.held, group.scored, group.passed) == (4, 3, 3)


def test_the_plugin_collects_cases_and_prints_what_was_missed(folder, pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(my_agents=AGENTS)
    for name in ("one", "two"):
        text = CASE.format(name=name, category="x")
        (pytester.path / f"{name}.gecko.yaml").write_text(text, encoding="utf-8")
    pytester.makeini("[pytest]\ngecko_agent = my_agents:good\n")
    pytester.makepyfile(
        test_own="""
        from gecko_graph.testing import scripted

        def test_one(gecko_case):
            result = gecko_case("one.gecko.yaml")
            assert (result.score, result.passed, len(result.milestones)) == (1.0, True, 2)
            assert "agent -> user: Noted." in result.transcript

        def test_other(gecko_case):
            result = gecko_case("one.gecko.yaml", agent=scripted({"say": "?"}), user=["Hi", "Bye"])
            assert not result.passed
        """
    )
    done = pytester.runpytest_inprocess("-p", "gecko_graph.pytest", "-q")
    done.assert_outcomes(passed=4)
    failed = pytester.runpytest_inprocess(
        "-p", "gecko_graph.pytest", "-q", "--gecko-agent", "my_agents:bad", "one.gecko.yaml"
    )
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*missed milestone noted: 0.000*", "*0 user -> agent: Note milk.*"])
    options = ("-q", "--gecko-agent", "my_agents:hostile", "--junitxml", "junit.xml", "one.gecko.yaml")
    hostile = pytester.runpytest_inprocess("-p", "gecko_graph.pytest", *options)
    hostile.stdout.fnmatch_lines(["*agent -> user:*hunter2: sk-…*"])
    written = (pytester.path / "junit.xml").read_text(encoding="utf-8")
    assert ElementTree.fromstring(written).find(".//failure") is not None
    assert not [each for text in (str(hostile.stdout), written) for each in ("\x1b]0", "#x1B", "Zq12") if each in text]
    none = pytester.runpytest_inprocess("-p", "gecko_graph.pytest", "-q", "-o", "gecko_agent=", "one.gecko.yaml")
    none.stdout.fnmatch_lines(["*no agent to test*"])


def test_a_report_shows_the_newest_trial_of_a_case_first_and_sentences_for_ids(folder):
    from gecko_graph.display.page import conversations_page
    from gecko_graph.scenario import Scenario
    from gecko_graph.scenario.cases.run import run_case
    from gecko_graph.testing import scripted

    scenario = Scenario.load(folder / "cases" / "deep" / "one.gecko.yaml")
    records = [run_case(scenario, scripted({"say": "Noted."}), trial=number).record for number in range(2)]
    records[0]["score"]["milestones"][0]["text"] = "<b>said</b>"
    page = conversations_page(build_report(records), records, title="x")
    assert page.count("<h3>Note milk.</h3>") == 1
    assert page.index("trial 2,") < page.index("The agent calls note(") < page.index("trial 1,")
    assert "&lt;b&gt;said" in page


def test_the_page_and_the_report_blame_the_user_where_the_auditor_does(folder):
    from gecko_graph.display.page import conversations_page
    from gecko_graph.scenario import Scenario
    from gecko_graph.scenario.cases.run import run_case
    from gecko_graph.testing import recorded, scripted

    scenario = Scenario.load(folder / "cases" / "deep" / "one.gecko.yaml")
    audit = {"reason": "<b>Made up.</b>", "invented": True, "broke_instructions": False}
    agent = scripted({"say": "Noted."})
    result = run_case(scenario, agent, model=Models(auditor=recorded(auditor=[audit])))
    assert "the user invented something: <b>Made up.</b>" in result.explain()
    report = build_report([result.record])
    page = conversations_page(report, [result.record], title="x")
    assert (report.at_fault, report.failed, report.categories[-1].at_fault) == (["one"], 1, 1)
    assert "1 of 1 failures were the user" in page
    assert "&lt;b&gt;Made up." in page


def test_what_cannot_be_decided_neither_passes_nor_fails(folder, pytester, capsys, monkeypatch):
    """An exit code and an outcome of its own; what stays open is printed."""
    monkeypatch.setattr("gecko_graph.conversation.score.find_status", lambda *given: "unknown")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    assert main(["test", "cases", "--agent", "my_agents:good", "--json", "out.json"]) == 5
    monkeypatch.chdir(pytester.path)
    monkeypatch.delitem(sys.modules, "my_agents")
    report = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    group = report["categories"][-1]
    assert (group["passed"], group["unknown"], report["failed"]) == (0, 2, 0)
    pytester.makepyfile(my_agents=AGENTS)
    (pytester.path / "one.gecko.yaml").write_text(CASE.format(name="one", category="x"), encoding="utf-8")
    options = ("-q", "--gecko-agent", "my_agents:good", "--junitxml", "junit.xml", "one.gecko.yaml")
    done = pytester.runpytest_inprocess("-p", "gecko_graph.pytest", *options)
    done.assert_outcomes()
    assert done.ret == 5
    done.stdout.fnmatch_lines(["u *", "*unknown: one.gecko.yaml::one*", "one: unknown, *", "*1 unknown*"])
    assert ElementTree.parse(pytester.path / "junit.xml").find(".//skipped") is not None
    monkeypatch.setattr("gecko_graph.conversation.score.find_status", lambda *given: "failed")
    assert pytester.runpytest_inprocess("-p", "gecko_graph.pytest", *options).ret == 1


def test_a_claim_alone_leaves_a_conversation_unknown():
    from gecko_graph.conversation.score import find_status

    open_ = {"id": "a", "similarity": 0.0, "snapshot": 1, "threshold": 0.9, "missed": [{"unsure": True}]}
    broken, met = {**open_, "id": "b", "missed": [{}]}, {**open_, "id": "c", "similarity": 0.9}
    cases = [([met], "passed"), ([met, open_], "unknown"), ([open_, broken], "failed"), ([], "passed")]
    score = {"minefield_similarity": 0.0}
    for milestones, status in cases:
        assert find_status({**score, "milestones": milestones}, "ended", []) == status
    assert find_status({**score, "milestones": []}, "max_messages", []) == "failed"
    assert find_status({**score, "milestones": [met]}, "ended", [{"message": 0, "text": "x"}]) == "failed"
    assert find_status({"minefield_similarity": 0.1, "milestones": [met]}, "ended", []) == "failed"


def test_answers_show_their_rung_and_what_was_made_up(folder, capsys):
    """Also in a notebook; on top of a run stands how many tools make their answers up."""
    from gecko_graph import Scenario, create_conversation, format_run
    from gecko_graph.display import html_page
    from gecko_graph.testing import scripted

    assert main(["test", "cases", "--agent", "my_agents:good", "--json", "out.json", "--html", "out.html"]) == 0
    assert capsys.readouterr().out.startswith("3 of 3 tools answer with invented data: note, noted, other")
    report = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    answer = next(each for each in report["conversations"][0]["messages"] if each["sender"] == "tools")
    assert (answer["rung"], answer["made_up"]) == ("schema", True)
    assert "3 of 3 tools" in (folder / "out.html").read_text(encoding="utf-8")
    scenario = Scenario.load(folder / "cases" / "deep" / "one.gecko.yaml")
    agent = scripted({"call": "note", "args": {"text": "<b>tea</b>"}}, {"say": "Noted."})
    output = create_conversation(agent, scenario=scenario).invoke({})
    shown = format_run(output)
    assert "(schema, made up)" in str(shown)
    assert "argument note.text" in str(shown)
    for page in (shown._repr_html_(), html_page(output)):
        assert "made up</span>" in page
        assert "argument note.text" in page
        assert "<b>tea" not in page
    known = CASE.format(name="known", category="x") + "contracts: {contracts: {note: {returns: {ok: true}}}}\n"
    (folder / "known.gecko.yaml").write_text(known, encoding="utf-8")
    assert main(["test", "known.gecko.yaml", "--agent", "my_agents:good"]) == 0
    assert "2 of 3 tools" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("found", "end"), [("", "is not said"), ("I am sorry.", 'is not said; compared with "I am sorry."')]
)
def test_a_missed_claim_names_the_sentence_that_it_was_compared_with_if_there_is_one(found, end):
    missed = {"part": "claim", "place": "says", "similarity": 0.0, "wanted": "it is due", "reason": "is not said"}
    assert format_missed({**missed, "found": found}) == f'  says "it is due": {end}'
