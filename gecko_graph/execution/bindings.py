"""Arguments that only reality can give: found in the plan by provenance, resolved from real results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..schemas.findings import json_path
from ..state import Call, Json, Origin, Origins, Step
from .records import Binding, Departure, ExecutedCall, PlannedCall

SHORTEST = 4
"""Characters of a text or digits of a number that is bound by equality: shorter ones are equal by chance."""


def sources_of(argument: str, value: Json, origins: Sequence[Origin], steps: Sequence[Step]) -> list[Binding]:
    """Return the results of the plan's calls that an argument was taken from, where nothing else holds its value.

    Args:
        argument: JSON path of the argument.
        value: Its value.
        origins: Where the value stands, by provenance.
        steps: The attempt's steps, which `Origin["step"]` counts from 1.
    """
    if any(origin["from"] in ("task", "conversation", "state") for origin in origins):
        return []
    found: list[Binding] = []
    for origin in origins:
        number = origin.get("step")
        if number is not None and "attempt" not in origin:
            found.append({"argument": argument, "call": steps[number - 1]["call"]["id"], "path": origin["path"]})
    return found


def is_bindable(value: Json, path: str) -> bool:
    """True for a value that can be told apart by equality, at a place without a list index."""
    if isinstance(value, bool) or not isinstance(value, str | int) or "[" in path:
        return False
    return len(str(value)) >= SHORTEST


def resolved(planned: PlannedCall, journal: Sequence[ExecutedCall]) -> tuple[Call, Departure | None]:
    """Return the call with the values that reality gave its bound arguments, and why one cannot be had."""
    call: Call = {**planned["call"]}
    results = {entry["call"]["id"]: entry.get("result") for entry in journal if entry["status"] == "ok"}
    for binding in planned["bindings"]:
        value = at_path(results.get(binding["call"]), binding["path"])
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            message = f"{binding['argument']}: the call {binding['call']} returned no value at {binding['path']}"
            return call, {"code": "binding", "message": message}
        call["args"] = replaced(call["args"], binding["argument"], value)
    return call, None


def at_path(value: Json, path: str) -> Json:
    """Return what stands at a JSON path; None where nothing does."""
    return next((each for place, each in places(value) if place == path), None)


def replaced(value: Json, path: str, new: Json, here: str = "$") -> Any:
    """Return a copy of a value with another one at a JSON path."""
    if here == path:
        return new
    if isinstance(value, dict):
        return {key: replaced(each, path, new, json_path_of(here, key)) for key, each in value.items()}
    if isinstance(value, list):
        return [replaced(each, path, new, json_path_of(here, index)) for index, each in enumerate(value)]
    return value


def json_path_of(parent: str, key: str | int) -> str:
    """Return the JSON path of a member."""
    return parent + json_path((key,)).removeprefix("$")


def places(value: Json, here: str = "$") -> Iterator[tuple[str, Json]]:
    """Yield each value within a value, with its JSON path."""
    yield here, value
    members: Mapping[Any, Json] = value if isinstance(value, dict) else {}
    if isinstance(value, list):
        members = dict(enumerate(value))
    for key, each in members.items():
        yield from places(each, json_path_of(here, key))


def bound(planned: Call, origins: Origins, steps: Sequence[Step], writes: set[str]) -> tuple[list[Binding], list[str]]:
    """Return a call's bindings, and the reads among whose simulated results an argument was chosen, by call id."""
    bindings: list[Binding] = []
    reads: list[str] = []
    values = dict(places(planned["args"]))
    for argument, marks in origins.get(planned["id"], {}).items():
        sources = sources_of(argument, values.get(argument), marks, steps)
        reads += [each["call"] for each in sources if each["call"] not in writes]
        made = [each for each in sources if each["call"] in writes and is_bindable(values.get(argument), each["path"])]
        if len(made) == 1 and len(sources) == 1:
            bindings += made
    return bindings, reads
