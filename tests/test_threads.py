"""Two runs of one thread at once are refused; whatever else happens to a thread is not."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from threading import Barrier, BrokenBarrierError, Thread

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, interrupt

from gecko_graph.errors import StateError
from tests import desk
from tests.agents import call, embed, thread

THREAD = thread()
PAPERS = [[call("put", tray="letters", paper=f"paper {n}"), {"say": "Put."}] for n in range(6)]


def inputs(turn=0):
    check = [{"id": "put", "description": "it is there", "check": f"'paper {turn}' in state.trays.letters"}]
    start = {} if turn else {"task_state": desk.start()}
    return {"messages": [("user", f"put paper {turn} into letters")], "checklist": check, **start}


def gecko(put=desk.put, **options):
    turns = [{"planner": [planned] * 9} for planned in PAPERS]
    return desk.gecko(turns=turns, tools=desk.toolkit(put=put), **options)


def make(saver, *, inside, put=desk.put):
    return embed(gecko(put), saver) if inside else gecko(put, checkpointer=saver)


@pytest.fixture(params=["memory", "sqlite"])
def saver(request, tmp_path):
    if request.param == "memory":
        yield InMemorySaver()
    else:
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
            yield saver


def meeting():
    """A tool that waits until both runs are in it; where one of them was refused before that, it goes on."""
    both = Barrier(2)

    def put(state, tray, paper):
        with suppress(BrokenBarrierError):
            both.wait(2)
        return desk.put(state, tray, paper)

    return put


def judge_pair(ends, state):
    """At least one is refused; what an accepted one has done is there."""
    refused = [end for end in ends if isinstance(end, StateError)]
    assert refused, ends
    assert all("another run has written to this thread" in str(end) for end in refused)
    accepted = [end for end in ends if end not in refused]
    assert all(run["task_state"] == state["task_state"] for run in accepted)


def test_of_two_runs_at_once_one_is_refused(saver):
    for pair in range(2):
        make(saver, inside=pair).invoke(inputs(), thread(str(pair)))
        graph, ends = make(saver, inside=pair, put=meeting()), []

        def run(pair=pair, graph=graph, ends=ends):
            try:
                ends.append(graph.invoke(inputs(1), thread(str(pair))))
            except StateError as error:
                ends.append(error)

        both = [Thread(target=run) for _ in range(2)]
        for each in both:
            each.start()
        for each in both:
            each.join()
        judge_pair(ends, graph.get_state(thread(str(pair))).values)


async def test_of_two_async_runs_at_once_one_is_refused(tmp_path):
    module = pytest.importorskip("langgraph.checkpoint.sqlite.aio")
    async with module.AsyncSqliteSaver.from_conn_string(str(tmp_path / "async.sqlite")) as saver:
        await make(saver, inside=False).ainvoke(inputs(), THREAD)
        graph = make(saver, inside=False, put=meeting())
        runs = [graph.ainvoke(inputs(1), THREAD) for _ in range(2)]
        ends = await asyncio.gather(*runs, return_exceptions=True)
        judge_pair(ends, (await graph.aget_state(THREAD)).values)


def accepted(run, *papers):
    assert run["rehearsal"]["verdict"]["status"] == "accepted"
    assert run["task_state"]["trays"]["letters"][1:] == [f"paper {number}" for number in papers]


@pytest.mark.parametrize(("durability", "inside"), [("exit", True), ("async", True), ("sync", False)])
def test_turn_after_turn_is_no_race(saver, durability, inside):
    graph = make(saver, inside=inside)
    for turn in range(3):
        accepted(graph.invoke(inputs(turn), THREAD, durability=durability), *range(turn + 1))


def ask_first(state, tray, paper):
    return desk.put(state, tray, paper) if interrupt("may I?") == "yes" else None


@pytest.mark.parametrize("durability", ["exit", "async"])
def test_pauses_edits_forks_and_replays_are_no_race(saver, durability):
    graph = make(saver, inside=False, put=ask_first)
    for turn in range(2):
        assert "__interrupt__" in graph.invoke(inputs(turn), THREAD, durability=durability)
        graph.update_state(THREAD, {"items": inputs(turn)["checklist"]}, as_node="start_round")
        graph.invoke(None, THREAD, durability=durability)
        accepted(graph.invoke(Command(resume="yes"), THREAD, durability=durability), *range(turn + 1))
    free = make(saver, inside=False)
    history = list(free.get_state_history(THREAD))
    for old in (each for each in history if each.next):
        run = free.invoke(None, old.config, durability=durability)
        assert run["rehearsal"]["verdict"]["status"] == "accepted", old.next
    ended = next(each for each in history if not each.next and each.values["bookkeeping"]["ledger"]["turn"] == 1)
    accepted(free.invoke(inputs(1), ended.config, durability=durability), 0, 1)
    starts = [each for each in free.get_state_history(THREAD) if each.next == ("start_round",)]
    for start in starts[-1:]:  # there are none with "exit"
        fork = free.update_state(start.config, {"task_state": desk.start()}, as_node="bootstrapper")
        accepted(free.invoke(None, fork, durability=durability), 0)
