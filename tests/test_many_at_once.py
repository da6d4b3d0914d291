"""Many rehearsals in one event loop, each in a world of its own."""

from __future__ import annotations

import asyncio
import copy
import time

import pytest

from gecko_graph import GeckoContext, Toolkit
from tests import desk

ADD_TRAY = {
    "requires": [{"check": "args.name not in state.trays", "error": "tray {{ args.name }} exists"}],
    "effects": [{"op": "add", "path": ["trays", "{{ args.name }}"], "value": ["{{ state.number }}"]}],
    "returns": {"added": "{{ args.name }}"},
}
TINY = Toolkit.from_tools(desk.FUNCTIONS[:1], contracts={"add_tray": ADD_TRAY}, effects={"add_tray": "write"})
TRAY = [{"call": "add_tray", "args": {"name": "bills"}}, {"say": "There is a tray bills."}]


def world(number):
    """A task of its own: what it adds holds its number, and its check holds in this world only."""
    check = f"state.trays.bills == [{number}] and (before.trays | length) == {number % 7}"
    return {
        "messages": [("user", f"Make tray {number}")],
        "task_state": {"number": number, "trays": {f"t{n}": [] for n in range(number % 7)}, "runtime_state": {}},
        "checklist": [{"id": f"made-{number}", "description": f"tray {number} is made", "check": check}],
    }


def check_world(number, run, *, attempts=1):
    rehearsal = run["rehearsal"]
    assert rehearsal["verdict"]["status"] == "accepted"
    assert [item["id"] for item in rehearsal["verdict"]["items"]] == [f"made-{number}"]
    assert len(rehearsal["attempts"]) == attempts
    assert len({attempt["start_digest"] for attempt in rehearsal["attempts"]}) == 1
    trays = {f"t{n}": [] for n in range(number % 7)} | {"bills": [number]}
    assert run["task_state"] == {"number": number, "trays": trays, "runtime_state": {}}
    assert [message.text for message in run["messages"]] == [f"Make tray {number}", "There is a tray bills."]


@pytest.mark.slow
async def test_a_thousand_tasks_at_once_do_not_meet():
    gecko, worlds = desk.gecko(TRAY, tools=TINY), [world(number) for number in range(1_000)]
    given = copy.deepcopy(worlds)
    start = time.perf_counter()
    runs = await asyncio.gather(*map(gecko.ainvoke, worlds))
    print(f"1,000 tasks in {time.perf_counter() - start:.1f} s")
    for number, run in enumerate(runs):
        check_world(number, run)
        assert run["rehearsal"]["usage"]["planner"]["calls"] == 2
    assert worlds == given


async def test_tasks_with_retries_and_attempts_at_once_do_not_meet():
    other = [{"call": "add_tray", "args": {"name": "bill"}}, {"say": "Made."}]
    gecko = desk.gecko(other, other, other, TRAY, tools=TINY, context=GeckoContext(parallel_attempts=2))
    runs = await asyncio.gather(*(gecko.ainvoke(world(number)) for number in range(16)))
    for number, run in enumerate(runs):
        check_world(number, run, attempts=4)
        assert run["rehearsal"]["chosen"] == 4


async def test_64_tasks_whose_tools_are_functions_do_not_wait_for_each_other():
    def add_tray(state, name):
        time.sleep(0.2)
        state["trays"][name] = [state["number"]]

    tools = Toolkit.from_tools(desk.FUNCTIONS[:1], simulate={"add_tray": add_tray})
    gecko = desk.gecko(TRAY, tools=tools)
    runs = await asyncio.gather(*(gecko.ainvoke(world(number)) for number in range(64)))
    for number, run in enumerate(runs):
        check_world(number, run)
