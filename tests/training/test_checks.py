"""What rules say of a sample: schemas, its calls in a world, a goal, values without a source."""

import pytest

from gecko_graph.training.checks import Checker, as_conversation, make, reaches, to_langchain
from gecko_graph.world.world import World
from tests.training.shelf import STATE, TOOLKIT, call, said, sample

TWO = call("take", item="pen", count=2)
END = {"milestones": [{"id": "end", "last": True, "state": [{"at": "shelf", "snapshot": [{"pen": 1, "ink": 5}]}]}]}


def check(one, *later, toolkit=TOOLKIT, **more):
    verdict = Checker(toolkit, **more).check(one, later)
    return verdict["status"], verdict["by"], [(each["code"], each["path"]) for each in verdict["reasons"]]


def test_schemas_decide_without_a_toolkit():
    assert check(sample(TWO), toolkit=None) == ("keep", "rules", [])
    wrong = sample(TWO, call("take", item="pen", count="2", x=1), call("steal"))
    places = [
        ("arguments", "/label/1/arguments/count"),
        ("arguments", "/label/1/arguments/x"),
        ("tool", "/label/2/name"),
    ]
    assert check(wrong, toolkit=None) == ("drop", "rules", places)
    assert check(sample(messages=said("hello")), toolkit=None) == ("keep", "rules", [])


def test_a_value_without_a_source_is_a_reason_and_no_verdict_where_the_world_decides():
    made_up = call("take", item="pen", count=7)
    chosen = [("chosen", "/label/0/arguments/count")]
    assert check(sample(made_up), toolkit=None) == ("open", "nobody", chosen)
    decided = sample(made_up, state={"shelf": {"pen": 9}}, results=[{"left": 2}])
    assert check(decided) == ("keep", "world", [])
    assert check(decided, sources=True) == ("keep", "world", chosen)


@pytest.mark.parametrize(
    ("count", "result", "expected"),
    [
        (2, {"left": 1}, ("keep", "world", [])),
        (2, {"left": 1.0}, ("keep", "world", [])),
        (2, {"left": 2}, ("drop", "world", [("result", "/results/0")])),
        (9, {"left": 1}, ("drop", "world", [("result", "/results/0")])),
        (9, {"error": "not enough"}, ("keep", "world", [])),
        (2, {"error": "not enough"}, ("drop", "world", [("result", "/results/0")])),
    ],
)
def test_recorded_results_are_compared_with_the_worlds(count, result, expected):
    assert check(sample(call("take", item="pen", count=count), state=STATE, results=[result])) == expected
    without = check(sample(call("take", item="pen", count=count), state=STATE))  # a refusal speaks against the label
    assert without == (("keep", "rules", []) if count == 2 else ("drop", "world", [("refused", "/label/0")]))


def test_the_world_is_at_the_point_of_the_label():
    before = said("take pens", (TWO, {"left": 1}))
    assert check(sample(TWO, messages=before, state=STATE, results=[{"left": -1}]))[0] == "drop"
    assert check(sample(call("take", item="pen"), messages=before, state=STATE, results=[{"left": 0}]))[0] == "keep"


def test_what_the_messages_record_and_the_world_denies_leaves_the_row_open():
    before = said("take pens", (TWO, {"left": 7}))
    one = sample(call("take", item="pen", count=1), messages=before, state=STATE, results=[{"left": 0}])
    assert ("context", "/messages") in check(one)[2]
    assert check(one)[:2] == ("open", "nobody")


def test_a_drawn_identifier_is_no_difference_and_is_the_recorded_one_from_then_on():
    one = sample(call("note", text="x"), call("take", item="pen"), state=STATE, results=[{"id": "n-42"}, {"left": 2}])
    assert check(one) == ("keep", "world", [])
    assert check({**one, "results": [{"id": 42}, {"left": 2}]})[2] == []  # whatever it is, nothing could know it
    assert check({**one, "results": [{"number": "n-42"}, {"left": 2}]})[2] == [("result", "/results/0")]
    world = make(World(TOOLKIT, state=STATE), call("note", text="x"), [{"id": "n-42"}]).world
    assert world.state["notes"] == {"n-42": "x"}


def test_what_nothing_decides_is_open():
    assert check(sample(call("look", item="pen"), state=STATE, results=[{"n": 3}]))[::2] == (
        "open",
        [("undecided", "/label/0")],
    )
    other = TOOLKIT.select(match=["note"])
    assert ("undecided", "/label/0/name") in check(sample(TWO, state=STATE), toolkit=other)[2]
    assert ("context", "/messages") in check(sample(TWO, messages=said("x", (TWO, 1)), state=STATE), toolkit=other)[2]


def test_a_goal_decides_at_the_conversations_end():
    assert check(sample(TWO, state=STATE, goal=END)) == ("keep", "world", [])
    one = call("take", item="pen")
    assert check(sample(one, state=STATE, goal=END))[2] == [("goal", "/goal")]
    later = sample(one, messages=said("take 2 pen", (one, {"left": 2})), state=STATE, goal=END)
    assert check(sample(one, state=STATE, goal=END), later) == ("keep", "world", [])
    assert check(sample(TWO, state=STATE, goal=END), later)[0] == "drop"
    one = sample(call("take", item="pen"), messages=said("take 2 pen"), state=STATE, results=[{"left": 2}], goal=END)
    later = sample(call("take", item=7), messages=said("take 2 pen", (call("take", item="pen"), {"left": 2})))
    assert check(one, {**later, "goal": END, "state": STATE}) == ("keep", "world", []), "the later label is wrong"
    one = sample(call("take", item="pen"), messages=said("take 1 pen"), state=STATE, goal=END)
    assert check({**one, "from": [{"step": 1, "steps": 2}]}) == ("keep", "rules", []), "it goes on elsewhere"


def test_a_goal_is_met_or_not():
    world = World(TOOLKIT, state=STATE)
    messages = to_langchain(said("take 2 pen"))
    assert not reaches(world, END, messages)
    world.call({"name": "take", "args": TWO["arguments"]})
    assert reaches(world, END, messages)
    kinds = [each.type for each in as_conversation(world, messages, "done")["messages"]]
    assert kinds == ["human", "ai", "tool", "ai"]
