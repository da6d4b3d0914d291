"""What a second turn knows of the first one, standalone and embedded."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import GeckoContext, Models, RehearsalState, Tool, Toolkit, create_gecko
from gecko_graph.values.notes import notes_of
from tests import desk
from tests.agents import embed, thread
from tests.doubts import values
from tests.test_prompts_in_runs import Listener

FUNCTIONS = [desk.function("find", "Find flights."), desk.function("book", "Book a flight.", "flight")]
DONE = {"items": [{"id": "item-1", "status": "success", "reason": "done"}], "ask_user": False, "feedback": ""}
FAILED = {"items": [{"id": "item-1", "status": "failed", "reason": "no"}], "ask_user": False, "feedback": "no"}
ITEM = {"items": [{"description": "it is done"}]}
KNOBS = GeckoContext(max_retries=0, semantic_validation=False)


def turns(first=DONE):
    return [
        {
            "planner": [[{"call": "find"}, {"say": "I found some flights."}]],
            "simulator": [{"status": "ok", "result": {"id": "F-7731"}}],
            "checklist": [ITEM],
            "judge": [first],
        },
        {
            "planner": [[{"call": "book", "args": {"flight": "F-7731"}}, {"say": "Booked."}]],
            "simulator": [{"status": "ok", "result": "booked", "patch": [{"op": "add", "path": "/b", "value": "B-9"}]}],
            "checklist": [ITEM],
            "judge": [DONE],
        },
    ]


def gecko(model, saver=None, *, simulate=None):
    effects = {"find": "read", "book": "write"}
    tools = Toolkit.from_tools(FUNCTIONS).declare(
        *(Tool(name, effect=effect, simulate=(simulate or {}).get(name)) for name, effect in effects.items())
    )
    roles = ("planner", "simulator", "checklist", "judge", "bootstrapper")
    return create_gecko(tools, model=Models(**dict.fromkeys(roles, model)), context=KNOBS, checkpointer=saver)


def embedded(model, saver, **more):
    return embed(gecko(model, **more), saver, RehearsalState)


@pytest.mark.parametrize("make", [gecko, embedded])
def test_the_second_turn_knows_what_the_first_one_found(make):
    model = Listener(turns=turns())
    graph = make(model, InMemorySaver())
    first = graph.invoke({"messages": [("user", "Find a flight")]}, thread())
    assert first["messages"][-1].text == "I found some flights."
    second = graph.invoke({"messages": [("user", "Book it")]}, thread())
    for role in ("planner", "judge", "checklist"):
        assert "F-7731" in "\n".join(message.text for message in model.told(role)[-1]), role
    seen = model.told("planner")[-2]
    assert [message.type for message in seen] == ["system", "human", "ai", "tool", "ai", "human"]
    (made,) = notes_of(second["rehearsal"]["verdict"], "made_up")
    data = made["data"]
    assert (made["where"], data["value"], data["origin"]["rung"]) == ("/flight", "F-7731", "model")
    assert second["rehearsal"]["origins"][data["call"]] == {"/flight": [data["origin"]]}


@pytest.mark.parametrize(("make", "first"), [(gecko, FAILED), (embedded, DONE)])
def test_what_is_made_up_of_the_state_stays_so_where_the_caller_edits_something_else(make, first):
    told = turns(first)
    told[0]["bootstrapper"] = [{"domain": {"flights": [{"id": "F-7731"}], "user": "Bo"}}]
    told[0]["planner"] = [[{"say": "There is one flight."}]]
    graph = make(Listener(turns=told), InMemorySaver())
    graph.invoke({"messages": [("user", "Which flights are there?")]}, thread())
    state = graph.get_state(thread()).values.get("task_state") or told[0]["bootstrapper"][0]["domain"]
    edited = {**state, "runtime_state": state.get("runtime_state", {}), "user": "Ann"}
    second = graph.invoke({"messages": [("user", "Book it")], "task_state": edited}, thread())
    assert values(second["rehearsal"]["verdict"], "made_up") == ["F-7731"]


@pytest.mark.parametrize("make", [gecko, embedded])
def test_what_was_discarded_is_nowhere_in_the_next_turn(make):
    model = Listener(turns=turns(FAILED))
    graph = make(model, InMemorySaver())
    first = graph.invoke({"messages": [("user", "Find a flight")]}, thread())
    assert first["messages"][-1].text.startswith("Rehearsal failed; nothing was done.")
    heard = len(model.heard)
    graph.invoke({"messages": [("user", "Book it")]}, thread())
    _, messages = next(each for each in model.heard[heard:] if each[0] == "planner")
    assert not [message for message in messages if "F-7731" in message.text or "I found" in message.text]


NOT_FOUND = {**FAILED, "feedback": "F-7731 was not found."}


@pytest.mark.parametrize(("make", "first"), [(gecko, DONE), (embedded, NOT_FOUND)])
def test_what_only_an_earlier_answer_speaks_of_is_made_up(make, first):
    told = [{**turns(first)[0], "planner": [[{"say": "There is one flight, F-7731."}]]}, turns()[1]]
    graph = make(Listener(turns=told), InMemorySaver())
    graph.invoke({"messages": [("user", "Find a flight")]}, thread())
    second = graph.invoke({"messages": [("user", "Book it")]}, thread())
    assert values(second["rehearsal"]["verdict"], "made_up") == ["F-7731"]


@pytest.mark.parametrize("make", [gecko, embedded])
def test_what_a_model_wrote_to_the_state_stays_supposed(make):
    planner = [[{"call": "find"}, {"call": "book", "args": {"flight": "B-9"}}, {"say": "Again."}]]
    said = [*turns()[::-1], {**turns()[0], "planner": planner}]
    said[1] = said[2] = {**said[2], "simulator": said[0]["simulator"] * 2}
    graph = make(Listener(turns=said), InMemorySaver(), simulate={"find": lambda state: state})
    first = graph.invoke({"messages": [("user", "Book one")], "task_state": {"real": "R-1"}}, thread())
    assert first["task_state"] == {"real": "R-1", "b": "B-9"}
    second = graph.invoke({"messages": [("user", "Book it again")]}, thread())
    (made,) = notes_of(second["rehearsal"]["verdict"], "made_up")
    assert made["data"]["origin"] == {"kind": "chosen", "from": "state", "path": "/b"}
    given = {"messages": [("user", "Book it again")], "task_state": {"b": "B-9", "of": "the user"}}
    assert notes_of(graph.invoke(given, thread())["rehearsal"]["verdict"], "made_up") == []
