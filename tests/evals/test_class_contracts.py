"""The contracts of BFCL's ticket, trading, car and travel tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from evals import bfcl
from gecko_graph import Toolkit, World

FOLDER = Path(bfcl.__file__).parent / "contracts"
CLASSES = ("TicketAPI", "TradingBot", "TravelAPI", "VehicleControlAPI")


@pytest.fixture
def toolkit(official):
    from evals.bfcl.tasks import documents

    def of(name: str) -> Toolkit:
        return Toolkit.from_tools(documents(name).values()).with_contracts(FOLDER / f"{name}.yaml", at=name)

    return of


@pytest.mark.parametrize("name", CLASSES)
def test_every_tool_has_a_contract_that_loads(toolkit, name):
    tools = toolkit(name)
    assert [tool.name for tool in tools if tool.contract is None] == []
    assert tools.state_keys == {name}


def test_a_day_with_the_ticket_queue(toolkit):
    start = {"TicketAPI": {"ticket_queue": [], "ticket_counter": 7, "current_user": None}}
    world = World(toolkit("TicketAPI"), state=start)
    calls = [
        ("create_ticket", {"title": "a"}),
        ("ticket_login", {"username": "ada", "password": "x"}),
        ("create_ticket", {"title": "a", "priority": 6}),
        ("create_ticket", {"title": "a", "priority": 5}),
        ("resolve_ticket", {"ticket_id": 7, "resolution": "done"}),
        ("resolve_ticket", {"ticket_id": 7, "resolution": "done"}),
        ("get_user_tickets", {"status": "resolved"}),
    ]
    outcomes = [world.call({"name": name, "args": args})["outcome"] for name, args in calls]
    assert {outcome["rung"] for outcome in outcomes} == {"contract"}
    assert [outcome["status"] for outcome in outcomes] == ["error", "ok", "error", "ok", "ok", "error", "ok"]
    assert outcomes[5]["result"] == {"error": "Ticket with ID 7 is already resolved."}
    assert outcomes[6]["result"][0]["resolution"] == "done"
    assert world.state["TicketAPI"]["ticket_counter"] == 8
