"""Many rehearsals in one event loop, each in a world of its own."""

from __future__ import annotations

import asyncio
import copy

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.messages import AIMessage

from gecko_graph import GeckoContext, Models, Tool, Toolkit, create_gecko
from tests import desk
from tests.middleware.bank import Chat

ADD_TRAY = {
    "requires": [{"check": "args.name not in state.trays", "error": "tray {{ args.name }} exists"}],
    "effects": [{"op": "add", "path": ["trays", "{{ args.name }}"], "value": ["{{ state.number }}"]}],
    "returns": {"added": "{{ args.name }}"},
}
TINY = Toolkit.from_tools(desk.FUNCTIONS[:1]).declare(Tool("add_tray", contract=ADD_TRAY, effect="write"))
TRAY = [{"call": "add_tray", "args": {"name": "bills"}}, {"say": "There is a tray bills."}]


def world(number):
    """A task of its own: what it adds holds its number, and its check holds in this world only."""
    check = f"state.trays.bills == [{number}] and len(before.trays) == {number % 7}"
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


async def test_many_tasks_at_once_do_not_meet():
    gecko, worlds = desk.gecko(TRAY, tools=TINY), [world(number) for number in range(40)]
    given = copy.deepcopy(worlds)
    runs = await asyncio.gather(*map(gecko.ainvoke, worlds))
    for number, run in enumerate(runs):
        check_world(number, run)
        assert run["rehearsal"]["usage"]["planner"]["calls"] == 2
    assert worlds == given


@pytest.mark.parametrize("count", [2, 3])
def test_attempts_at_once_are_not_made_equal_by_a_cache(count):
    set_llm_cache(InMemoryCache())
    try:
        model = Chat(messages=(AIMessage(f"answer {number}") for number in range(9)))
        context = GeckoContext(parallel_attempts=count, max_retries=0)
        gecko = create_gecko(desk.toolkit(), model=Models(planner=model), context=context)
        attempts = gecko.invoke(desk.inputs())["rehearsal"]["attempts"]
        assert len({each["answer"] for each in attempts}) == count
    finally:
        set_llm_cache(None)
