"""World: one call at a time on one task state; never raised at by a call, taken back, copied, kept and gone on with."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph import GeckoError, Models, Tool, Toolkit, World
from gecko_graph.testing import recorded
from gecko_graph.world.calls import fold_snapshot
from tests import desk

NOTE = {"name": "note", "parameters": {"type": "object", "properties": {"text": {}}, "required": ["text"]}}
COUNT = {"requires": [{"check": "args.text != 'no'", "error": "not that one"}], "returns": {"notes": "{{ state.n }}"}}
COUNT["effects"] = [{"op": "replace", "path": ["n"], "value": "{{ state.n + 1 }}"}]


def notes(**more) -> Toolkit:
    """One tool by contract: counts the notes."""
    return Toolkit.from_tools([Tool(NOTE, contract=COUNT)], **more)


def world(**more) -> World:
    return World(notes(), **{"state": {"n": 0}} | more)


def note(text: object = "a", **more) -> dict:
    return {"name": "note", "args": {"text": text}, **more}


CYCLE: list = []
CYCLE.append(CYCLE)
BAD = [
    None, "note", {}, {"name": "\ud800", "args": {}}, {"name": "nope", "args": {}}, {"name": "note"},
    {"name": "note", "args": '{"text": 1'}, {"name": "note", "args": {"text": {1}}},
    {"name": "note", "args": {"text": float("nan")}}, {"name": "note", "args": {"text": "\ud800"}},
    {"name": "note", "args": {("a",): 1}}, {"name": "note", "args": CYCLE}, {"name": "note" * 100_000, "args": {}},
    note(id="taken"), note(id=7), note(id="x" * 101),
]  # fmt: skip


@pytest.mark.parametrize("call", BAD, ids=[f"{number}" for number in range(len(BAD))])
def test_a_bad_call_is_a_step_with_complaints(call):
    made = world()
    made.call(note(id="taken"))
    before = made.state
    step = made.call(call)
    assert step["complaints"], step
    assert made.state == before
    assert len({each["call"]["id"] for each in made.log}) == 2
    json.dumps(made.snapshot(), allow_nan=False)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.binary() | st.sampled_from(["name", "args", "note"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text(max_size=3) | st.sampled_from(["name", "args", "id", "text"]), inner, max_size=4)
        ),
        max_leaves=12,
    )
)
def test_no_call_raises_and_every_one_is_kept(call):
    made = world()
    step = made.call(call)
    assert ("complaints" in step) != ("outcome" in step)
    assert World.restore(notes(), json.loads(json.dumps(made.snapshot()))).log == [step]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"toolkit": [NOTE]}, "Toolkit"), ({"toolkit": Toolkit([])}, "no tools"), ({"state": [1]}, "state"),
        ({"model": 5}, "model"), ({"model": "poet"}, "poet"), ({"context": {"seed": 1}}, "context"),
    ],
)  # fmt: skip
def test_mistakes_in_the_constructor_are_told(arguments, words):
    with pytest.raises(GeckoError, match=words):
        World(**{"toolkit": notes(), **arguments})


READ = {"name": "find", "parameters": {"type": "object", "properties": {"name": {"type": "string"}}}}
ANSWERS = [{"status": "ok", "result": {"found": number}} for number in range(20)]


def finder(**more) -> World:
    model = recorded(simulator=ANSWERS)
    return World(Toolkit.from_tools([Tool(READ, effect="read")]), model=Models(simulator=model), **more)


NAMES = st.sampled_from(["a", "b", "c"])
CALLS = st.lists(st.builds(lambda name: {"name": "find", "args": {"name": name}}, NAMES) | st.none(), max_size=6)


@given(CALLS, CALLS)
@settings(max_examples=25)
def test_a_restored_world_goes_on_as_the_original_would(before, after):
    made = finder(state={"a": 1})
    for call in before:
        made.call(call)
    kept = json.loads(json.dumps(made.snapshot(), sort_keys=True))
    again = World.restore(
        Toolkit.from_tools([Tool(READ, effect="read")]), kept, model=Models(simulator=recorded(simulator=ANSWERS))
    )
    assert again.snapshot() == made.snapshot()
    assert [again.call(call) for call in after] == [made.call(call) for call in after]
    assert again.undo() == made.undo()
    assert again.snapshot() == made.snapshot()


@pytest.mark.parametrize(
    "edit",
    [
        lambda kept: kept["state"].update(n=5), lambda kept: kept["log"].pop(),
        lambda kept: kept["log"][0]["outcome"]["patch"].append({"op": "remove", "path": "/gone"}),
        lambda kept: kept.pop("notes"), lambda kept: kept.update(v=0), lambda kept: kept["log"].insert(0, "step"),
    ],
)  # fmt: skip
def test_a_snapshot_that_was_edited_is_refused(edit):
    made = world()
    made.call(note())
    kept = made.snapshot()
    edit(kept)
    with pytest.raises(GeckoError, match="snapshot"):
        World.restore(notes(), kept)


def test_calls_from_threads_and_event_loops_wait_for_each_other():
    made = world()

    def in_loop() -> None:
        async def many() -> None:
            await asyncio.gather(*(made.acall(note()) for _ in range(20)))

        asyncio.run(many())

    with ThreadPoolExecutor(8) as pool:
        tasks = [pool.submit(in_loop) for _ in range(4)] + [pool.submit(made.call, note()) for _ in range(80)]
        for task in tasks:
            task.result(60)
    assert made.state == {"n": 160}
    results = sorted(step["outcome"]["result"]["notes"] for step in made.log)
    assert results == list(range(1, 161))  # none saw the state of another's middle
    assert len({step["call"]["id"] for step in made.log}) == 160


def held(made_in: list[World], *, go: Event, began: Event) -> World:
    """A world whose `put` waits for an event, and whose `look` calls the world itself."""

    def put(state: dict, tray: str, paper: str) -> dict:
        began.set()
        assert go.wait(20)
        return {}

    def look(state: dict) -> dict:
        return made_in[0].call({"name": "look", "args": {}})

    made_in.append(World(desk.toolkit(put=put, look=look), state={"trays": {}}))
    return made_in[0]


PUT = {"name": "put", "args": {"tray": "in", "paper": "x"}}


def test_a_cancelled_call_gives_its_turn_away():
    go, began = Event(), Event()
    made = held([], go=go, began=began)

    async def run() -> None:
        first = asyncio.create_task(made.acall(PUT))
        await asyncio.to_thread(began.wait, 20)
        waiting = asyncio.create_task(made.acall(PUT))
        last = asyncio.create_task(made.acall({"name": "add_tray", "args": {"name": "in"}}))
        await asyncio.sleep(0)
        with pytest.raises(GeckoError, match="await"):
            made.call(PUT)  # it would stop the loop that the first one needs
        with pytest.raises(GeckoError, match="await"):
            made.undo()
        assert made.log == []
        waiting.cancel()
        first.cancel()
        step = await asyncio.wait_for(last, 20)
        assert step["outcome"]["status"] == "ok"
        go.set()

    asyncio.run(run())
    assert made.state == {"trays": {"in": []}}
    assert len(made.log) == 1


def test_a_tool_that_calls_its_own_world_is_told_so():
    made = held([], go=Event(), began=Event())
    step = made.call({"name": "look", "args": {}})
    assert step["outcome"]["status"] == "error"
    assert "fork" in step["outcome"]["result"]
    assert asyncio.run(made.acall({"name": "look", "args": {}}))["outcome"]["status"] == "error"
    assert made.call({"name": "add_tray", "args": {"name": "in"}})["outcome"]["status"] == "ok"


@given(CALLS, st.integers(0, 6), st.integers(0, 6))
@settings(max_examples=25)
def test_a_snapshot_is_the_fold_of_what_was_added(calls, first, second):
    """In whichever portions: LangGraph folds a checkpoint's writes again in larger ones."""
    made = finder(state={"a": 1})
    writes = [made.snapshot()]
    for call in calls:
        at = len(made.log)
        made.call(call)
        writes.append({"records": made.records(at), "usage": made.usage})
    assert fold_snapshot({}, writes) == made.snapshot()
    whole, later = fold_snapshot({}, writes[: 1 + first]), writes[1 + first :]
    kept = json.dumps(whole)
    assert fold_snapshot(fold_snapshot(whole, later[:second]), later[second:]) == made.snapshot()
    assert json.dumps(whole) == kept
    assert fold_snapshot(whole, [*later, writes[0]]) == writes[0], "another world begins"
