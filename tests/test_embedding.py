"""What a LangGraph developer does with the graph: embeds it, pauses it, edits and forks its threads."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from gecko_graph import GeckoError, RehearsalState
from tests import desk
from tests.agents import embed, thread
from tests.desk import words


def turn(planner, **roles):
    return {"planner": planner, **roles}


class Parent(RehearsalState):
    note: str


class ParentContext(TypedDict):
    user: str


def test_embedded_in_a_parent_with_its_own_context_and_checkpointer():
    def agent(state):
        return {"note": state["rehearsal"]["verdict"]["status"]}

    builder = StateGraph(Parent, context_schema=ParentContext)
    builder.add_node("rehearse", desk.gecko(desk.WRONG, desk.RIGHT, desk.RIGHT))
    builder.add_node("agent", agent)
    builder.add_edge(START, "rehearse")
    builder.add_edge("rehearse", "agent")
    graph = builder.compile(checkpointer=InMemorySaver())
    inputs = {"messages": [("user", "file it")], "task_state": desk.start()}
    run = graph.invoke(inputs, thread(), context={"user": "ann"})
    assert run["note"] == "failed", "the mixin has no checklist, and no model writes one"
    assert run["rehearsal"]["attempts"][0]["steps"]
    assert [message.type for message in run["messages"]] == ["human", "ai"]


@pytest.mark.parametrize(
    "edit",
    [{"trays": {"bill": ["letter"]}, "runtime_state": {}}, [{"op": "add", "path": "/trays/bill/-", "value": "letter"}]],
    ids=["whole", "patch"],
)
def test_a_paused_attempt_s_own_state_is_edited_whole_or_by_a_patch(edit):
    def ask(state, tray, paper):
        return desk.put(state, tray, paper) if interrupt({"put": paper}) == "yes" else None

    gecko = desk.gecko(desk.WRONG, tools=desk.toolkit(put=ask), checkpointer=InMemorySaver())
    check = [{"description": "both are there", "check": "state.trays.bill == ['letter', 'invoice']"}]
    paused = gecko.invoke(desk.inputs(checklist=check), thread())
    assert [each.value for each in paused["__interrupt__"]] == [{"put": "invoice"}]
    (task,) = gecko.get_state(thread(), subgraphs=True).tasks
    gecko.update_state(task.state.config, {"task_state": edit})
    run = gecko.invoke(Command(resume="yes"), thread())
    assert words(run) == ["accepted"]
    assert run["task_state"]["trays"]["bill"] == ["letter", "invoice"]


@pytest.mark.parametrize("node", ["attempt", "finish"])
def test_a_state_that_is_edited_in_the_middle_of_a_turn_is_refused_and_the_message_says_how_to_do_it(node):
    gecko = desk.gecko(desk.WRONG, desk.RIGHT, checkpointer=InMemorySaver())
    gecko.invoke(desk.inputs(), thread(), interrupt_before=[node])
    edited = {"task_state": {"trays": {"letters": ["from dad"]}, "runtime_state": {}}}
    gecko.update_state(thread(), edited)
    with pytest.raises(GeckoError, match="as_node='bootstrapper'"):
        gecko.invoke(None, thread())
    first = [each for each in gecko.get_state_history(thread()) if each.next == ("start_round",)][-1]
    run = gecko.invoke(None, gecko.update_state(first.config, edited, as_node="bootstrapper"))
    assert words(run) == ["failed", "accepted"]
    assert run["task_state"]["trays"] == {"letters": ["from dad"], "bills": ["invoice"]}


IDLE = [{"say": "Done."}]
MOVE = {"messages": [("user", "Now move the letter into bills")]}


@pytest.mark.parametrize("own", [None, True])
def test_a_parent_s_checklist_cannot_accept_its_next_task(own):
    turns = [turn([desk.RIGHT]), turn([IDLE] * 4), turn([IDLE] * 4)]
    graph = embed(desk.gecko(turns=turns, checkpointer=own), InMemorySaver())
    assert words(graph.invoke(desk.inputs(), thread())) == ["accepted"]
    for task in (MOVE, {"messages": [("user", "and the other one")]}):
        stale = graph.invoke(task, thread())
        assert words(stale) == ["failed"]
        assert "the given checklist was used for an earlier task" in stale["rehearsal"]["verdict"]["feedback"]
        assert stale["checklist"] == desk.CHECKLIST, "nobody has cleared it"
