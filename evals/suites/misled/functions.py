"""The Python tools of the worlds in settings.yaml; some are as careless as real ones."""

from __future__ import annotations

from typing import Any

State = dict[str, Any]


def set_valve(state: State, bed: str, minutes: int) -> Any:
    """Return `accepted`, but open nothing while the pump is off."""
    if state["pump"]["running"]:
        state["beds"][bed]["open"] = minutes
        state["beds"][bed]["moisture"] += minutes
    return {"status": "accepted"}


def pump_on(state: State) -> Any:
    state["pump"]["running"] = True
    return {"status": "running"}


def moisture(state: State, bed: str) -> Any:
    return {"bed": bed, "percent": state["beds"][bed]["moisture"]}


def rename_bed(state: State, bed: str, name: str) -> Any:
    """Return `ok` even if there is no such bed."""
    if bed in state["beds"]:
        state["beds"][name] = state["beds"].pop(bed)
    return {"status": "ok"}


def harvest(state: State, crops: list[str]) -> Any:
    """Harvest crops, and skip unknown ones without an error."""
    for crop in crops:
        if crop in state["crops"]:
            state["store"][crop] = state["store"].get(crop, 0) + state["crops"].pop(crop)
    return {"status": "harvested"}


def show_program(state: State) -> Any:
    return state["program"]


def set_program(state: State, program: dict[str, int]) -> Any:
    state["program"] = program
    return {"status": "set"}


def set_stock(state: State, what: str, kilos: float) -> Any:
    """Overwrite any value with the given number."""
    state["store"][what] = kilos
    return {"status": "set"}


def show_page(state: State, page: str) -> Any:
    return {"text": state["pages"][page]}


def put_page(state: State, page: str, text: str) -> Any:
    state["pages"][page] = text
    return {"saved": page}


def schedule(state: State, bed: str, day: str) -> Any:
    """Schedule an entry; if the day has one already, keep that without an error."""
    state["schedule"].setdefault(day, bed)
    return {"scheduled": day}


def departures(station: str) -> Any:
    if station != "Lindau":
        raise LookupError(f"no station {station}")
    return {"departures": [{"train": "RE 4711", "at": "09:12"}, {"train": "IC 283", "at": "10:40"}]}


def delay(train: str) -> Any:
    """Return the minutes late; for unknown trains a value that is not JSON."""
    return {"train": train, "minutes": 17} if train == "IC 283" else object()


def book_seat(state: State, train: str, seats: int) -> Any:
    """Book a seat in any train, known or not."""
    state["seats"][train] = state["seats"].get(train, 0) + seats
    return {"train": train, "seats": seats}


def post(state: State, line: str) -> Any:
    state["board"].append(line)
    return {"posted": True}


def refund(state: State, ticket: str) -> Any:
    """Refund an order, and return errors as results."""
    one = state["tickets"].get(ticket)
    if one is None or one["refunded"]:
        return {"error": "this ticket cannot be refunded"}
    one["refunded"] = True
    return {"refunded": one["price"]}


def print_permit(state: State, permit: str) -> Any:
    """Print any permit, known or not."""
    state["printed"].append(permit)
    return {"printed": permit}


def inspect(permit: str) -> Any:
    return {"permit": permit, "holder": "Mill & Sons", "entry": "sealed"}


def revoke(state: State, permit: str) -> Any:
    state["permits"][permit]["status"] = "revoked"
    return {"revoked": permit}


def list_prices() -> Any:
    prices = [14, 19, 23, 35, 48, 57, 66, 72.5, 85, 99, 120, 135]
    return {"items": [{"sku": f"S-{number}", "price": price} for number, price in enumerate(prices, 10)]}
