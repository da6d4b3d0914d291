"""What a second turn knows of the first one, standalone and embedded."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from gecko_graph import GeckoContext, RehearsalState, Toolkit, create_gecko
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


def gecko(model, saver=None, *, simulate=None):
    tools = Toolkit.from_tools(FUNCTIONS, effects={"find": "read", "book": "write"}, simulate=simulate or {})
    roles = ("planner", "simulator", "checklist", "judge")
    return create_gecko(tools, models=dict.fromkeys(roles, model), context=KNOBS, checkpointer=saver)


def embedded(model, saver, **more):
    builder = StateGraph(RehearsalState)
    builder.add_node("rehearse", gecko(model, **more))
    builder.add_edge(START, "rehearse")
    return builder.compile(checkpointer=saver)


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
    (made,) = second["rehearsal"]["verdict"]["made_up"]
    assert (made["argument"], made["value"], made["origin"]["rung"]) == ("$.flight", "F-7731", "model")
    assert second["rehearsal"]["origins"][made["call"]] == {"$.flight": [made["origin"]]}


def test_what_a_rule_found_is_not_made_up_in_the_next_turn():
    model = Listener(turns=turns())
    thread = {"configurable": {"thread_id": "t"}}
    graph = gecko(model, InMemorySaver(), simulate={"find": lambda state: {"id": "F-7731"}})
    for task in ("Find a flight", "Book it"):
        run = graph.invoke({"messages": [("user", task)]}, thread)
    assert run["rehearsal"]["verdict"]["made_up"] == []
    ((origin,),) = (origins["$.flight"] for origins in run["rehearsal"]["origins"].values())
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


def test_what_a_model_wrote_to_the_state_is_supposed_for_the_rest_of_the_thread():
    graph, thread = gecko(Listener(turns=turns()), InMemorySaver()), {"configurable": {"thread_id": "t"}}
    for task in ("Find a flight", "Book it"):
        graph.invoke({"messages": [("user", task)]}, thread)
    assert graph.get_state(thread).values["supposed"] == ["/b"]
