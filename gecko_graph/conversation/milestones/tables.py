"""Snapshots of a conversation as tables: the message that was sent, and the world's tables as they were then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ...state import Json, JsonObject
from ...values.digest import digest

Table: TypeAlias = Sequence[JsonObject]
Snapshot: TypeAlias = Mapping[str, Table]
"""Rows by table; the table `message` has one row: `sender`, `recipient`, `content`, `calls`."""

MESSAGE = "message"
SEEN = "(seen)"
"""The agent's reads so far, one row: `texts` holds the user's messages, and all results but those of reads with
made-up arguments; `unseen` these reads, and the figures of the agent's message that are not in the texts."""
WRITES = "(writes)"
"""The calls of a message that have changed tables: `name`, `args`, and by their names `tables` before and after."""

ENTRIES = ".*"
"""Ends the name of a table that holds the entries of an object, whatever they are, as rows of `key` and `value`."""
REST = "* except "
"""Begins the name of a table that holds the task state without the paths that follow, joined by `, `."""
CLOCK = "now"
"""A root key that moves by itself: no guardrail is on it."""


def find_table(state: Json, path: str) -> Table:
    """Return the table at a path of keys joined by dots, as rows.

    A list of objects is a table, an object of objects one whose rows have their key as `key`; another object is a table
    of one row; `a.*` has a row of `key` and `value` for each entry of any object. Other values stand in the column
    `value`. Where nothing is, the table is empty. `* except a, b.c` is the whole state without these paths.
    """
    if path.startswith(REST):
        left_out = [each.removesuffix(ENTRIES).split(".") for each in path.removeprefix(REST).split(", ")]
        return _as_rows(_leave_out(state, left_out))
    for key in path.removesuffix(ENTRIES).split("."):
        if not isinstance(state, dict) or key not in state:
            return []
        state = state[key]
    if path.endswith(ENTRIES):
        return [{"key": key, "value": value} for key, value in state.items()] if isinstance(state, dict) else []
    return _as_rows(state)


def _leave_out(value: Json, paths: Sequence[Sequence[str]]) -> Json:
    """Return a value without the values at these paths; the parts off these paths are shared."""
    if not isinstance(value, dict):
        return value
    below = {key: [path[1:] for path in paths if path[0] == key] for key in {path[0] for path in paths}}
    return {
        key: _leave_out(item, below[key]) if key in below else item
        for key, item in value.items()
        if key not in below or all(below[key])
    }


def _as_rows(value: Json) -> Table:
    if isinstance(value, dict):
        if value and all(isinstance(row, dict) for row in value.values()):
            return [{"key": key, **row} for key, row in value.items() if isinstance(row, dict)]
        return [value] if value else []
    if isinstance(value, list):
        return [row if isinstance(row, dict) else {"value": row} for row in value]
    return [{"value": value}]


def number_versions(trajectory: Sequence[Snapshot], name: str) -> list[int]:
    """Return a number from 0 for each snapshot, equal if a table has the same rows in whatever order.

    Most messages change nothing, and what is equal is compared once.
    """
    numbers: dict[str, int] = {}
    found: list[int] = []
    before: Table | None = None
    for snapshot in trajectory:
        rows = snapshot.get(name, ())
        if rows is not before:
            before, key = rows, ",".join(sorted(map(digest, rows)))
        found.append(numbers.setdefault(key, len(numbers)))
    return found


def find_names(state: JsonObject, named: Sequence[str]) -> list[str]:
    """Return all tables of a state: those that are named, and its other root keys but the clock."""
    roots = {path.partition(".")[0] for path in named}
    return [
        *(path for path in dict.fromkeys(named) if path != MESSAGE),
        *(key for key in state if key not in roots and key != CLOCK),
    ]
