"""Rows of real calls: there for all that settled, wherever the process dies, and without a say in what is called."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from evals.reality.killing import Fate, KillingSaver
from gecko_graph import GeckoError, Models, Tool, Toolkit, World, create_gecko_agent
from gecko_graph.learning.readers import read_file
from gecko_graph.masking import MASK
from gecko_graph.testing import recorded
from gecko_graph.values.observation import BadRows, Observer
from gecko_graph.world.rung import Answer

from .test_agent import PLAN, TASK, Shop, thread
from .test_agent_killed import DEAD, Service, answer_from, count_writes, start

pytest_plugins = ["pytester"]


def rows_of(file: Path) -> list:
    bad = BadRows()
    found = list(read_file(file, bad)) if file.exists() else []
    assert not bad.counts
    return found


@pytest.mark.parametrize("as_node", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_what_settled_has_its_row_wherever_the_process_dies(tmp_path, seed, as_node):
    from langgraph.types import Command

    chance, told = random.Random(seed), {"as_node": as_node, "observe": tmp_path / "rows.jsonl"}
    fate = Fate(chance.randint(1, count_writes(as_node=as_node)), after=chance.random() < 0.5)
    service, saver = Service(), KillingSaver(fate)
    with contextlib.suppress(DEAD):
        start(service, saver, **told).invoke(TASK, thread())
    fate.kill_at, asked = 0, 0
    out = start(service, saver, **told).invoke(None if list(saver.list(thread())) else TASK, thread())
    while "__interrupt__" in out:
        question, asked = out["__interrupt__"][0].value, asked + 1
        decisions = [answer_from(service.log, *question["action_requests"])]
        out = start(service, saver, **told).invoke(
            Command(resume={"id": question["id"], "decisions": decisions}), thread()
        )
    assert [name for name, _ in service.log] == ["order pen", "cancel", "order ink"]
    rows = {row.digest: row for row in rows_of(tmp_path / "rows.jsonl")}
    assert len(rows) == 3 - asked  # what a person says of a doubt is no observation
    assert all(row.status == "ok" and row.source.startswith("thread ") for row in rows.values())
    first = next(iter(rows.values()))
    assert first.before == {"orders": {}}
    assert first.after["orders"] == {first.result["id"]: "pen"}


def broken(row: dict) -> None:
    raise RuntimeError


@pytest.mark.parametrize("observe", [broken, "/nowhere/rows.jsonl"])
def test_rows_that_cannot_be_written_change_nothing(observe, caplog):
    shop = Shop()
    agent = create_gecko_agent(
        shop.toolkit(),
        model=Models(planner=recorded(planner=[PLAN])),
        interrupt_on="none",
        checkpointer=InMemorySaver(),
        observe=observe,
    )
    assert agent.invoke(TASK, thread())["execution"]["status"] == "done"
    assert shop.calls == ["order pen", "cancel real-1001", "order ink"]
    assert sum("could not be written" in each.message for each in caplog.records) == 3


def test_what_is_no_place_for_rows_is_refused():
    with pytest.raises(GeckoError, match="observe"):
        World(Shop().toolkit(), observe=3)  # type: ignore[arg-type]


def test_a_world_writes_what_was_really_called_with_what_reads_had_shown():
    def find(item: str) -> dict:
        """Find."""
        return {"left": 2}

    rows: list[dict] = []
    tools = Toolkit.from_tools([Tool(find, effect="read")]).open("find").merge(Shop().toolkit())
    world = World(tools, state={"orders": {}}, observe=rows.append)
    world.call({"name": "order", "args": {"item": "pad", "quantity": 1}})  # simulated: no row, and no part of reality
    world.call({"name": "find", "args": {"item": "pen"}})
    answer = Answer("error", {"error": "password=hunter2hunter2"})
    world.record({"id": "r", "name": "order", "args": {"item": "pen", "quantity": 3}}, answer)
    world.record({"id": "p", "name": "order", "args": {"item": "pen", "quantity": 1}}, answer, by="person")
    assert [(row["tool"], row["status"]) for row in rows] == [("find", "ok"), ("order", "error")]
    assert rows[1]["before"] == {"orders": {}}
    assert rows[1]["shown"] == [{"name": "find", "args": {"item": "pen"}, "result": {"left": 2}}]
    assert "hunter2" not in json.dumps(rows)
    assert MASK in json.dumps(rows, ensure_ascii=False)


def test_pytest_observes_what_its_tests_call(pytester, tmp_path):
    pytester.makepyfile("""
        from gecko_graph import World
        from gecko_graph.world.rung import Answer
        from tests.test_agent import Shop

        def test_order():
            call = {"id": "1", "name": "order", "args": {"item": "pen", "quantity": 3}}
            World(Shop().toolkit(), state={"orders": {}}).record(call, Answer("ok", {"id": "7", "item": "pen"}))
    """)
    given = ["-o", "asyncio_default_fixture_loop_scope=function", "-p", "gecko_graph.pytest"]
    pytester.runpytest(*given, "--gecko-observe", str(tmp_path / "rows.jsonl")).assert_outcomes(passed=1)
    (row,) = rows_of(tmp_path / "rows.jsonl")
    assert (row.tool, row.result) == ("order", {"id": "7", "item": "pen"})
    assert Observer.everywhere is None
