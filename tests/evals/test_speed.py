"""Growth of what can be counted without a clock, the server under load, and the shop."""

from __future__ import annotations

import cProfile
import gc
import json
import pstats
from functools import partial

import pytest

from evals.speed import case, costs, shop
from evals.suites.speed import Speed
from gecko_graph import World
from gecko_graph.testing import drive
from gecko_graph.tools import Toolkit
from gecko_graph.world import check as validating
from gecko_graph.world.check import validator


def test_bytes_checkpointed_grow_with_the_steps_not_with_their_square():
    given = case.inputs(case.start_state(1, whole=True), checks=True)
    few, many = (
        costs.checkpointed(lambda saver, steps=steps: costs.long_attempt(steps)(checkpointer=saver), given)
        for steps in (5, 40)
    )
    assert many["supersteps"] > 5 * few["supersteps"]
    assert many["bytes"] < 8 * 1.5 * few["bytes"]


def test_a_tool_call_takes_few_function_calls_and_leaves_no_garbage():
    given = case.inputs(case.start_state(1, whole=True), checks=True)
    gecko = costs.long_attempt(10)()
    gecko.invoke(given)
    gc.collect()
    gc.disable()
    with cProfile.Profile() as profile:
        gecko.invoke(given)
    left = gc.collect()
    gc.enable()
    assert left < 10 * 5
    assert pstats.Stats(profile).total_calls < 10 * 10_000  # 8,200 each with langgraph 1.2, of them 3,900 of its own


def judged(tool, args):
    return {"tool": tool, "args": args, "problems": [], "key": validating.semantic_key(tool, args)}


def test_a_long_attempt_is_not_looked_through_as_json_at_each_call(monkeypatch):
    toolkit = Toolkit.from_tools([{"name": "note", "parameters": {"type": "object", "properties": {"of": {}}}}])
    known = [judged("note", {"of": f"line {n}"}) for n in range(2_000)]
    written = []
    dumps = json.dumps
    monkeypatch.setattr(validating.json, "dumps", lambda *args, **kwargs: written.append(1) or dumps(*args, **kwargs))
    calls = [{"id": text, "name": "note", "args": {"of": text}} for text in ("line 1999", "new")]
    state = {"pending": calls, "argument_verdicts": known, "number": 1, "turn": 0, "task": "write", "asked": {}}
    driven = drive(lambda state, scope: validator(state, scope, toolkit=toolkit), state, [{"problems": []}])
    assert len(driven.asks) == 1  # line 1999 was asked about before
    assert len(driven.update["pending"]) == 2
    assert len(written) < 20


def test_arguments_that_python_takes_for_equal_are_asked_about_again():
    toolkit = Toolkit.from_tools([{"name": "note", "parameters": {"type": "object", "properties": {"of": {}}}}])
    known = [judged("note", {"of": 1}), judged("other", {"of": 1.0})]
    call = {"id": "a", "name": "note", "args": {"of": 1.0}}
    state = {"pending": [call], "argument_verdicts": known, "number": 1, "turn": 0, "task": "write", "asked": {}}
    driven = drive(lambda state, scope: validator(state, scope, toolkit=toolkit), state, [{"problems": []}])
    assert len(driven.asks) == 1


def test_a_server_under_load_loses_no_update(run, capsys):
    assert run(Speed, "--quick", "--only", "server: load") == 0
    told = capsys.readouterr().out
    assert all(f"holds: no update is lost ({name})" in told for name in ("echo", "plain", "saved"))


def test_a_call_in_a_world_costs_no_more_on_a_large_state(count_steps):
    counts = []
    for kilobytes in (10, 1000):
        world = World(case.files_toolkit(contracts=True), state=case.start_state(kilobytes, whole=True))
        calls = [{"name": name, "args": {"file_name": "new.txt"}} for name in ("touch", "rm") * 2]
        counts.append([count_steps(partial(world.call, call)) for call in calls])
    assert counts[0][2:] == counts[1][2:]  # when all is compiled
    assert max(counts[0][2:]) < 2_000


@pytest.mark.skipif(not shop.tasks(), reason="the shop (../shared/repros/exact/shop) is not on this machine")
def test_on_the_shop_a_turn_that_only_reads_costs_what_a_plain_agent_costs_and_writes_are_the_same():
    reading, writing = shop.measure("T4"), shop.measure("T2b")
    assert reading["ours"]["roles"] == reading["plain"]["roles"] == {"planner": 3}
    assert reading["ours"]["tokens"] < 1.2 * reading["plain"]["tokens"]
    assert reading["ours"]["answers"] == reading["plain"]["answers"]
    paths = [[path.partition("/O-")[0] for path in each["writes"]] for each in (writing["ours"], writing["plain"])]
    assert paths[0] == paths[1] == ["/orders", "/orders", "/emails"]
    assert writing["ours"]["reads"] == writing["plain"]["reads"] == 2
    assert "bootstrapper" not in writing["ours"]["roles"]
