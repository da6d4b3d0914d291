"""`--resume` continues the same run and no other: digests of tools, start state and turns are compared."""

import copy
import json

import pytest
import yaml

from gecko_graph.scenario import shipped
from tests.cli.command import SHOP_API, mistake
from tests.pen_case import CHECK, OPENAPI, PUT, SAY, case

NEVER = {"id": "never", "check": "'ink' in state.box"}
TURNS = [
    {"user": "Put the ink away.", "checklist": [NEVER], "replies": {"planner": [[SAY]]}},
    {"user": "Put the pen away.", "checklist": [CHECK], "replies": {"planner": [[PUT, SAY]]}},
]


@pytest.fixture
def command(tmp_path, run):
    """Write a scenario, its first turn failing, and run it with `--save`."""

    def write_and_run(*words, thread="t", **changes):
        document = case(turns=copy.deepcopy(TURNS), limits={"max_retries": 0}) | changes
        (tmp_path / "case.yaml").write_text(yaml.safe_dump(document))
        saved = ("--save", tmp_path / "runs.sqlite", "--thread", thread)
        return run("run", tmp_path / "case.yaml", *saved, *words)

    return write_and_run


def test_a_failed_turn_counts_however_often_the_run_is_resumed(command, interrupt):
    interrupt(2)
    assert command()[0] == 130
    interrupt(0)
    for expected in ("task     Put the pen away.", "t is already finished"):
        code, out, _ = command("--resume")
        assert code == 1
        assert "result       accepted" in out
        assert "turn 1 of this run failed" in out
        assert expected in out


def edited(number, **changes):
    turns = copy.deepcopy(TURNS)
    turns[number] |= changes
    return turns


OTHER_TOOLS = json.loads(json.dumps(OPENAPI).replace("Put an item", "Lay an item"))
OTHER_CONTRACT = json.loads(json.dumps(OPENAPI).replace("it is in the box", "it is there"))
DIFFERENT = [
    ("the tools", {"tools": OTHER_TOOLS}),
    ("the tools, the start state", {"tools": OTHER_CONTRACT, "state": {"box": ["cap"]}}),
    ("the start state", {"state": {"box": ["cap"]}}),
    ("turn 1", {"turns": edited(0, checklist=[{**NEVER, "check": "True"}])}),
    ("turn 2", {"turns": TURNS[:1]}),
]


@pytest.mark.parametrize(("part", "changes"), DIFFERENT)
def test_another_scenario_is_refused_with_what_differs(command, interrupt, part, changes):
    interrupt(2)
    assert command()[0] == 130
    interrupt(0)
    message = mistake(command("--resume", **changes))
    assert all(said in message for said in ("case.yaml", f"sources: {part}.", "same files"))
    assert command("--resume")[0] == 1, "the run itself is as it was"


FULL = (429, b'{"error": {"message": "You exceeded your current quota"}}')


@pytest.mark.parametrize("role", ["Checklist", "Judgement"])
def test_a_checklist_or_judge_without_an_answer_ends_with_3_and_is_asked_again(run, server, tmp_path, role):
    (tmp_path / "state.yaml").write_text(json.dumps(shipped("shop").state))
    words = ("run", SHOP_API, "--task", "Put tea into my cart.", "--state", tmp_path / "state.yaml")
    words = (*words, "--model", "openai:any", "--base-url", server.url, "--save", tmp_path / "runs.sqlite")
    words = (*words, "--set", "max_retries=0")
    server.fails, server.failing = FULL, role
    code, out, _ = run(*words)
    assert code == 3, out
    hint = out.splitlines()[-1]
    assert hint.startswith("hint ")
    assert "checklist" in hint if role == "Checklist" else "judge" in hint
    assert "exceeded your current quota" in hint
    server.fails = None
    code, out, _ = run(*words, "--resume")
    assert code == 0, out


def test_what_has_not_begun_may_change(command, interrupt):
    interrupt(1)
    assert command()[0] == 130
    interrupt(0)
    new = edited(1, user="Put the pen into the box.")
    new[0]["replies"] = {"planner": [[{"say": "I have none."}]]}
    code, out, _ = command("--resume", "--set", "seed=3", turns=new)
    assert code == 1
    assert "task     Put the pen into the box." in out
