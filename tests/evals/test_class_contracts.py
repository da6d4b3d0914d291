"""The contracts of BFCL's ticket, trading, car and travel tools, on recorded calls; wrong ones are found."""

from __future__ import annotations

import pytest

from evals.bfcl.contracted import FOLDER, class_toolkit
from evals.bfcl.differential import Real, Start
from evals.bfcl.fidelity import compared, is_kept_out, recorded_calls, simulated
from evals.suites.fidelity import FILES
from gecko_graph import Toolkit
from gecko_graph.values.documents import read_document

CLASSES = ("TicketAPI", "TradingBot", "TravelAPI", "VehicleControlAPI")
CALLS, OF_TOOL = 300, 60


@pytest.fixture(scope="module")
def tasks(read_jsonl):
    """The recorded tasks that contracts are written with."""
    return [row for file in FILES for row in read_jsonl(file) if not is_kept_out(row["id"])]


@pytest.fixture
def replay(official, tasks):
    """Return the differing ones among some hundred recorded calls of a class, or of one tool, and how many they are."""

    def go(name: str, toolkit: Toolkit, tool: str = ""):
        differing, count = [], 0
        most = OF_TOOL if tool else CALLS
        for task in (task for task in tasks if name in task["classes"] and count < most):
            hidden = {}
            for one in recorded_calls(task):
                if one.kind == name:
                    got = simulated(toolkit, one, hidden)
                    hidden = got.hidden
                    if tool in ("", one.name):
                        count += 1
                        differing += [found] if (found := compared(one, got)["difference"]) else []
        return differing, count

    return go


@pytest.mark.parametrize("name", CLASSES)
def test_every_tool_has_a_contract_that_loads(official, name):
    tools = class_toolkit(name)
    assert [tool.name for tool in tools if tool.contract is None] == []
    assert tools.state_keys == {name}


@pytest.mark.parametrize(("name", "least"), [("TicketAPI", 100), *((name, CALLS) for name in CLASSES[1:])])
def test_recorded_calls_come_to_the_same(replay, name, least):
    differing, count = replay(name, class_toolkit(name))
    assert differing == []
    assert count >= least


@pytest.mark.parametrize(
    ("name", "tool", "part", "value"),
    [
        ("TicketAPI", "create_ticket", "requires", []),
        ("TicketAPI", "resolve_ticket", "effects", []),
        ("TradingBot", "place_order", "requires", []),
        ("TradingBot", "cancel_order", "returns", {"order_id": "{{ args.order_id }}", "status": "Canceled"}),
        ("TravelAPI", "book_flight", "effects", []),
        ("TravelAPI", "cancel_booking", "requires", [{"check": "defined(record)", "error": "not found"}]),
        ("VehicleControlAPI", "pressBrakePedal", "effects", []),
        ("VehicleControlAPI", "fillFuelTank", "requires", []),
    ],
)
def test_a_wrong_contract_is_found(replay, name, tool, part, value):
    document = read_document(FOLDER / f"{name}.yaml")
    document["contracts"][tool][part] = value
    differing, count = replay(name, class_toolkit(name).with_contracts(document, at=name), tool)
    assert differing
    assert len(differing) < count or part != "requires", "what does not depend on the mistake is still the same"


DOORS = ["driver", "passenger", "rear_left", "rear_right"]
WALLET = {
    "access_token": "t",
    "token_expires_in": 5,
    "budget_limit": 50,
    "credit_card_list": {"1": {"balance": 100}, "2": {}},
    "booking_record": {
        "9": {"card_id": "1", "travel_cost": 5.0},
        "8": {"card_id": "7", "travel_cost": 5.0},
        "7": {"card_id": "1"},
        "6": {},
        "5": {"card_id": "2", "travel_cost": 5.0},
    },
}


def drive(pedal, mode):
    return [
        ("lockDoors", {"unlock": False, "door": DOORS}),
        ("pressBrakePedal", {"pedalPosition": pedal}),
        ("startEngine", {"ignitionMode": mode}),
        ("displayCarStatus", {"option": "brakePedal"}),
        *(
            ("setCruiseControl", {"speed": speed, "activate": active, "distanceToNextVehicle": speed})
            for speed, active in ((65, True), (66, True), (66, False))
        ),
    ]


def insure(card, cost, booking):
    args = {"booking_id": booking, "insurance_cost": cost, "card_id": card, "insurance_type": "x"}
    return "purchase_insurance", {"access_token": "t", **args}


def paid():
    yield from (insure(*each) for each in [("1", 60, "9"), ("1", 40, "0"), ("3", 4, "9"), ("2", 4, "9"), ("1", 4, "9")])
    for tool in ("retrieve_invoice", "cancel_booking"):
        yield from ((tool, {"access_token": "t", "booking_id": booking}) for booking in "986750")
    yield from (("get_credit_card_balance", {"access_token": "t", "card_id": card}) for card in "123")


@pytest.mark.parametrize(
    ("name", "config", "steps"),
    [
        *(
            ("VehicleControlAPI", {"fuelLevel": fuel}, drive(pedal, mode))
            for fuel in (10.0, -1.0)
            for pedal in (0, 0.5, 1)
            for mode in ("START", "STOP", "x")
        ),
        ("TravelAPI", WALLET, list(paid())),
    ],
)
def test_what_recordings_and_random_calls_seldom_reach(official, name, config, steps):
    real = Real(Start(name, "t", config))
    assert [each["difference"] for each in map(real.step, steps) if not each["same"]] == []
