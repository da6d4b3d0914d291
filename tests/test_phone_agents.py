"""Agents of all kinds on examples/phone: a chat model, a create_agent, a server's model, a rehearsing agent."""

from __future__ import annotations

import json
import threading

import pytest

from gecko_graph.cli import main
from gecko_graph.scenario.cases.result import run_case
from gecko_graph.testing import scripted
from gecko_graph.tools.augment import AUGMENTATIONS, augment, find_faces
from tests.phone import CASES, FOLDER, Server, agents, converse, good, hasty, load, lost, rehearsing, rename

pytest.importorskip("scipy")
pytest.importorskip("rouge_score")
pytest.importorskip("langchain")

EACH_ONCE = [(name, [*AUGMENTATIONS][number % len(AUGMENTATIONS)]) for number, name in enumerate(CASES)]


@pytest.fixture
def server():
    with Server() as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield running
        running.shutdown()


def check_augmented(name, how):
    case = load(name)
    faces = find_faces(augment(case.tools, case.needs, how))
    replies = rename(agents(name)["good"], {own: face.name for own, face in faces.items()})
    result = run_case(case, scripted(*replies), augmentation=how)
    assert result.score == 1.0, f"{how}: {result.transcript}"


@pytest.mark.parametrize(("name", "how"), EACH_ONCE)
def test_a_good_agent_scores_one_under_an_augmentation(name, how):
    check_augmented(name, how)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_good_agent_scores_one_under_every_augmentation(name):
    for how in AUGMENTATIONS:
        check_augmented(name, how)


def test_own_names_lose_where_names_are_scrambled():
    result = run_case(load("wifi-off"), scripted(*agents("wifi-off")["good"]), augmentation="tool_names_scrambled")
    assert lost(result.record["score"]) == ["off"]


@pytest.mark.parametrize("name", CASES)
def test_a_create_agent_is_worth_as_much_as_its_model(name):
    alone, framed = converse(scripted(*agents(name)["good"]), load(name)), converse(good, load(name))
    assert framed["score"]["similarity"] == alone["score"]["similarity"] == 1.0
    assert framed["score"]["milestones"] == alone["score"]["milestones"]
    assert framed["score"]["turns"] == alone["score"]["turns"]


@pytest.mark.parametrize("name", ["dinner-at-eight", "way-to-the-library", "nearest-pharmacy"])
def test_a_model_behind_an_address_is_an_agent(name, server):
    output = converse(server.url, load(name))
    assert output["score"]["similarity"] == 1.0
    shown = {each["function"]["name"] for each in server.asked[0]["tools"]}
    assert shown == set(load(name).tools.names)
    asked = json.dumps([body["messages"] for body in server.asked], ensure_ascii=False)
    assert load(name).user.goal not in asked, "what only the user knows"
    assert all(each not in asked for each in load(name).user.knows if each not in output["messages"][-2].text)


WEAK = ["home-safely", "rain-in-lisbon", "where-am-i", "bucks-for-euros", "days-to-christmas", "forget-the-plumber"]


@pytest.mark.parametrize("name", WEAK)
def test_rehearsing_raises_what_a_weak_planner_is_worth(name):
    """The planner's first try loses milestones; in a rehearsal it may try again before anything is touched."""
    weak = run_case(load(name), hasty)
    assert weak.score == pytest.approx(agents(name)["bad"][1]["score"], abs=0.001)
    assert weak.score < run_case(load(name), rehearsing).score == 1.0


@pytest.mark.parametrize(
    ("agent", "code", "score"), [("good", 0, "1.000"), ("hasty", 1, "0.333"), ("rehearsing", 0, "1.000")]
)
def test_the_command_takes_them_all(agent, code, score, capsys):
    case = FOLDER / "cases" / "bucks-for-euros.gecko.yaml"
    assert main(["test", str(case), "--agent", f"tests.phone:{agent}"]) == code
    assert f"all                    1       {score}" in capsys.readouterr().out


def test_the_command_takes_an_address(server):
    case = FOLDER / "cases" / "wifi-off.gecko.yaml"
    assert main(["test", str(case), "--agent", server.url]) == 0


@pytest.mark.slow
def test_the_command_holds_all_cases(capsys):
    assert main(["test", str(FOLDER), "--agent", "tests.phone:good"]) == 0
    assert "24 of 24 passed" in capsys.readouterr().out
