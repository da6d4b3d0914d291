"""The baselines on recorded models: what each sees of earlier trials, what it costs, who is chosen; and the table."""

from __future__ import annotations

import asyncio

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from evals.baselines import problems
from evals.baselines.methods import BASELINES, TEMPERATURE, warmed, without
from evals.harness.options import Options
from evals.suites.compare import PUBLISHED, Compare
from gecko_graph import GeckoContext, Models, Scenario
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.scenario import examples
from tests.evals.kept import kept_cases, read_summary, solved_by_arm

FILES = Scenario.load(examples()["files"])
WRONG, RIGHT = FILES.turns[0].replies["planner"]


class Listening(RecordedModel):
    """A recorded model that writes down what it is shown, by role."""

    heard: list = Field(default_factory=list)

    def _reply(self, messages, run_manager, kwargs):
        self.heard.append((run_manager.metadata["gecko_role"], "\n".join(str(each.content) for each in messages)))
        return super()._reply(messages, run_manager, kwargs)


def play(name, *, attempts, judge=(), retries=3, create=None):
    model = Listening(turns=[{"planner": list(attempts), "judge": list(judge)}], heard=[])
    graph = (create or BASELINES[name])(
        FILES.tools,
        models=Models(model),
        default=GeckoContext(max_retries=retries),
        checkpointer=InMemorySaver(),
    )
    config = {"configurable": {"thread_id": "1"}}
    run = asyncio.run(graph.ainvoke({"messages": FILES.inputs()["messages"], "task_state": FILES.state}, config))
    return run["rehearsal"], model.heard


def solved(rehearsal) -> bool:
    return problems.of_scenario(FILES).solved([rehearsal])


def by(role, heard):
    return [text for who, text in heard if who == role]


def test_plain_is_one_attempt_and_no_critic():
    rehearsal, heard = play("plain", attempts=[WRONG, RIGHT])
    assert len(rehearsal["attempts"]) == 1
    assert not solved(rehearsal)
    assert not by("judge", heard)
    assert "checklist" not in rehearsal["usage"]


def test_reflexion_reflects_between_whole_trials_and_never_sees_the_state():
    said = [{"success": False, "reflection": "Make the folder inside document."}, {"success": True}]
    rehearsal, heard = play("reflexion", attempts=[WRONG, RIGHT], judge=said)
    assert [attempt["number"] for attempt in rehearsal["attempts"]] == [1, 2]
    assert rehearsal["chosen"] == 2
    assert solved(rehearsal)
    assert rehearsal["usage"]["judge"]["calls"] == 2
    assert "../temp" in by("judge", heard)[0]  # the calls
    assert "Sales grew" not in "".join(by("judge", heard))  # what the state holds
    second = by("planner", heard)[len(WRONG)]
    assert "Make the folder inside document." in second
    assert "../temp" not in second  # of the trial itself only the reflection is remembered
    starts = {attempt["start_digest"] for attempt in rehearsal["attempts"]}
    assert len(starts) == 1


def test_reflexion_remembers_three_reflections_and_stops_with_the_retries():
    said = [{"success": False, "reflection": f"lesson {n}"} for n in range(1, 9)]
    rehearsal, heard = play("reflexion", attempts=[WRONG] * 6, judge=said, retries=4)
    assert len(rehearsal["attempts"]) == 5
    assert rehearsal["usage"]["judge"]["calls"] == 4  # after the last trial there is nobody to tell
    last = by("planner", heard)[-1]
    assert "lesson 1" not in last
    assert all(f"lesson {n}" in last for n in (2, 3, 4))


def test_self_refine_keeps_all_earlier_plans_and_critiques():
    said = [{"points": ["temp is in the wrong place"]}, {"points": ["ls is not needed"]}, {"points": []}]
    rehearsal, heard = play("self-refine", attempts=[WRONG, RIGHT, RIGHT], judge=said)
    assert len(rehearsal["attempts"]) == 3
    assert solved(rehearsal)
    third = by("planner", heard)[-1]
    assert "../temp" in third
    assert "temp is in the wrong place" in third
    assert "ls is not needed" in third


@pytest.mark.parametrize(("said", "chosen"), [({"best": 2}, 2), ({"best": 9}, 1), ("no idea", 1)])
def test_best_of_n_makes_n_trials_that_know_nothing_of_each_other_and_picks(said, chosen):
    # the judge of best-of-n is asked once, when all n are there: its reply is the n-th recorded one
    rehearsal, heard = play("best-of-n", attempts=[WRONG, RIGHT, WRONG], judge=[None, None, said], retries=2)
    assert len(rehearsal["attempts"]) == 3
    assert rehearsal["chosen"] == chosen
    assert solved(rehearsal) == (chosen == 2)
    assert not any("An earlier attempt" in text for text in by("planner", heard))


def test_the_trials_of_best_of_n_may_differ_where_the_planner_would_repeat_itself():
    cold = Options(base_url="http://localhost").chat("openai:m")
    warm = warmed(Models(planner=cold, judge=cold))
    assert (cold.temperature, warm.get("planner").temperature) == (0, TEMPERATURE)
    assert warm.get("judge") is cold
    recorded = Models(RecordedModel())
    assert warmed(recorded) is recorded


def test_merge_to_one_is_one_attempt_under_one_longer_prompt():
    rehearsal, heard = play("merge-to-one", attempts=[RIGHT])
    _, plain = play("plain", attempts=[RIGHT])
    assert solved(rehearsal)
    assert set(rehearsal["usage"]) == {"planner"}
    assert "checklist" in heard[0][1]
    assert "imagine" in heard[0][1]
    assert "imagine" not in plain[0][1]


@pytest.mark.parametrize("name", ["reflexion", "self-refine"])
def test_a_critic_that_babbles_ends_the_trials(name):
    rehearsal, _ = play(name, attempts=[WRONG, RIGHT], judge=["what a nice day"])
    assert len(rehearsal["attempts"]) == 1


def test_every_baseline_costs_what_its_model_says():
    for name in BASELINES.keys() - {"create_agent"}:  # its replies are counted in test_own_history
        rehearsal, heard = play(name, attempts=[RIGHT] * 4, judge=[{"success": True, "points": [], "best": 1}] * 4)
        assert sum(each["calls"] for each in rehearsal["usage"].values()) == len(heard), name
        assert solved(rehearsal), name


def test_the_same_loop_plays_the_rehearsal():
    rehearsal, _ = play("", attempts=[RIGHT], create=without())
    assert rehearsal["verdict"]["status"] == "failed"  # nobody wrote a checklist here
    assert solved(rehearsal)


def test_compare_measures_what_needs_no_model_and_says_what_it_leaves_out(run, tmp_path, capsys):
    assert run(Compare, "--arms", f"gats,{','.join(BASELINES)}") == 0
    told = read_summary(tmp_path)
    assert {*PUBLISHED, "create_agent"} == {*BASELINES, "gats"}
    assert sum("needs a model" in note for note in told["notes"]) == 5
    assert solved_by_arm(tmp_path) == {"plain": 3, "gats": 4}
    assert not any("usage" in line["values"] for line in kept_cases(tmp_path))  # written plans cost nothing


def test_compare_refuses_methods_that_nobody_can_speak_for(run, capsys):
    assert run(Compare, "--arms", "reflexion") == 2
    assert "--model" in capsys.readouterr().err
