"""The case's counts, growth of what can be counted without a clock, and the suite on its smallest sizes."""

from __future__ import annotations

import cProfile
import gc
import json
import pstats
from functools import partial
from itertools import islice

import pytest

from evals.costing import against, beside, case, costs, shop, world_calls
from evals.suites.speed import Speed
from gecko_graph.testing import drive
from gecko_graph.tools import Toolkit
from gecko_graph.world import check as validating
from gecko_graph.world.check import validator

from .kept import read_summary


@pytest.mark.parametrize(("way", "calls"), [("model", 20), ("contract", 12), ("contract, checks", 9)])
def test_the_case_takes_the_designed_number_of_model_calls(way, calls):
    told = costs.calls_and_tokens(1, way)
    assert told["verdict"] == "accepted"
    assert told["calls"] == calls
    assert sum(asked for asked, _ in told["roles"].values()) == calls


def test_prompts_do_not_grow_with_the_state():
    small, large = costs.calls_and_tokens(1, "model"), costs.calls_and_tokens(100, "model")
    assert large["calls"] == small["calls"]
    assert large["tokens_in"] < 1.5 * small["tokens_in"]


def test_bytes_checkpointed_grow_with_the_steps_not_with_their_square():
    given = case.inputs(case.start_state(1, whole=True), checks=True)
    few, many = (
        costs.checkpointed(lambda saver, steps=steps: costs.long_attempt(steps)(checkpointer=saver), given)
        for steps in (5, 40)
    )
    assert many["supersteps"] > 5 * few["supersteps"]
    assert many["bytes"] < 8 * 1.5 * few["bytes"]


def test_a_tool_call_takes_few_function_calls_beside_empty_nodes_and_leaves_no_garbage():
    given, counts = case.inputs(case.start_state(1, whole=True), checks=True), []
    gecko = costs.long_attempt(10)()
    for run in (partial(gecko.invoke, given), costs.create_empty(10)):
        run()
        gc.collect()
        gc.disable()
        with cProfile.Profile() as profile:
            run()
        counts.append(pstats.Stats(profile).total_calls)
        left = gc.collect()
        gc.enable()
        assert left < 10 * 5
    assert counts[0] < 2.6 * counts[1]  # 2.1 for 100 calls with langgraph 1.2; postconditions of the contracts are 0.16


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


def test_the_suite_measures_and_judges(run, tmp_path):
    only = ["calls: 1 kB*", "steps: 10", "steps: 30"]
    words = [word for each in only for word in ("--only", each)]
    assert run(Speed, "--quick", *words) == 0
    told = read_summary(tmp_path)
    assert "20 model calls" in json.dumps(told["expectations"])
    assert "to the power of ... processor time" in json.dumps(told)


def test_a_server_under_load_loses_no_update(run, tmp_path):
    assert run(Speed, "--quick", "--only", "server: load") == 0
    told = read_summary(tmp_path)
    texts = [each["text"] for each in told["expectations"]]
    assert {f"no update is lost ({name})" for name in ("echo", "plain", "saved")} <= {*texts}
    assert "ms CPU a request" in json.dumps(told)


def test_a_row_is_measured_in_a_process_of_its_own_in_both_checkouts(run, tmp_path):
    assert against.ROWS.keys() == beside.MEASURES.keys()
    assert beside.real_call("") > 0
    found = against.beside(against.HERE, "gecko-graph --version, s", data=tmp_path, turns=1)
    assert len(found["here"]) == len(found["there"]) == 1
    assert min(found["here"] + found["there"]) > 0
    assert run(Speed, "--against", tmp_path, "--only", "against*") == 2


def test_a_call_in_a_world_costs_no_more_on_a_large_state(count_steps):
    (small, calls), (large, others) = world_calls.on_files(10), world_calls.on_files(1000)
    assert len(json.dumps(large.state)) > 90 * len(json.dumps(small.state))
    few = [count_steps(partial(small.call, call)) for call in islice(calls, 6)]
    many = [count_steps(partial(large.call, call)) for call in islice(others, 6)]
    assert many[3::2] == few[3::2]  # touch and rm, when all is compiled; ls names more
    assert max(few[3::2]) < 2_000


def test_a_call_on_the_database_looks_at_its_own_part_only(shared_data, count_steps):
    path = shared_data / world_calls.DATABASE
    world, calls = world_calls.on_database(path)
    steps = [count_steps(partial(world.call, call)) for call in islice(calls, 30)]
    assert max(steps[6:]) < 3_000  # the first ones compile
    assert len(world_calls.measure(lambda: world_calls.on_database(path), count=9)["ms"]) == 9
    assert [step["outcome"]["status"] for step in world.log] == ["ok"] * 30


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
