"""Candidate arguments for calls that undo another, matched by the names of values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from heapq import nsmallest
from itertools import islice, product
from typing import Any

from ..errors import PatchConflict
from ..schemas.rules import accepts, rules_of
from ..schemas.specimens import is_identifier, noun, singular, words
from ..state import Json, JsonObject, Patch
from ..tools import ToolSpec
from ..values.patch import find, tokens

ARGUMENTS = 24
"""Most sets of arguments to try of one tool."""
_VALUES, _BESIDE = 6, 300
_LITERAL = re.compile(r"[!=]= \\?'([^'\\]*)\\?'")
_NAMING = frozenset(("id", "key", "number", "identifier"))

QuestionId = tuple[Json, frozenset[str], int]
"""A value, the words of its name, and its distance from the changes to undo."""


def effects_of(tool: ToolSpec) -> Iterator[JsonObject]:
    """Yield the operations of a tool's contract, with paths from the root of the task state."""
    waiting = [*tool.contract.data.get("effects", ())] if tool.contract else []
    for effect in waiting:
        waiting += effect.get("do", ())
        paths = {key: effect[key] for key in ("path", "from") if isinstance(effect.get(key), list)}
        if "op" in effect and tool.contract:
            yield {**effect, **{key: [*tool.contract.at, *path] for key, path in paths.items()}}


def fixed_keys(tool: ToolSpec) -> Iterator[str]:
    """Yield the constant keys in the paths of a tool's effects; they identify no entity."""
    for effect in effects_of(tool):
        paths = [path for path in (effect["path"], effect.get("from")) if isinstance(path, list)]
        yield from (str(each) for path in paths for each in path if "{{" not in str(each))


def named(value: Json, far: int, owner: str = "") -> Iterator[QuestionId]:
    """Yield a value and all values inside it, with the words of their names."""
    yield value, _words(owner), far
    if isinstance(value, dict):
        for key, each in value.items():
            yield from ((one, names or _words(key), far) for one, names, _ in named(each, far))
            if isinstance(each, dict):
                yield key, _words(owner) | _NAMING, far
    elif isinstance(value, list):
        for each in value:
            yield from named(each, far)


def changed(patch: Patch, now: Json, goal: Json, fixed: Collection[str]) -> Iterator[QuestionId]:
    """Yield the values that differ, before and now, the keys in their paths, and their neighbours."""
    paths = [(tokens(each["path"]), each["op"] != "replace") for each in patch]
    for path, is_entity in sorted(paths, key=lambda each: each[1]):
        keys = [each for each in zip(("", *path), path, strict=False) if each[1] not in fixed]
        keyed = [(key, _words(above) | _NAMING, far) for far, (above, key) in enumerate(reversed(keys))]
        yield from keyed if is_entity else ()
        for document, far in ((goal, 0), (now, 1), (goal, 2)):
            there = path[:-1] if far == 2 else path
            with suppress(PatchConflict, LookupError):
                yield from islice(named(find(document, there), far, there[-1] if there else ""), _BESIDE)
        yield from keyed


def _words(name: str) -> frozenset[str]:
    return frozenset(map(singular, words(name)))


def arguments(tool: ToolSpec, known: Sequence[QuestionId]) -> list[JsonObject]:
    rules, required = tool.parameters.get("properties", {}), tool.parameters.get("required", [])
    options = {key: _values(key, rule, tool, known) for key, rule in rules.items()}
    few = _VALUES if len(required) < 4 else 3 if len(required) < 7 else 2
    bases = [
        (sum(rank for rank, _ in some), dict(zip(required, (value for _, value in some), strict=True)))
        for some in product(*(options.get(key, [])[:few] for key in required))
    ]
    more = [(key, rank, value) for key in rules if key not in required for rank, value in options[key][:2] if rank < 4]
    extras: list[tuple[float, JsonObject]] = [(0, {})] if required else []
    extras += [(rank, {key: value}) for key, rank, value in more]
    extras += [(1, {key: value for key, _, value in reversed(more)})] if len({key for key, _, _ in more}) > 1 else []
    found = [(one + two, {**base, **extra}) for one, base in bases for two, extra in extras or [(0.0, {})]]
    return [args for _, args in nsmallest(ARGUMENTS, found, key=lambda each: each[0])]


def _literals(tool: ToolSpec) -> list[str]:
    """Return the strings that a tool's contract compares with, such as `..`."""
    text = str(tool.contract.data) if tool.contract else ""
    return [*dict.fromkeys(_LITERAL.findall(text))]


def _values(name: str, rule: Any, tool: ToolSpec, known: Sequence[QuestionId]) -> list[tuple[int, Json]]:
    """Return possible values of an argument with their ranks, the most likely first."""
    wanted = _words(name)
    if len(wanted) == 1 and is_identifier(name):
        wanted |= {noun(tool.name)}
    rule = rule if isinstance(rule, dict) else {}
    given = [*known, *((value, _NAMING, 2) for value in (*rule.get("enum", ()), *_literals(tool)))]
    if rule.get("type") == "boolean":
        given += [(value, frozenset(), 0) for value in (True, False)]
    ranked: dict[str, tuple[int, Json]] = {}
    for value, names, far in given:
        mark = f"{type(value).__name__} {value}"
        rank = far + (0 if names == wanted or wanted < names else 1 if names & wanted else 3)
        if mark not in ranked or rank < ranked[mark][0]:
            ranked[mark] = rank, value
    likely = sorted(ranked.values(), key=lambda each: each[0])
    fits = rules_of(rule) if "$ref" not in rule else None
    taken: list[tuple[int, Json]] = []
    for rank, value in likely:
        if len(taken) < _VALUES and (fits is None or accepts(fits, value)):
            taken.append((rank, value))
    return taken
