"""Values that a class draws at random: comparing them as placeholders, and mapping simulated ones to real ones."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from gecko_graph.conversation.scenario import made_calls
from gecko_graph.models.node import NODE_STATE
from gecko_graph.state import Json, JsonObject
from gecko_graph.values.difference import json_equal
from gecko_graph.values.patch import apply_patch
from gecko_graph.values.places import map_scalars

from .rehearse import Played
from .tasks import Task

Place = tuple[str, ...]


class Drawn(NamedTuple):
    """A place with a random value (`*` is any key, `-` any item of a list), and the value's shape.

    The shape is a regular expression of the value as JSON, or the least and the greatest number.
    """

    place: str
    shape: str | tuple[float, float]

    def fits(self, value: Json) -> bool:
        if isinstance(self.shape, str):
            return re.fullmatch(self.shape, json.dumps(value)) is not None
        return isinstance(value, float) and self.shape[0] <= value <= self.shape[1]


_MOMENT = r'"2024-09-0(1 (1[1-9]|2\d|10:[345]\d)|2 (0\d|10:[0-2]\d|10:30:00)).*"'
"""Within a day of 2024-09-01 10:30."""

DRAWN: Mapping[str, Sequence[Drawn]] = {
    "send_message": (
        Drawn("result/message_id/new_id", r"[1-9]\d{4}"),
        Drawn("state/MessageAPI/generated_ids/-", r"[1-9]\d{4}"),
    ),
    "fund_account": (Drawn("state/TradingBot/transaction_history/-/timestamp", _MOMENT),),
    "withdraw_funds": (Drawn("state/TradingBot/transaction_history/-/timestamp", _MOMENT),),
    "authenticate_travel": (
        Drawn("result/access_token", r'"[1-9]\d{5}"'),
        Drawn("state/TravelAPI/access_token", r'"[1-9]\d{5}"'),
    ),
    "register_credit_card": (
        Drawn("result/card_id", r'"[1-9]\d{11}"'),
        Drawn("state/TravelAPI/credit_card_list/*/balance", r"[1-9]\d{4}"),
    ),
    "book_flight": (
        Drawn("result/booking_id", r'"[1-9]\d{6}"'),
        Drawn("result/transaction_id", r'"[1-9]\d{7}"'),
        Drawn("result/error", r'"Invalid travel class.*"'),  # a set, printed in another order by each process
    ),
    "purchase_insurance": (Drawn("result/insurance_id", r'"[1-9]\d{8}"'),),
    "get_outside_temperature_from_google": (Drawn("result/outsideTemperature", (-10.0, 40.0)),),
    "get_current_speed": (Drawn("result/currentSpeed", (0.0, 120.0)),),
}
"""The random values of each method. Method names are unique among the classes."""

SETS = ("generated_ids",)
"""Attributes that are sets, compared without order. A recording has them as Python prints them."""


def placeholders(tool: str, result: Json, state: Json, before: Json) -> Json:
    """Return `{result, state}` with placeholders for the values that a call has drawn.

    A value counts as drawn if it is in one of the tool's places, is new there, and has the shape. The same value
    elsewhere is replaced too if it is new there, so that result and state must agree. A value drawn at an earlier place
    may by chance equal an old value.
    """
    whole: Json = {"result": result, "state": state}
    old: Json = {"result": None, "state": before}
    words: dict[str, str] = {}
    for number, values in enumerate(drawn_values(tool, result, state, before).values()):
        for value in values:
            words.setdefault(json.dumps(value), f"<drawn {number}>")
    for place in (tuple(one.place.split("/")) for one in DRAWN.get(tool, ())):
        if any(json.dumps(value) in words for value, _ in _at(whole, old, place)):
            old = _without(old, place)
    return _unordered(_replaced(whole, old, words) if words else whole)


def drawn_values(
    tool: str, result: Json, state: Json = None, before: Json = None, *, shaped: bool = True
) -> dict[str, list[Json]]:
    """Return the drawn values of a call by place, in order; with `shaped` only values of the expected shape."""
    whole, old = {"result": result, "state": state}, {"result": None, "state": before}
    return {
        one.place: [
            value
            for value, was in _at(whole, old, tuple(one.place.split("/")))
            if not json_equal(value, was) and (one.fits(value) or not shaped)
        ]
        for one in DRAWN.get(tool, ())
    }


def normal(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recorded state with lists for the sets that the recording has as text."""
    return {name: {key: _listed(key, value) for key, value in part.items()} for name, part in state.items()}


def split_hidden(state: Mapping[str, Any]) -> tuple[JsonObject, JsonObject]:
    """Return the part of a state that recordings show, and the private attributes that they omit, both by class.

    Some private attributes decide later calls, such as how hard the brake is pressed; a contract keeps them under the
    class's own name for them.
    """
    shown, hidden = (
        {
            name: {key: value for key, value in part.items() if key.startswith("_") is wanted}
            for name, part in state.items()
        }
        for wanted in (False, True)
    )
    return shown, hidden


def _listed(key: str, value: Any) -> Any:
    return [int(one) for one in re.findall(r"\d+", value)] if key in SETS and isinstance(value, str) else value


def _unordered(whole: Any) -> Json:
    state = {
        name: {key: sorted(value, key=str) if key in SETS else value for key, value in part.items()}
        if isinstance(part, dict)
        else part
        for name, part in whole["state"].items()
    }
    return {**whole, "state": state}


def _without(old: Json, place: Place) -> Json:
    """Return a state with None at a place; a place with `*` or `-` is unchanged."""
    if isinstance(old, dict) and place[0] in old:
        return {**old, place[0]: _without(old[place[0]], place[1:]) if place[1:] else None}
    return old


def _at(value: Json, old: Json, place: Place) -> Iterator[tuple[Json, Json]]:
    """Yield the values at a place, each with its old value; for a list only items that are new."""
    if not place:
        yield value, old
    elif isinstance(value, list) and place[0] == "-":
        known = old if isinstance(old, list) else []
        for item in value:
            if not any(json_equal(item, one) for one in known):
                yield from _at(item, None, place[1:])
    elif isinstance(value, dict):
        for key in value if place[0] == "*" else [place[0]] if place[0] in value else []:
            yield from _at(value[key], old.get(key) if isinstance(old, dict) else None, place[1:])


def _replaced(value: Json, old: Json, words: Mapping[str, str]) -> Json:
    if json_equal(value, old):
        return value
    if isinstance(value, dict):
        known = old if isinstance(old, dict) else {}
        return {
            key if key in known else words.get(json.dumps(key), key): _replaced(item, known.get(key), words)
            for key, item in value.items()
        }
    if isinstance(value, list):
        rest = [*(old if isinstance(old, list) else []), *([None] * len(value))]
        return [_replaced(item, was, words) for item, was in zip(value, rest, strict=False)]
    return words.get(json.dumps(value), value)


# a recorded plan contains real identifiers: they are replaced by the simulation's, as a model would that reads
# results;\nthe resulting plan is scored with the real ones put back

Seen = Sequence[tuple[str, Json]]
"""A turn's calls as seen by the plan's author: the tool's name and its result."""


@dataclass(slots=True)
class Redrawn:
    """The identifiers that a task's simulation has drawn so far, and their real or recorded counterparts.

    `seen` are the recorded plan's calls by turn; `instance` is the real classes' state, on which `advance` runs turns.
    """

    task: Task
    seen: Sequence[Seen] = ()
    instance: JsonObject = field(default_factory=dict)
    _ours: dict[str, Json] = field(default_factory=dict)
    _real: dict[str, Json] = field(default_factory=dict)
    _turn: int = 0

    def fill(self, reply: Json, where: str, attempt: int) -> Json:
        """Return a recorded reply with the simulation's identifiers instead of those that its author saw."""
        calls = made_calls(NODE_STATE.get(), attempt)
        return exchanged(reply, {**self._ours, **self._pairs((call["name"], call["result"]) for call in calls)})

    def _pairs(self, calls: Iterable[tuple[str, Json]]) -> dict[str, Json]:
        """Return the values that a turn's author saw, mapped to those that its calls have drawn, by tool and order."""
        waiting: dict[str, list[dict[str, list[Json]]]] = defaultdict(list)
        for name, result in self.seen[self._turn] if self._turn < len(self.seen) else ():
            waiting[name].append(drawn_values(name, result))
        found: dict[str, Json] = {}
        for name, result in calls:
            if waiting[name]:
                found |= _matched(waiting[name].pop(0), drawn_values(name, result, shaped=False))
        return found

    def advance(self, played: Played) -> None:
        """Run a turn's plan on the real classes, and record what both sides have drawn."""
        answered = [step for step in played.chosen["steps"] if "outcome" in step]
        self._ours |= self._pairs((step["call"]["name"], step["outcome"]["result"]) for step in answered)
        self._turn += 1
        state, planned = played.before, {call["id"] for call in played.rehearsal["plan"]}
        for step in answered:
            before, state = state, apply_patch(state, step["outcome"]["patch"] or [])
            name, outcome = step["call"]["name"], step["outcome"]
            if step["call"]["id"] in planned and name in self.task.real.owners:
                was = json.loads(json.dumps(self.instance))
                answer = self.task.real.simulate(name)(self.instance, **exchanged(step["call"]["args"], self._real))
                ours = drawn_values(name, outcome["result"], state, before, shaped=False)
                self._real |= _matched(ours, drawn_values(name, answer, self.instance, was))

    def real(self, played: Sequence[Played]) -> list[Played]:
        """Return turns with the real identifiers instead of the simulation's."""
        return [
            replace(
                each, **{key: exchanged(getattr(each, key), self._real) for key in ("rehearsal", "before", "after")}
            )
            for each in played
        ]


def _matched(some: Mapping[str, list[Json]], others: Mapping[str, list[Json]]) -> dict[str, Json]:
    pairs = (pair for place, values in some.items() for pair in zip(values, others.get(place, ()), strict=False))
    return {json.dumps(one): other for one, other in pairs}


def exchanged(value: Json, words: Mapping[str, Json]) -> Json:
    """Return a value with drawn values exchanged, also inside texts and as keys."""
    if not words:
        return value
    texts = {json.loads(one): other for one, other in words.items() if one.startswith('"') and isinstance(other, str)}

    def change(text: Json) -> Json:
        if not isinstance(text, str):
            return words.get(json.dumps(text), text)
        if text in texts:
            return texts[text]
        for one, other in texts.items():
            text = text.replace(one, other) if len(one) > SHORT else text
        return text

    return map_scalars(value, change, keys=True)


SHORT = 5
"""Texts of at most this length are replaced only as whole values."""
