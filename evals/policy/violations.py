"""Violations made by hand, each with a lawful twin that differs in one thing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gecko_graph import Toolkit, World
from gecko_graph.state import JsonObject
from gecko_graph.values.digest import clone
from gecko_graph.values.documents import read_document

FILE = Path(__file__).parent / "violations.yaml"
SHOWN = 200
"""Characters of a value in words."""

LOOK_UP = {"user_id": "get_user_details", "reservation_id": "get_reservation_details"}


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call, the task state before the conversation, and the calls before it."""

    state: JsonObject
    calls: list[JsonObject]
    call: JsonObject


@dataclass(frozen=True, slots=True)
class Violation:
    """What must be refused by one clause, beside what must not be refused.

    `also` are clauses that it cannot but break as well: what does not exist was not looked up.
    """

    id: str
    clause: str
    tool: str
    also: frozenset[str]
    unlawful: Attempt
    lawful: Attempt
    breach: JsonObject

    def tell(self, attempt: Attempt) -> str:
        """Return a call of the two in words, with the arguments and the part of the state in which they differ."""
        args = {key: attempt.call["args"].get(key) for key in {**LOOK_UP, **self.breach.get("args", {})}}
        told = [f"{key}: {_short(value)}" for key, value in args.items() if value is not None]
        told += [f"{place.strip('/')}: {_short(_at(attempt.state, place))}" for place in self.breach.get("state", {})]
        told += [f"look-ups before: {len(attempt.calls)}"] if "calls" in self.breach else []
        return f"{self.tool}({'; '.join(told)})"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _at(state: Any, place: str) -> Any:
    for key in place.strip("/").split("/"):
        state = state[int(key)] if isinstance(state, list) else state.get(key) if isinstance(state, dict) else None
    return state


def read_violations(path: Path = FILE) -> Iterator[Violation]:
    """Yield the violations of a file; `violations.yaml` says how one is written."""
    document: Any = read_document(path)
    for number, case in enumerate(document["cases"], 1):
        tool, clause, given = case["tool"], case["clause"], case.get("given", {})
        plain = {"args": document["base"][tool], "state": {}}
        lawful = _changed(plain, given)
        broken, kept = (_attempt(document["state"], tool, one) for one in (_changed(lawful, case["breach"]), lawful))
        also = frozenset(case.get("also", []))
        yield Violation(f"{number}:{tool}:{clause}", clause, tool, also, broken, kept, case["breach"])


def broken_clauses(toolkit: Toolkit, attempt: Attempt) -> list[str] | None:
    """Return the clauses that refuse a call in a `World`, after the calls before it; None where it is carried out."""
    world = World(toolkit, state=attempt.state)
    for call in attempt.calls:
        world.call(call)
    step = world.call(attempt.call)
    if "outcome" not in step:
        return ["schema"]
    outcome = step["outcome"]
    if outcome["status"] == "ok":
        return None
    return [str(broken["clause"]) for broken in outcome.get("violations", [])] or ["unclear"]


def _changed(one: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "args": {**one["args"], **change.get("args", {})},
        "state": {**one["state"], **change.get("state", {})},
        "calls": change.get("calls", one.get("calls")),
    }


def _attempt(state: JsonObject, tool: str, one: Mapping[str, Any]) -> Attempt:
    own = clone(state)
    for place, value in one["state"].items():
        *parents, last = place.strip("/").split("/")
        inner: Any = own
        for key in parents:
            inner = inner[int(key) if isinstance(inner, list) else key]
        inner[last] = value
    calls = one["calls"]
    if calls is None:
        calls = [(name, {key: one["args"][key]}) for key, name in LOOK_UP.items() if key in one["args"]]
    return Attempt(own, [{"name": name, "args": args} for name, args in calls], {"name": tool, "args": one["args"]})
