"""The agent with Postgres as checkpointer: a server that the test starts, where one can be started.

It needs `initdb` and `postgres` on the path.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from langgraph.types import Command

from gecko_graph import create_gecko_agent
from gecko_graph.testing import recorded

from .test_agent import APPROVE, PLAN, TASK, Shop, thread

psycopg = pytest.importorskip("psycopg")
postgres = pytest.importorskip("langgraph.checkpoint.postgres")
pytestmark = pytest.mark.slow


def as_other_user(*command: str) -> list[str]:
    """Postgres refuses to be run by root."""
    return ["runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else [*command]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Where a Postgres of the test's own listens, on loopback; skipped where none can be started."""
    if not all(map(shutil.which, ("initdb", "postgres", *(["runuser"] if os.geteuid() == 0 else [])))):
        pytest.skip("no Postgres on this machine")
    folder = Path(tmp_path_factory.mktemp("postgres"))
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    folder.chmod(0o777)
    data, user = str(folder / "data"), "postgres" if os.geteuid() == 0 else getpass.getuser()
    made = subprocess.run(
        as_other_user("initdb", "-D", data, "-A", "trust", "-U", user), capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no Postgres can be started: {made.stderr.decode()[-200:]}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = as_other_user(
        "postgres", "-D", data, "-p", str(port), "-k", str(folder), "-c", "listen_addresses=127.0.0.1"
    )
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    where = f"postgresql://{user}@127.0.0.1:{port}/postgres"
    try:
        wait_for(where)
        yield where
    finally:
        process.terminate()
        process.wait(20)


def wait_for(where: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(where).close()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def agent_of(shop: Shop, saver):
    return create_gecko_agent(shop.toolkit(), models={"planner": recorded(planner=[PLAN])}, checkpointer=saver)


@pytest.mark.parametrize("durability", [None, "async", "sync"])
def test_a_plan_is_approved_and_carried_out_by_another_process_s_agent(address, durability):
    shop, where = Shop(), thread(f"approved {durability}")
    with postgres.PostgresSaver.from_conn_string(address) as saver:
        saver.setup()
        agent_of(shop, saver).invoke(TASK, where, durability=durability)
    with postgres.PostgresSaver.from_conn_string(address) as saver:
        out = agent_of(shop, saver).invoke(Command(resume={"decisions": [APPROVE] * 3}), where, durability=durability)
    assert shop.calls == ["order pen", "cancel real-1001", "order ink"]
    assert out["task_state"]["orders"] == shop.orders
    assert out["execution"]["status"] == "done"


def test_a_call_in_doubt_is_asked_about_after_the_process_has_gone(address):
    shop, where = Shop(), thread("in doubt")
    shop.failing = [TimeoutError()]
    with postgres.PostgresSaver.from_conn_string(address) as saver:
        saver.setup()
        agent_of(shop, saver).invoke(TASK, where)
        agent_of(shop, saver).invoke(Command(resume={"decisions": [APPROVE] * 3}), where)
    with postgres.PostgresSaver.from_conn_string(address) as saver:
        state = agent_of(shop, saver).get_state(where)
        asked = state.tasks[0].interrupts[0].value
        assert asked["review_configs"][0]["action_name"] == "order"
        out = agent_of(shop, saver).invoke(Command(resume={"id": asked["id"], "decisions": [{"type": "skip"}]}), where)
    assert shop.calls == ["order pen"]
    assert out["execution"]["status"] == "in_doubt"


async def test_async(address):
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    shop, where = Shop(), thread("async")
    async with AsyncPostgresSaver.from_conn_string(address) as saver:
        await saver.setup()
        agent = agent_of(shop, saver)
        await agent.ainvoke(TASK, where)
        out = await agent.ainvoke(Command(resume={"decisions": [APPROVE] * 3}), where)
    assert out["task_state"]["orders"] == shop.orders
