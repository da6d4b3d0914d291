"""Agents of all kinds on examples/phone: a chat model, a create_agent, a server's model, a rehearsing agent."""

from __future__ import annotations

import json
import re

import pytest

from gecko_graph.cli import main
from gecko_graph.conversation.augment import AUGMENTATIONS, augment, find_faces
from gecko_graph.scenario.cases.run import run_case
from gecko_graph.testing import scripted
from tests.live_library import Live, call
from tests.phone import CASES, FOLDER, agents, converse, hasty, load, lost, rehearsing, rename

pytest.importorskip("scipy")
pytest.importorskip("rouge_score")
pytest.importorskip("langchain.agents")  # here, not in a thread: its import silences warnings of its own

EACH_ONCE = [*zip(CASES, AUGMENTATIONS, strict=False)]


@pytest.mark.parametrize(("name", "how"), EACH_ONCE)
def test_a_good_agent_scores_one_under_an_augmentation(name, how):
    case = load(name)
    faces = find_faces(augment(case.tools, case.needs, how))
    replies = rename(agents(name)["good"], {own: face.name for own, face in faces.items()})
    result = run_case(case, scripted(*replies), augmentation=how)
    assert result.score == 1.0, f"{how}: {result.transcript}"


def test_a_model_behind_an_address_is_an_agent():
    case, replies = load("home-safely"), agents("home-safely")["good"]

    def reply(results):
        does = replies[len(results)]
        return call(does["call"], **does["args"]) if "call" in does else does["say"]

    with Live(reply) as live:
        output = converse(live.url, case)
    assert output["score"]["similarity"] == 1.0
    (_, first), *_ = live.asked
    assert {each["function"]["name"] for each in first["tools"]} == set(case.tools.names)
    asked = json.dumps([body["messages"] for _, body in live.asked], ensure_ascii=False)
    assert case.user.goal not in asked, "what only the user knows"


WEAK = ["home-safely", "days-to-christmas"]


@pytest.mark.parametrize("name", WEAK)
def test_rehearsing_raises_what_a_weak_planner_is_worth(name):
    """The planner's first try loses milestones; in a rehearsal it may try again before anything is touched."""
    weak = run_case(load(name), hasty)
    assert lost(weak.record["score"]) == agents(name)["bad"][1]["loses"]
    assert weak.score < run_case(load(name), rehearsing).score == 1.0


@pytest.mark.parametrize(("agent", "code", "score"), [("hasty", 1, "0.333"), ("rehearsing", 0, "1.000")])
def test_the_command_takes_them_all(agent, code, score, capsys):
    case = FOLDER / "cases" / "bucks-for-euros.gecko.yaml"
    assert main(["test", str(case), "--agent", f"tests.phone:{agent}"]) == code
    assert re.search(rf"^all +1 +{score} ", capsys.readouterr().out, re.MULTILINE)
