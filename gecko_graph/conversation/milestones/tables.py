"""Snapshots of a conversation as tables: a message, and the world's tables at that time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ...state import Json, JsonObject

Table: TypeAlias = Sequence[JsonObject]
Snapshot: TypeAlias = Mapping[str, Table]
"""Table to rows; the table `message` has one row: `sender`, `recipient`, `content`, `calls`."""

MESSAGE = "message"
SEEN = "(seen)"
"""The agent's reads so far, one row: `texts` are the user's messages and all results, except of reads with made-up
arguments; `unseen` are these reads, and the figures of the agent's message that are not in the texts."""
WRITES = "(writes)"
"""The calls of a message that have changed tables: `name`, `args`, and `tables`: name to rows before and after."""

ENTRIES = ".*"
"""Suffix of the name of a table whose rows are the entries of any object, as `key` and `value`."""
REST = "* except "
"""Prefix of the name of a table with the task state except for the listed paths, joined by `, `."""
CLOCK = "now"
"""A root key that changes by itself, so that it is not guarded."""


def find_table(state: Json, path: str) -> Table:
    """Return the table at a path of keys joined by dots, as rows.

    A list of objects is a table; an object of objects is a table whose rows have their key as `key`; another object is
    a table of one row; `a.*` has a row of `key` and `value` for each entry of any object. Other values are in the
    column `value`. A missing path is an empty table. `* except a, b.c` is the whole state without these paths.
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
    """Return a value without the values at these paths; other parts are shared."""
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


def find_names(state: JsonObject, named: Sequence[str]) -> list[str]:
    """Return all tables of a state: the named ones, and its other root keys except the clock."""
    roots = {path.partition(".")[0] for path in named}
    return [
        *(path for path in dict.fromkeys(named) if path != MESSAGE),
        *(key for key in state if key not in roots and key != CLOCK),
    ]
