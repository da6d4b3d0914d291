"""`multi_turn_long_context`: the classes answer at length there; the contract's answer is made as long as theirs.

What the benchmark pads its states with stands in the task state already. What it adds to answers is read from the
package, never copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gecko_graph import Contract, ToolSpec
from gecko_graph.state import Json, JsonObject
from gecko_graph.values.digest import clone, digest
from gecko_graph.values.patch import apply_patch

from . import package

EXTENSIONS = "eval_checker.multi_turn_eval.func_source_code.long_context"

ORDER = ("id", "order_type", "symbol", "price", "amount", "status")
"""An order's members as the class has them: what is long is looked for as text."""

LAST_ROUTE = ("OKD", "LAX")
"""Which the class lists behind all others."""

Padding = Callable[[Any, JsonObject, Mapping[str, Any], Mapping[str, Any]], Json]
"""Makes an answer long: from the answer, the class's state, the arguments, and the lets of its contracts."""


def _added(key: str, name: str) -> Padding:
    return lambda result, state, args, lets: {**result, key: _extension(name)}


def _before(key: str, name: str) -> Padding:
    return lambda result, state, args, lets: {key: _extension(name), **result}


def _extension(name: str) -> Any:
    return clone(getattr(package.load(EXTENSIONS), name))


def _order(result: Any, state: JsonObject, args: Mapping[str, Any], lets: Mapping[str, Any]) -> Json:
    symbol = result["symbol"]
    metadata = {key: text.format(symbol=symbol) for key, text in _extension("ORDER_DETAIL_EXTENSION").items()}
    first = {key: result[key] for key in ORDER if key in result}
    return {**first, **result, "metadata": metadata}


def _fares(result: Any, state: JsonObject, args: Mapping[str, Any], lets: Mapping[str, Any]) -> Json:
    """Return the cost of every route, by the factor of the one that was asked for."""
    factor = result["travel_cost_list"][0] / lets["fares"][args["travel_from"]][args["travel_to"]]
    routes = [(one, other) for one, fares in lets["fares"].items() for other in fares]
    routes.sort(key=lambda route: route == LAST_ROUTE)
    return {"travel_cost_list": [float(lets["fares"][one][other] * factor) for one, other in routes]}


def _stocks(result: Any, state: JsonObject, args: Mapping[str, Any], lets: Mapping[str, Any]) -> Json:
    names = {"Technology": "TECHNOLOGY_EXTENSION", "Automobile": "AUTOMOBILE_EXTENSION"}
    more = _extension(names[args["sector"]]) if args["sector"] in names else []
    return {"stock_list": [*result["stock_list"], *more]}


PADDED: Mapping[str, Padding] = {
    "get_stock_info": lambda result, state, args, lets: {
        **result,
        "MA(5)": _extension("MA_5_EXTENSION"),
        "MA(20)": _extension("MA_20_EXTENSION"),
    },
    "get_order_details": _order,
    # a list and no object here, and printed: the benchmark's own list holds an Ellipsis
    "get_watchlist": lambda result, state, args, lets: str([*result["watchlist"], *_extension("WATCH_LIST_EXTENSION")]),
    "get_transaction_history": lambda result, state, args, lets: {
        "transaction_history": [*result["transaction_history"], *_extension("TRANSACTION_HISTORY_EXTENSION")]
    },
    "get_available_stocks": _stocks,
    "get_flight_cost": _fares,
    "book_flight": lambda result, state, args, lets: {**result, "booking_history": state["booking_record"]},
    "get_outside_temperature_from_google": lambda result, state, args, lets: {
        **_extension("LONG_WEATHER_EXTENSION"),
        **result,
    },
    "displayCarStatus": _before("metadata", "CAR_STATUS_METADATA_EXTENSION"),
    "activateParkingBrake": _before("parkingBrakeInstruction", "PARKING_BRAKE_INSTRUCTION"),
    "estimate_distance": _added("intermediaryCities", "INTERMEDIARY_CITIES"),
    "check_tire_pressure": _added("car_info", "CAR_STATUS_METADATA_EXTENSION"),
}


def padded(spec: ToolSpec, owner: str) -> ToolSpec:
    """Return a tool that answers as long as its class; its contract still says what is refused and what changes."""
    pad, contract = PADDED.get(spec.name), spec.contract
    if pad is None or contract is None:
        return spec

    def simulate(state: JsonObject, /, **args: Any) -> Json:
        call: Any = {"id": digest(state), "name": spec.name, "args": args}
        run = contract.open(args=args, parameters=spec.parameters, state=state, call=call, now=None, seed=0)
        answer = run.answer()
        assert answer is not None
        after: Any = {**apply_patch(state, answer.patch)}
        state.clear()
        state.update(after)
        return pad(answer.result, after[owner], args, contract.lets)

    # what must hold of an answer is written for those that are not padded
    bare = {key: part for key, part in contract.data.items() if key in ("at", "let", "requires")}
    gate = Contract.load(bare, lets=contract.lets, where=spec.name)
    return replace(spec, contract=gate, simulate=simulate, result=None)
