"""What a second turn knows of the first one, standalone and embedded."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import GeckoContext, Models, RehearsalState, Tool, Toolkit, create_gecko
from gecko_graph.values.notes import notes_of
from tests.agents import embed
from tests.doubts import values
from tests.test_prompts_in_runs import Listener

FUNCTIONS = [
    {"name": "find", "description": "Find flights.", "parameters": {"type": "object", "properties": {}}},
    {
        "name": "book",
        "description": "Book a flight.",
        "parameters": {"type": "object", "properties": {"flight": {"type": "string"}}, "required": ["flight"]},
    },
]
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


def gecko(model, saver=None, *, simulate=None, more=()):
    effects = {"find": "read", "book": "write"}
    tools = Toolkit.from_tools([*FUNCTIONS, *more]).declare(
        *(Tool(name, effect=effect, simulate=(simulate or {}).get(name)) for name, effect in effects.items())
    )
    roles = ("planner", "simulator", "checklist", "judge", "bootstrapper")
    return create_gecko(tools, model=Models(**dict.fromkeys(roles, model)), context=KNOBS, checkpointer=saver)


def embedded(model, saver, **more):
    return embed(gecko(model, **more), saver, RehearsalState)


@pytest.mark.parametrize("make", [gecko, embedded])
def test_the_second_turn_knows_what_the_first_one_found(make):
    model = Listener(turns=turns())
    graph, thread = make(model, InMemorySaver()), {"configurable": {"thread_id": "t"}}
    first = graph.invoke({"messages": [("user", "Find a flight")]}, thread)
    assert first["messages"][-1].text == "I found some flights."
    second = graph.invoke({"messages": [("user", "Book it")]}, thread)
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
    graph, thread = make(Listener(turns=told), InMemorySaver()), {"configurable": {"thread_id": "t"}}
    graph.invoke({"messages": [("user", "Which flights are there?")]}, thread)
    state = graph.get_state(thread).values.get("task_state") or told[0]["bootstrapper"][0]["domain"]
    edited = {**state, "runtime_state": state.get("runtime_state", {}), "user": "Ann"}
    second = graph.invoke({"messages": [("user", "Book it")], "task_state": edited}, thread)
    assert values(second["rehearsal"]["verdict"], "made_up") == ["F-7731"]


def test_what_a_rule_found_is_not_made_up_in_the_next_turn():
    model = Listener(turns=turns())
    thread = {"configurable": {"thread_id": "t"}}
    graph = gecko(model, InMemorySaver(), simulate={"find": lambda state: {"id": "F-7731"}})
    for task in ("Find a flight", "Book it"):
        run = graph.invoke({"messages": [("user", task)]}, thread)
    assert notes_of(run["rehearsal"]["verdict"], "made_up") == []
    ((origin,),) = (origins["/flight"] for origins in run["rehearsal"]["origins"].values())
    assert (origin["from"], origin["rung"]) == ("conversation", "python")


@pytest.mark.parametrize("make", [gecko, embedded])
def test_what_was_discarded_is_nowhere_in_the_next_turn(make):
    model = Listener(turns=turns(FAILED))
    graph, thread = make(model, InMemorySaver()), {"configurable": {"thread_id": "t"}}
    first = graph.invoke({"messages": [("user", "Find a flight")]}, thread)
    assert first["messages"][-1].text.startswith("Rehearsal failed; nothing was done.")
    heard = len(model.heard)
    graph.invoke({"messages": [("user", "Book it")]}, thread)
    _, messages = next(each for each in model.heard[heard:] if each[0] == "planner")
    assert not [message for message in messages if "F-7731" in message.text or "I found" in message.text]


@pytest.mark.parametrize("make", [gecko, embedded])
def test_what_a_model_wrote_to_the_state_stays_supposed(make):
    look = {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}
    planner = [[{"call": "look"}, {"call": "book", "args": {"flight": "B-9"}}, {"say": "Again."}]]
    said = [*turns()[::-1], {**turns()[0], "planner": planner}]
    said[1] = said[2] = {**said[2], "simulator": said[0]["simulator"] * 2}
    graph = make(Listener(turns=said), InMemorySaver(), simulate={"look": lambda state: state}, more=[look])
    thread = {"configurable": {"thread_id": "t"}}
    first = graph.invoke({"messages": [("user", "Book one")], "task_state": {"real": "R-1"}}, thread)
    assert first["task_state"] == {"real": "R-1", "b": "B-9"}
    second = graph.invoke({"messages": [("user", "Book it again")]}, thread)
    (made,) = notes_of(second["rehearsal"]["verdict"], "made_up")
    assert made["data"]["origin"] == {"kind": "chosen", "from": "state", "path": "/b"}
    given = {"messages": [("user", "Book it again")], "task_state": {"b": "B-9", "of": "the user"}}
    assert notes_of(graph.invoke(given, thread)["rehearsal"]["verdict"], "made_up") == []


NOT_FOUND = {**FAILED, "feedback": "F-7731 was not found."}


@pytest.mark.parametrize(("make", "first"), [(gecko, DONE), (embedded, NOT_FOUND)])
def test_what_only_an_earlier_answer_speaks_of_is_made_up(make, first):
    told = [{**turns(first)[0], "planner": [[{"say": "There is one flight, F-7731."}]]}, turns()[1]]
    graph, thread = make(Listener(turns=told), InMemorySaver()), {"configurable": {"thread_id": "t"}}
    graph.invoke({"messages": [("user", "Find a flight")]}, thread)
    second = graph.invoke({"messages": [("user", "Book it")]}, thread)
    assert values(second["rehearsal"]["verdict"], "made_up") == ["F-7731"]


def test_what_was_bootstrapped_is_made_up_whoever_reads_it():
    state = {"domain": {"invoices": [{"number": "INV-1042", "amount": 1240.5}]}, "runtime_state": {"user": "ann"}}
    pay = {"number": {"type": "string"}, "amount": {"type": "number"}, "reference": {"type": "string"}}
    tools = Toolkit.from_tools(
        [
            {"name": "invoices", "description": "List.", "parameters": {"type": "object", "properties": {}}},
            {"name": "pay", "description": "Pay.", "parameters": {"type": "object", "properties": pay}},
        ]
    ).declare(
        Tool("invoices", effect="read", simulate=lambda state: state["invoices"]),
        Tool("pay", effect="write", simulate=lambda state, **args: "paid"),
    )
    args = {"number": "INV-1042", "amount": 1240.5, "reference": "Miller, May"}
    planner = [[{"call": "invoices"}, {"call": "pay", "args": args}, {"say": "Paid."}]]
    model = Listener(turns=[{"planner": planner, "bootstrapper": [state]}])
    graph = create_gecko(tools, model=Models(**dict.fromkeys(("planner", "bootstrapper"), model)), context=KNOBS)
    asked = {"messages": [("user", "Pay Miller's invoice of May")], "checklist": [{"id": "a", "check": "answer"}]}
    verdict = graph.invoke(asked)["rehearsal"]["verdict"]
    assert verdict["status"] == "accepted"
    assert [each["where"] for each in notes_of(verdict, "made_up")] == ["/number", "/amount"]
    assert notes_of(verdict, "made_up")[0]["data"]["origin"] == {
        "kind": "chosen",
        "from": "state",
        "path": "/invoices/0/number",
    }
    given = {**asked, "task_state": {**state["domain"], "runtime_state": {}}}
    assert notes_of(graph.invoke(given)["rehearsal"]["verdict"], "made_up") == []
