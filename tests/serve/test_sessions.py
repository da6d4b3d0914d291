"""Sessions: isolated, forked, reset, replaced, compared, kept as snapshots, scored, closed."""

import asyncio
import json
import time
from dataclasses import replace

import pytest

from gecko_graph import Toolkit
from gecko_graph.serve.journal import Journal

from .conftest import client_of, shop, world_of

CANCEL = "/orders/order-2/cancellation"
OWN = "/_gecko/sessions"


async def make(client, name, **body):
    answer = await client.post(OWN, json={"id": name, **body})
    assert answer.status_code == 201
    return name


async def state(client, name):
    return (await client.get(f"{OWN}/{name}/state")).json()


async def test_a_session_is_named_by_header_or_path_and_sees_its_own_calls_alone(client):
    await make(client, "a")
    await make(client, "b")
    assert (await client.post(CANCEL, headers={"X-Session-ID": "a"})).status_code == 200
    assert (await client.post(f"/s/b{CANCEL}")).status_code == 200
    assert (await client.post(CANCEL)).status_code == 200  # of `default`
    assert (await client.post(CANCEL)).status_code == 409
    listed = {one["id"]: one["steps"] for one in (await client.get(OWN)).json()["sessions"]}
    assert listed == {"a": 1, "b": 1, "default": 2}


async def test_fork_reset_and_difference(client):
    await make(client, "a")
    await client.post(f"/s/a{CANCEL}")
    before = await state(client, "a")
    assert (await client.post(f"{OWN}/a/fork", json={"id": "b"})).json() == {"id": "b", "steps": 1}
    await client.post("/s/b/orders/order-1/cancellation")
    assert await state(client, "a") == before
    patch = (await client.get(f"{OWN}/a/difference", params={"other": "b"})).json()["patch"]
    assert {"op": "replace", "path": "/orders/order-1/status", "value": "cancelled"} in patch
    await client.post(f"{OWN}/b/reset", json={"step": 1})
    assert await state(client, "b") == before
    await client.post(f"{OWN}/b/reset", json={})
    assert await state(client, "b") == shop().state
    assert (await client.post(f"{OWN}/b/reset", json={"step": 1})).status_code == 422


async def test_history_has_calls_and_complaints_and_begins_anew_when_the_state_is_replaced(client):
    await client.post(CANCEL)
    await client.put("/cart/MUG-BLUE", json={"quantity": "x"})
    first, second = (await client.get(f"{OWN}/default/history")).json()["history"]
    assert first["outcome"]["rung"] == "contract"
    assert first["outcome"]["patch"]
    assert second["complaints"][0]["path"] == "/quantity"
    changed = {**shop().state, "customer": {"name": "Ada", "credit": 1.0}}
    assert (await client.put(f"{OWN}/default/state", json=changed)).status_code == 200
    assert await state(client, "default") == changed
    assert (await client.get(f"{OWN}/default/history")).json()["history"] == []
    assert (await client.put(f"{OWN}/default/state", json=[1])).status_code == 422


async def test_a_snapshot_goes_out_and_in(client):
    await client.post(CANCEL)
    snapshot = (await client.get(f"{OWN}/default/snapshot")).json()
    assert (await client.post("/_gecko/snapshots", json={"id": "c", "snapshot": snapshot})).status_code == 201
    assert await state(client, "c") == await state(client, "default")
    await client.post(f"{OWN}/c/reset", json={})
    assert await state(client, "c") == shop().state
    snapshot["state"]["customer"]["credit"] = 1_000_000
    assert (await client.post("/_gecko/snapshots", json={"snapshot": snapshot})).status_code == 422


async def test_the_result_is_scored_by_the_scenarios_milestones(client):
    missed = (await client.post(f"{OWN}/default/result", json={"answer": "Done."})).json()
    assert missed["status"] == "failed"
    await client.post(CANCEL)
    again = (await client.post(f"{OWN}/default/result", json={"answer": "order-2 was cancelled."})).json()
    reached = {one["id"]: one["similarity"] for one in again["score"]["milestones"]}
    assert reached == {"asked": 0.0, "cancelled": 1.0, "told": 1.0}
    case = shop()
    bare = client_of(world_of(case.tools, case.state))
    assert (await bare.post(f"{OWN}/default/result", json={})).status_code == 409


async def test_the_originals_routes(client):
    name = (await client.get("/session-id")).json()["session_id"]
    mine = {"X-Session-ID": name}
    given = {**shop().state, "cart": {}}
    answer = await client.post("/set-session-state", json={"state": given, "bootstrap_mode": "skip"}, headers=mine)
    assert answer.status_code == 200
    await client.post(CANCEL, headers=mine)
    held = (await client.get("/get-session-state", headers=mine)).json()
    assert held["session_id"] == name
    assert held["state"]["orders"]["order-2"]["status"] == "cancelled"
    assert len((await client.get("/get-session-history", headers=mine)).json()["history"]) == 1
    real = {"name": "cancelOrder", "args": {"order_id": "order-1"}, "result": {"order_id": "order-1", "credit": 66.9}}
    booked = (await client.post("/update-state-from-real", json=real, headers=mine)).json()
    assert booked["state"]["orders"]["order-1"]["status"] == "cancelled"


async def test_sessions_are_closed_unknown_only_so_many_and_idle_ones_end():
    case = shop()
    client = client_of(world_of(case.tools, case.state), most=2, idle_s=0.5)
    await make(client, "a")
    assert (await client.post(OWN, json={"id": "a"})).status_code == 409
    assert (await client.delete(f"{OWN}/a")).status_code == 204
    for answer in (client.get(f"{OWN}/a/state"), client.get("/products", headers={"X-Session-ID": "a"})):
        assert (await answer).status_code == 404
    await make(client, "a")
    await make(client, "b")
    assert (await client.post(OWN, json={})).status_code == 503
    await asyncio.sleep(0.55)
    await make(client, "c")
    assert [one["id"] for one in (await client.get(OWN)).json()["sessions"]] == ["c"]


def slow(seconds: float) -> str:
    """Wait."""
    time.sleep(seconds)
    return "done"


async def test_a_call_that_takes_too_long_closes_its_session_alone_until_it_ends():
    toolkit = Toolkit.from_tools([slow])
    toolkit = toolkit.replace(*[replace(tool, simulate=lambda state, seconds: slow(seconds)) for tool in toolkit])
    client = client_of(world_of(toolkit), call_s=0.2)
    assert (await client.post("/slow", json={"seconds": 0.6})).status_code == 504
    assert (await client.post("/slow", json={"seconds": 0})).status_code == 503
    await make(client, "other")
    assert (await client.post("/s/other/slow", json={"seconds": 0})).json() == "done"
    await asyncio.sleep(0.7)
    assert (await client.post("/slow", json={"seconds": 0})).status_code == 200
    assert len((await client.get(f"{OWN}/default/history")).json()["history"]) == 2


async def test_a_late_call_of_a_closed_session_is_not_written(tmp_path):
    def wait(state, seconds):
        return slow(seconds)

    (tool,) = Toolkit.from_tools([slow])
    base = world_of(Toolkit.from_tools([slow]).replace(replace(tool, simulate=wait)))
    journal = Journal(tmp_path / "runs.sqlite", identity="x")
    client = client_of(base, call_s=0.1, store=journal)
    await client.sessions.get("default")
    assert (await client.post("/slow", json={"seconds": 0.4})).status_code == 504
    assert (await client.delete(f"{OWN}/default")).status_code == 204
    await asyncio.sleep(0.5)
    journal.close()
    assert [row.kind for row in Journal(tmp_path / "runs.sqlite", identity="x").read()] == ["new", "close"]


async def test_changes_are_told_as_they_come(client):
    async with client.sessions.listen() as queue:
        await client.post(CANCEL)
        kinds = [queue.get_nowait()["kind"] for _ in range(2)]
    assert kinds == ["new", "call"]


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b'"x"', b'{"id": 7}', b'{"id": "../x"}', b'{"idd": "x"}'])
async def test_bad_bodies_of_our_own_routes_are_refused(client, body):
    assert (await client.post(OWN, content=body)).status_code in (400, 422)
    assert json.loads((await client.get(OWN)).content) == {"sessions": []}
