"""Faults: seeded, on rungs of their own, and never a change of the world by a call that failed."""

from dataclasses import replace

import pytest

from gecko_graph import Scenario, Toolkit, World, create_conversation
from gecko_graph.context import LADDER, GeckoContext
from gecko_graph.conversation.faults import build_faults
from gecko_graph.errors import ScenarioError
from gecko_graph.scenario.cases.run import run_case
from gecko_graph.testing import scripted

TEXT = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
NONE = {"type": "object", "properties": {}}
CONTRACTS = {
    "add": {"effects": [{"op": "add", "path": ["people", "-"], "value": {"name": "{{ args.name }}", "age": 1}}]},
    "find": {"returns": "{{ [one for one in state.people if one.name == args.name] }}"},
    "found": {"returns": {"people": "{{ [one for one in state.people if one.name == args.name] }}"}},
    "first": {"returns": "{{ state.people[0] }}"},
    "count": {"returns": "{{ len(state.people) }}"},
}
PEOPLE = {"people": [{"name": name, "age": age, "id": age} for name, age in (("Ana", 3), ("Bo", 4), ("Cy", 5))]}


def reading():
    tools = [{"name": name, "parameters": NONE if name in ("first", "count") else TEXT} for name in CONTRACTS]
    made = Toolkit.from_tools(tools).with_contracts({"contracts": CONTRACTS})
    return made.replace(*(replace(each, effect="write" if each.name == "add" else "read") for each in made))


def world(*kinds, needed=None, seed=0):
    tools = reading()
    rungs = build_faults(kinds, [tools[name] for name in needed or tools.names], seed=seed)
    return World(tools, state=PEOPLE, context=GeckoContext(ladder=(*kinds, *LADDER), seed=seed), rungs=rungs)


def ask(one, tool, **args):
    outcome = one.call({"name": tool, "args": args})["outcome"]
    return outcome["rung"], outcome["status"], outcome["result"]


@pytest.mark.parametrize(("kind", "times"), [("fails_once", 1), ("times_out", 1), ("rate_limited", 2)])
def test_a_call_that_fails_changes_nothing_and_then_the_tool_works(kind, times):
    one = world(kind, needed=["add"])
    for _ in range(times):
        assert ask(one, "add", name="Di")[:2] == (kind, "error")
        assert one.state == PEOPLE
    assert ask(one, "add", name="Di")[:2] == ("contract", "ok")
    assert [each["name"] for each in one.state["people"]] == ["Ana", "Bo", "Cy", "Di"]
    assert ask(World.restore(reading(), one.snapshot()), "count")[2] == 4


def test_an_old_state_answers_the_first_read_after_a_write():
    one = world("answers_late", needed=["count"])
    assert ask(one, "count") == ("contract", "ok", 3)
    for name, before in (("Di", 3), ("Ed", 4)):
        ask(one, "add", name=name)
        assert ask(one, "count") == ("answers_late", "ok", before)
        assert ask(one, "count") == ("contract", "ok", before + 1)
    assert len(one.state["people"]) == 5


def test_more_is_answered_than_was_asked():
    more = [{key: each[key] for key in ("name", "age", "id")} for each in PEOPLE["people"][1:]]
    for name, args, read in (
        ("find", {"name": "Ana"}, lambda result: result),
        ("found", {"name": "Ana"}, lambda result: result["people"]),
        ("first", {}, lambda result: [{key: result[key] for key in PEOPLE["people"][0]}, *result["also_found"]]),
    ):
        one = world("answers_more", needed=[name])
        rung, status, result = ask(one, name, **args)
        rows = read(result)
        assert (rung, status, rows[0]) == ("answers_more", "ok", PEOPLE["people"][0])
        assert sorted(rows[1:], key=lambda each: each["age"]) == more
        assert one.state == PEOPLE
    assert ask(world("answers_more", needed=["find"]), "find", name="Nobody")[2] == [], "nothing is found for nothing"
    assert ask(world("answers_more", needed=["count"]), "count")[2] == 3


def test_half_of_the_needed_tools_are_struck_drawn_by_the_seed():
    drawn = set()
    calls = {"find": {"name": "Ana"}, "first": {}, "count": {}}
    for seed in range(8):
        one = world("fails_once", needed=[*calls], seed=seed)
        struck = [name for name, args in calls.items() if ask(one, name, **args)[1] == "error"]
        assert len(struck) == 2
        drawn.add(tuple(struck))
    assert len(drawn) > 1


def case(**more):
    document = {
        "version": 1, "name": "x", "tools": [{"name": "add", "parameters": TEXT}], "state": PEOPLE,
        "contracts": {"contracts": {"add": CONTRACTS["add"]}},
        "user": {"goal": "Di", "opening": "Add Di.", "script": [{"end": True}]},
        "milestones": [{"id": "added", "state": {"at": "people", "addition": [{"name": "Di"}]}}],
    }  # fmt: skip
    return Scenario.from_dict({**document, **more})


ADD, SAY = {"call": "add", "args": {"name": "Di"}}, {"say": "Done."}


@pytest.mark.parametrize("kind", ["fails_once", "times_out"])
def test_who_tries_again_survives(kind):
    for scenario, how in ((case(faults=[kind]), None), (case(), kind)):
        again, once = (run_case(scenario, scripted(*says), augmentation=how) for says in ((ADD, ADD, SAY), (ADD, SAY)))
        assert (again.score, once.score) == (1.0, 0.0)
        assert again.record["augmentation"] == kind


def test_which_call_a_fault_meets_is_no_race():
    other = {"call": "add", "args": {"name": "Ed"}}
    score = create_conversation(scripted({"calls": [ADD, other]}, SAY), scenario=case(faults=["fails_once"])).invoke({})
    assert (score["score"]["races"], score["score"]["failed_calls"]) == (0, 1)
    assert [each["name"] for each in score["world"]["state"]["people"]][3:] == ["Ed"]


def test_a_misspelt_fault_is_a_mistake():
    with pytest.raises(ScenarioError, match=r"faults\[0\]"):
        case(faults=["fails_twice"])
