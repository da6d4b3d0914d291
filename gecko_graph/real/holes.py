"""A call as it was approved: what stays as it was shown, and the holes that real results fill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..models.formatting import format_json
from ..state import Call, Json, JsonObject
from ..values.difference import equal, json_equal, same_value
from ..values.leaves import as_text
from ..values.paths import path_tokens, value_at
from ..world.records import Binding, Departure, PlannedCall

SHOWN = 80


def template(planned: PlannedCall) -> Iterator[tuple[str, list[str | Binding]]]:
    """Yield each argument that has holes: what was approved of its text, and the holes in it, in order.

    What is shown of a call, its digest, and what is sent are all made of this.
    """
    by_argument: dict[str, list[Binding]] = {}
    for each in planned["bindings"]:
        by_argument.setdefault(each["argument"], []).append(each)
    for argument, bindings in by_argument.items():
        if "starts" not in bindings[0]:
            yield argument, [bindings[0]]
            continue
        text, parts, end = value_at(planned["call"]["args"], argument), list[str | Binding](), 0
        for start, number in sorted((start, n) for n, each in enumerate(bindings) for start in each["starts"]):
            parts += [text[end:start], bindings[number]]
            end = start + len(as_text(bindings[number]["predicted"]))
        yield argument, [*parts, text[end:]]


def with_holes(planned: PlannedCall) -> JsonObject:
    """Return a call without the values that reality gives, and where each of its holes gets its value from."""
    args, holes = planned["call"]["args"], dict[str, Json]()
    for argument, parts in template(planned):
        args = replaced(args, path_tokens(argument), None)
        holes[argument] = [each if isinstance(each, str) else [each["call"], each["path"]] for each in parts]
    return {**planned["call"], "args": args, "holes": holes}


def resolve(planned: PlannedCall, results: Mapping[str, Json]) -> tuple[PlannedCall, Departure | None]:
    """Return the call as it is to be sent, and why it must not be: reality is not what was predicted, or has no value.

    Only holes are filled. What an argument may rest on otherwise must be as predicted: then it is sent as it was shown.
    """
    uncertain = [source for each in planned["ambiguous"] for source in each["sources"]]
    for each in [*(planned.get("expects") or ()), *uncertain]:
        if not equal(value_at(results.get(each["call"]), each["path"]), each["predicted"], same_value):
            return planned, _departure(each, results, "not what was predicted")
    return fill(planned, results)


def fill(planned: PlannedCall, results: Mapping[str, Json]) -> tuple[PlannedCall, Departure | None]:
    """Return the call with the values of these results in its holes, which stay holes; or why one has no value."""
    args, filled = planned["call"]["args"], dict[tuple[str, str, str], Binding]()
    for argument, parts in template(planned):
        text: Any = ""
        for part in parts:
            if isinstance(part, str):
                text += part
                continue
            value = value_at(results.get(part["call"]), part["path"])
            if value in (None, "") or ("starts" in part and isinstance(value, bool | dict | list)):
                return planned, _departure(part, results, "no value that can be used")
            new: Binding = {**part, "predicted": value}
            if "starts" in part:
                new = filled.get((argument, part["call"], part["path"])) or {**new, "starts": []}
                new["starts"].append(len(text))
                value = text + as_text(value)
            filled[argument, part["call"], part["path"]], text = new, value
        args = replaced(args, path_tokens(argument), text)
    return {**planned, "call": {**planned["call"], "args": args}, "bindings": [*filled.values()]}, None


def find_difference(planned: PlannedCall, sent: Call, results: Mapping[str, Json]) -> Departure | None:
    """Return a departure where a call is not the planned one with the exact values of the results in its holes."""
    approved, _ = fill(planned, results)
    is_same = json_equal(sent, approved["call"])
    return None if is_same else {"code": "binding", "message": "it is not the call that was approved"}


def _departure(binding: Binding, results: Mapping[str, Json], why: str) -> Departure:
    real = format_json(value_at(results.get(binding["call"]), binding["path"]), budget=SHOWN)
    place = f"the result of the call {binding['call']} at {binding['path']}"
    return {"code": "binding", "message": f"{binding['argument']} rests on {place}: {real} is {why}"}


def replaced(value: Json, tokens: Sequence[str | int], new: Json) -> Any:
    """Return a copy of a value with another one at a place that it has."""
    if not tokens:
        return new
    copied = {**value} if isinstance(value, dict) else [*value]
    copied[tokens[0]] = replaced(value[tokens[0]], tokens[1:], new)  # type: ignore[index]
    return copied
