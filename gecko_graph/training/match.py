"""ToolMatch: whether predicted calls are the label's (paper, equation 1), as a word and as a reward."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..state import Json, JsonObject
from ..values.patch import same_value
from .call_texts import read_call_texts, read_said
from .calls import read_call

LEFT_OUT = ""
"""Among BFCL's allowed values: the argument may be left out."""


def tool_match(
    predicted: Sequence[Mapping[str, Any]],
    label: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    also: Sequence[Mapping[str, Mapping[str, Sequence[Json]]]] | None = None,
) -> bool:
    """Return whether predicted calls are those of the label, in any order, each as often as there.

    Arguments are equal as JSON values: 1 is 1.0, neither `true` nor `"1"`; lists keep their order. One that is left out
    is its schema's default. Without calls on both sides they match, whatever is said.

    Args:
        predicted: The calls, each with `name` and `arguments`.
        label: The right calls.
        tools: OpenAI's function dicts.
        also: BFCL's allowed values, one entry a call of the label: these count in the place of the label's and of
            defaults.
    """
    if len(predicted) != len(label):
        return False
    plain = [each.get("function", each) for each in tools]
    schemas = {each["name"]: each.get("parameters") for each in plain}
    allowed: Sequence[Any] = also or [None] * len(label)
    fits = [[_is_same(one, *pair, schemas) for pair in zip(label, allowed, strict=True)] for one in predicted]
    return _can_pair(fits)


def tool_match_reward(
    completions: Sequence[Any], label: Sequence[Any], tools: Sequence[Any] | None = None, **columns: Any
) -> list[float]:
    """Return equation 1's reward for each completion, 1 or 0, as a function of TRL's `reward_funcs`.

    A completion is a text, with calls as model families write them, or its messages; columns may be JSON text. Calls in
    thoughts do not count. One with a call that is cut off, or cannot be read, has 0.
    """
    rewards: list[float] = []
    also = columns.get("also") or [None] * len(completions)
    for said, right, known, allowed in zip(completions, label, tools or [[]] * len(completions), also, strict=True):
        try:
            given = _load(known) or []
            made, wanted = read_completion(said, given), [read_call(each) for each in _load(right)]
            rewards.append(float(tool_match(made, wanted, given, _load(allowed))))
        except ValueError:
            rewards.append(0.0)
    return rewards


def read_completion(said: Any, tools: Sequence[Mapping[str, Any]] = ()) -> list[JsonObject]:
    """Return the calls of a completion: a text, or its messages up to the first that calls. Raises ValueError."""
    if isinstance(said, str):
        return read_call_texts(said, tools)[0]
    for message in said:
        is_said = message.get("tool_calls") or message.get("role", "assistant") == "assistant"
        if is_said and (made := read_said(message, tools)[0]):
            return [read_call(each) for each in made]
    return []


def _load(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _is_same(
    one: Mapping[str, Any], right: Mapping[str, Any], also: Mapping[str, Any] | None, schemas: Mapping[str, Any]
) -> bool:
    if one["name"] != right["name"] or not isinstance(one["arguments"], Mapping):
        return False
    if also:
        return _is_allowed(one["arguments"], also.get(right["name"], {}))
    return _same_object(one["arguments"], right["arguments"], schemas.get(one["name"]))


def _same_object(one: Mapping[str, Json], other: Mapping[str, Json], schema: Any) -> bool:
    """Compare two objects by a schema's members, whose defaults replace omitted values."""
    known = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    for name in {**one, **other}:
        rule: Mapping[str, Any] = known[name] if isinstance(known.get(name), Mapping) else {}
        if (name not in one or name not in other) and "default" not in rule:
            return False
        if not _same(one.get(name, rule.get("default")), other.get(name, rule.get("default")), rule):
            return False
    return True


def _same(one: Json, other: Json, rule: Mapping[str, Any]) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return _same_object(one, other, rule)
    if isinstance(one, list) and isinstance(other, list):
        items = rule.get("items") if isinstance(rule.get("items"), Mapping) else {}
        return len(one) == len(other) and all(_same(*pair, items) for pair in zip(one, other, strict=True))  # type: ignore[arg-type]
    return same_value(one, other)


def _is_allowed(given: Mapping[str, Json], allowed: Mapping[str, Sequence[Json]]) -> bool:
    """Return whether BFCL's allowed values hold each argument; they also say which may be left out."""
    return given.keys() <= allowed.keys() and all(
        any(_is_like(given[name], each) for each in values) if name in given else LEFT_OUT in values
        for name, values in allowed.items()
    )


def _is_like(value: Json, right: Json) -> bool:
    if isinstance(value, Mapping) and isinstance(right, Mapping):  # its members are lists of allowed values
        return _is_allowed(value, right)
    if isinstance(value, list) and isinstance(right, list):
        return len(value) == len(right) and all(map(_is_like, value, right))
    return same_value(value, right)


def _can_pair(fits: Sequence[Sequence[bool]]) -> bool:
    """Return whether each row can have a column of its own."""
    owner: dict[int, int] = {}

    def place(row: int, seen: set[int]) -> bool:
        for column in (at for at, fit in enumerate(fits[row]) if fit and at not in seen):
            seen.add(column)
            if column not in owner or place(owner[column], seen):
                owner[column] = row
                return True
        return False

    return all(place(row, set()) for row in range(len(fits)))
