"""The ledger of real calls: one of many claims a key, whichever saver keeps it; and what has none is refused."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from gecko_graph import GeckoError
from gecko_graph.real.ledger import TABLE, find_ledger, has_checkpoint
from tests.agents import APPROVE, make_agent, thread
from tests.test_agent import PLAN, TASK, Shop, shop
from tests.test_agent_postgres import address

__all__ = ["address", "shop"]

ROW = {"rev": 1, "call": {"name": "pay", "args": {"to": "ann"}}, "text": "é\n", "at": 1.5}


def connect(folder: Any) -> SqliteSaver:
    return SqliteSaver(sqlite3.connect(folder / "s.sqlite", check_same_thread=False, timeout=30))


async def in_thread(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return await asyncio.to_thread(function, *args, **kwargs)


@pytest.fixture(params=["memory", "sqlite", "async sqlite", "postgres", "async postgres"])
async def saver(request, tmp_path) -> AsyncIterator[Any]:
    kind = request.param
    if kind == "memory":
        yield InMemorySaver()
    elif kind == "sqlite":
        yield (made := connect(tmp_path))
        made.conn.close()
    elif kind == "async sqlite":
        module = pytest.importorskip("langgraph.checkpoint.sqlite.aio")
        async with module.AsyncSqliteSaver.from_conn_string(str(tmp_path / "a.sqlite")) as made:
            yield made
    elif kind == "postgres":
        module = pytest.importorskip("langgraph.checkpoint.postgres")
        with module.PostgresSaver.from_conn_string(request.getfixturevalue("address")) as made:
            made.setup()
            yield made
    else:
        module = pytest.importorskip("langgraph.checkpoint.postgres.aio")
        async with module.AsyncPostgresSaver.from_conn_string(request.getfixturevalue("address")) as made:
            await made.setup()
            yield made


async def test_a_key_is_claimed_once_replaced_by_its_next_revision_and_moved(saver):
    ledger, own = find_ledger(saver, None), str(id(saver))
    assert await in_thread(ledger.read, own, scope="open") == []
    assert await in_thread(ledger.claim, own, "k", "open", ROW)
    assert not await in_thread(ledger.claim, own, "k", "open", {**ROW, "text": "other"})
    assert await in_thread(ledger.claim, "another thread" + own, "k", "open", ROW)
    assert await in_thread(ledger.read, own, key="k") == await in_thread(ledger.read, own, scope="open") == [ROW]
    assert not await in_thread(ledger.swap, own, "k", {**ROW, "rev": 3})
    assert not await in_thread(ledger.swap, own, "none", {**ROW, "rev": 2})
    assert await in_thread(ledger.swap, own, "k", {**ROW, "rev": 2})
    assert not await in_thread(ledger.swap, own, "k", {**ROW, "rev": 2})
    await in_thread(ledger.move, own, ["k", "none"], "closed")
    assert await in_thread(ledger.read, own, scope="open") == []
    assert await in_thread(ledger.read, own, scope="closed") == [{**ROW, "rev": 2}]


async def test_of_many_at_once_one_claims(saver):
    ledger, own = find_ledger(saver, None), f"many {id(saver)}"

    def claim(number: int) -> bool:
        return ledger.claim(own, "k", "open", {**ROW, "by": number})

    def swap(number: int) -> bool:
        return ledger.swap(own, "k", {**ROW, "rev": 2, "by": number})

    def race(function: Callable[[int], bool]) -> list[int]:
        with ThreadPoolExecutor(16) as pool:
            return [number for number, won in enumerate(pool.map(function, range(48))) if won]

    for function in (claim, swap):
        (winner,) = await in_thread(race, function)
        assert [row["by"] for row in await in_thread(ledger.read, own, key="k")] == [winner]


def test_two_connections_to_one_file_share_it_and_its_table_is_documented(tmp_path):
    one, other = connect(tmp_path), connect(tmp_path)
    assert find_ledger(one, None).claim("t", "k", "open", ROW)
    assert not find_ledger(other, None).claim("t", "k", "open", ROW)
    assert find_ledger(other, None).read("t", key="k") == [ROW]
    columns = [row[1] for row in one.conn.execute(f"PRAGMA table_info({TABLE})")]
    assert columns == ["thread_id", "key", "scope", "rev", "type", "value"]
    one.conn.close(), other.conn.close()


async def test_a_checkpoint_is_there_once_it_is_saved(saver):
    def place(thread: str, namespace: str, checkpoint: str) -> Any:
        return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint}}

    saved = empty_checkpoint()
    here = place("t", "", saved["id"])
    assert not await in_thread(has_checkpoint, saver, here)
    await in_thread(saver.put, {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, saved, {"step": -1}, {})
    assert await in_thread(has_checkpoint, saver, here)
    for other in (place("u", "", saved["id"]), place("t", "a", saved["id"]), place("t", "", empty_checkpoint()["id"])):
        assert not await in_thread(has_checkpoint, saver, other)


def test_a_deleted_thread_of_a_memory_saver_has_no_claims():
    saver = InMemorySaver()
    find_ledger(saver, None).claim("t", "k", "open", ROW)
    saver.delete_thread("t")
    assert find_ledger(saver, None).claim("t", "k", "open", ROW)


class OtherSaver(BaseCheckpointSaver):
    """A saver of somebody else's, over a memory saver."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = InMemorySaver()

    def get_tuple(self, *args: Any) -> Any:
        return self.kept.get_tuple(*args)

    def list(self, *args: Any, **kwargs: Any) -> Any:
        return self.kept.list(*args, **kwargs)

    def put(self, *args: Any) -> Any:
        return self.kept.put(*args)

    def put_writes(self, *args: Any) -> None:
        self.kept.put_writes(*args)

    def get_next_version(self, *args: Any) -> Any:
        return self.kept.get_next_version(*args)


@pytest.mark.parametrize("interrupt_on", ["writes", "none"])
def test_a_saver_without_a_ledger_is_refused_before_anything_is_asked(shop, interrupt_on):
    agent = make_agent(shop.toolkit(), PLAN, interrupt_on=interrupt_on, checkpointer=OtherSaver())
    with pytest.raises(GeckoError, match="OtherSaver has no ledger of real calls"):
        agent.invoke(TASK, thread())
    assert not shop.calls
    assert "rehearsal" not in agent.get_state(thread()).values


def test_any_saver_will_do_with_a_ledger_of_its_own():
    shop, ledger = Shop(), find_ledger(InMemorySaver(), None)
    agent = make_agent(shop.toolkit(), PLAN, interrupt_on="writes", checkpointer=OtherSaver(), ledger=ledger)
    with pytest.raises(GeckoError, match="ledger: expected a CallLedger"):
        make_agent(shop.toolkit(), PLAN, ledger={})
    agent.invoke(TASK, thread())
    approve = Command(resume={"decisions": [APPROVE] * 3})
    assert agent.invoke(approve, thread())["execution"]["status"] == "done"
    agent.invoke(approve, thread())
    assert shop.calls == ["order pen", "cancel real-1001", "order ink"]
