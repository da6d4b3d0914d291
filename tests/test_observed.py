"""Rows of real calls: there for all that settled, wherever the process dies, and without a say in what is called."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path

import pytest

from evals.reality.killing import Fate, KillingSaver
from gecko_graph import GeckoError, Tool, Toolkit, World
from gecko_graph.learning.readers import read_file
from gecko_graph.masking import MASK
from gecko_graph.values.observation import BadRows, Observer
from gecko_graph.world.rung import Answer

from .agents import make_agent, thread
from .test_agent import PLAN, TASK, Shop
from .test_agent_killed import DEAD, Service, count_writes, finish, start

pytest_plugins = ["pytester"]


def rows_of(file: Path) -> list:
    bad = BadRows()
    found = list(read_file(file, bad)) if file.exists() else []
    assert not bad.counts
    return found


@pytest.mark.parametrize("seed", range(10))
def test_what_settled_has_its_row_wherever_the_process_dies(tmp_path, seed):
    """At a write of each tenth of the run."""
    chance, as_node = random.Random(seed), bool(seed % 2)
    number = 1 + int((seed + chance.random()) * count_writes(as_node=as_node) / 10)
    told, fate = {"as_node": as_node, "observe": tmp_path / "rows.jsonl"}, Fate(number, after=chance.random() < 0.5)
    service, saver = Service(), KillingSaver(fate)
    with contextlib.suppress(DEAD):
        start(service, saver, **told).invoke(TASK, thread())
    fate.kill_at = 0
    _, asked = finish(service, saver, **told)
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
    agent = make_agent(shop.toolkit(), PLAN, observe=observe)
    assert agent.invoke(TASK, thread())["execution"]["status"] == "done"
    assert shop.calls == ["order pen", "cancel real-1001", "order ink"]
    assert sum("could not be written" in each.message for each in caplog.records) == 3
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
