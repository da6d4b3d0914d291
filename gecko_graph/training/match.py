"""ToolMatch: whether predicted calls equal the label's (paper, equation 1), as a boolean and as a reward."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..state import Json, JsonObject
from ..values.patch import same_value
from .call_texts import read_call_texts, read_said
from .samples import read_call

LEFT_OUT = ""
"""In BFCL's allowed values: the argument may be omitted."""


def tool_match(
    predicted: Sequence[Mapping[str, Any]],
    label: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    also: Sequence[Mapping[str, Mapping[str, Sequence[Json]]]] | None = None,
) -> bool:
    """Return whether predicted calls equal those of the label, in any order, each as often.

    Arguments are compared as JSON values: 1 equals 1.0, but neither `true` nor `"1"`; lists are ordered. An omitted
    argument equals its schema's default. Two texts without calls match.

    Args:
        predicted: The calls, each with `name` and `arguments`.
        label: The right calls.
        tools: OpenAI's function dicts.
        also: BFCL's allowed values, one entry per call of the label; they replace the label's values and defaults.
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
    """Return equation 1's reward for each completion, 1 or 0; usable as one of TRL's `reward_funcs`.

    A completion is a text, with calls in any model family's syntax, or its messages; columns may be JSON text. Calls in
    reasoning do not count. A truncated or unreadable call gives 0.
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
    """Return the calls of a completion: of a text, or of its first message with calls. Raises ValueError."""
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
    """Compare two objects by a schema's properties, whose defaults replace omitted values."""
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
    """Return whether BFCL's allowed values contain each argument, and allow each omitted one."""
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
    """Return whether rows and columns can be matched one to one (augmenting paths)."""
    owner: dict[int, int] = {}

    def place(row: int, seen: set[int]) -> bool:
        for column in (at for at, fit in enumerate(fits[row]) if fit and at not in seen):
            seen.add(column)
            if column not in owner or place(owner[column], seen):
                owner[column] = row
                return True
        return False

    return all(place(row, set()) for row in range(len(fits)))
