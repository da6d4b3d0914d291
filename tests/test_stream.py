"""The typed streams: what custom mode sends and the records keep, wherever the graph stands."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from gecko_graph.stream import STREAMS, Rehearsing
from tests import desk
from tests.agents import APPROVE, embed, thread
from tests.doubts import texts
from tests.test_agent import PLAN, TASK, Shop, agent_of
from tests.test_toolgate_runs import given as request
from tests.test_toolgate_runs import graph as toolgate

pytestmark = pytest.mark.filterwarnings("ignore:The v3 streaming protocol")

NAMES = STREAMS


def pairs(events):
    told = [(event["method"], event["params"]["data"]) for event in events]
    return [(method.removeprefix("custom:"), data) for method, data in told if method.startswith("custom:")]


def read(graph, inputs, config=None, *, transformers=(Rehearsing,)):
    """What a run streams, in its order, as pairs of stream and item."""
    return pairs(graph.stream_events(inputs, config, version="v3", transformers=[*transformers]))


async def aread(graph, inputs, config=None, *, transformers=(Rehearsing,)):
    run = await graph.astream_events(inputs, config, version="v3", transformers=[*transformers])
    return pairs([event async for event in run])


def of(told, name):
    return [item for each, item in told if each == name]


def custom(graph, inputs, config=None):
    """What custom mode sends of the same run."""
    parts = graph.stream(inputs, config, stream_mode=["custom"], subgraphs=True, version="v2")
    return [part["data"] for part in parts]


def expected(events):
    """The streams that these events tell: attempts, changes and verdicts as they are, and each step's end."""
    by_type = {"gecko.attempt": "attempts", "gecko.change": "changes", "gecko.verdict": "verdicts"}
    found = {name: [each for each in events if by_type.get(each["type"]) == name] for name in by_type.values()}
    ends = {}
    for each in events:
        if each["type"] == "gecko.complaint":
            ends[each["call"]["id"]] = (each["attempt"], each["call"], each["complaints"])
        elif each["type"] == "gecko.result" or texts(each, "refused"):
            ends[each["call"]["id"]] = (each["attempt"], each["call"], (each["status"], each["result"]))
    return found, sorted(ends.values(), key=str)


def end_of(step):
    outcome = step.get("outcome")
    end = (outcome["status"], outcome["result"]) if outcome else step["complaints"]
    return (step["attempt"], step["call"], end)


def assert_as_custom(told, events):
    streams, ends = expected(events)
    assert {name: of(told, name) for name in streams} == streams
    assert sorted(map(end_of, of(told, "steps")), key=str) == ends
    assert ends


def desk_alone():
    return desk.gecko(desk.WRONG, desk.RIGHT)


ALIKE = {
    "alone": desk_alone,
    "embedded": lambda: embed(desk_alone()),
    "two deep": lambda: embed(embed(desk_alone())),
    "called in a node": lambda: embed(lambda state: {"rehearsal": desk_alone().invoke(state)["rehearsal"]}),
}


@pytest.mark.parametrize("place", ALIKE)
async def test_the_streams_are_the_same_wherever_the_graph_stands(place):
    made = ALIKE[place]
    told = await aread(made(), desk.inputs()) if place == "embedded" else read(made(), desk.inputs())
    assert_as_custom(told, custom(made(), desk.inputs()))
    (rehearsal,) = of(told, "rehearsals")
    steps = [{**step, "attempt": each["number"]} for each in rehearsal["attempts"] for step in each["steps"]]
    assert of(told, "steps") == steps
    attempt = ["attempts", "steps", "changes", "steps", "changes", "verdicts"]
    assert [name for name, _ in told] == [*attempt, *attempt, "rehearsals"]


def test_streams_are_read_by_name_and_interleaved():
    run = desk_alone().stream_events(desk.inputs(), version="v3", transformers=[Rehearsing])
    assert {*NAMES} <= {*run.extensions}
    assert [name for name, _ in run.interleave("steps", "verdicts")] == ["steps", "steps", "verdicts"] * 2
    run = desk_alone().stream_events(desk.inputs(), version="v3", transformers=[Rehearsing])
    assert [step["call"]["name"] for step in run.extensions["steps"]] == ["add_tray", "put"] * 2
    run = embed(desk_alone()).stream_events(desk.inputs(), version="v3", transformers=[Rehearsing])
    inner = [[step["attempt"] for step in each.extensions["steps"]] for each in run.subgraphs]
    assert inner == [[1, 1, 2, 2]], "a subgraph's own streams"


def test_forward_execution():
    told, (streams, ends) = read(toolgate(), request()), expected(custom(toolgate(), request()))
    assert {name: of(told, name) for name in streams} == streams
    steps = of(told, "steps")
    assert [step["call"]["name"] for step in steps] == ["open_shop", "gift", "gift", "sell"]
    assert sorted((end_of(step) for step in steps if "outcome" in step), key=str) == ends
    assert steps[2]["complaints"], "that a model declined to call a tool is a step, and no event"
    out = toolgate().invoke(request())
    assert steps == [{**step, "attempt": 1} for step in out["record"]["steps"]]


def test_a_question_is_told_once_and_nothing_of_the_run_before_again():
    class Loud(Shop):
        def order(self, item: str, quantity: int) -> dict:
            """Order an item."""
            return super().order(item, quantity) | {"item": item.upper()}

    graph = embed(agent_of(Loud(), PLAN), InMemorySaver())
    first = read(graph, TASK, thread())
    (question,) = of(first, "questions")
    (waiting,) = graph.get_state(thread()).interrupts
    assert (question["id"], question["value"]) == (waiting.id, waiting.value)
    assert len(of(first, "rehearsals")) == 1
    second = read(graph, Command(resume={question["id"]: {"decisions": [APPROVE] * 3}}), thread())
    out = graph.get_state(thread()).values
    assert {name for name, _ in second} == {"steps", "changes"}
    real = [(step["attempt"], step["call"], step["outcome"]["rung"]) for step in of(second, "steps")]
    assert real == [(0, each["call"], "real") for each in out["execution"]["calls"]]
    assert [change.get("drift") for change in of(second, "changes")] == [
        each["drift"] or None for each in out["execution"]["calls"]
    ]
    assert of(second, "changes")[0]["drift"][0]["path"] == "/item"


@pytest.mark.parametrize("write", ["text", [None, {"v": 1}], {"$writes": [3]}, {"records": [{}, 3]}])
def test_what_others_write_under_our_names_is_left_alone(write):
    names = ("steps", "world", "gecko_done", "journal", "rehearsal", "bookkeeping", "gecko_journal")
    builder = StateGraph(TypedDict("Other", dict.fromkeys(names, object)))
    for node in ("validator", "sync", "finish", "begin"):
        builder.add_node(node, lambda state: dict.fromkeys(names, write))
    for one, other in (("validator", "sync"), ("sync", "finish"), ("finish", "begin")):
        builder.add_edge(one, other)
    builder.add_edge(START, "validator")
    assert read(builder.compile(), {"steps": write, "bookkeeping": write}) == []
