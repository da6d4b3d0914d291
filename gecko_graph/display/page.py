"""A run as HTML: a page for a file, the same as a part of a notebook. Templates in `pages` draw what is listed here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from ..errors import PatchConflict
from ..state import Json, JsonObject
from ..values.changes import Change, net_changes
from ..values.digest import digest
from ..values.patch import apply_patch, tokens
from ..world.turn import task_of
from . import words
from .drafts import pending_calls, rehearsal_of
from .html import render

VALUE_CHARS = 140
"""Characters of a value; a longer one is folded."""

FOLDED_CHARS = 20_000
"""Characters of a folded value."""

CHANGES_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a page.

    Args:
        record: A `Rehearsal`, or of an unfinished turn its `attempts`, which may be drafts.
        task: What the user wants.
        start_state: The task state that the attempts begin from, where it is known.
        note: When it ran, how it was saved.
    """

    record: words.Record
    task: str = ""
    start_state: JsonObject | None = None
    note: str = ""


class Value(NamedTuple):
    """A value in one line, and the whole of it where that is more."""

    short: str
    whole: str


def html_page(*runs: Turn | Mapping[str, Any], title: str = "", start_state: JsonObject | None = None) -> str:
    """Return a page on a run: verdict, plan and what it rests on, checklist, and every attempt with its calls.

    Args:
        runs: The graph's outputs, one a turn; or their `rehearsal`; or `Turn`s.
        title: Name of the run.
        start_state: Task state before the first turn: with it, changes show old values.

    Returns:
        One HTML document that loads nothing and runs no script. All texts are masked and escaped.

    Raises:
        GeckoError: One of `runs` holds no rehearsal.
    """
    turns: list[Turn] = []
    for run in runs:
        turns.append(run if isinstance(run, Turn) else _turn(run, start_state))
        start_state = run.get("task_state") if isinstance(run, Mapping) else None
    return render("run.html", turns=list(map(_view, turns)), title=words.clean(title))


def html_part(record: words.Record, *, waiting: str = "") -> str:
    """Return a rehearsal as HTML for a notebook's cell; it may be unfinished, with drafts of attempts (`Drafts`).

    `waiting` is what these wait for, where that is not the result of a call.
    """
    return render("part.html", turn=_view(Turn(record), waiting=waiting))


def _turn(run: Mapping[str, Any], start_state: JsonObject | None) -> Turn:
    values = getattr(run, "value", run)
    messages = values.get("messages") if isinstance(values, Mapping) else None
    return Turn(rehearsal_of(run), task_of(messages) if messages else "", start_state)


def _view(turn: Turn, *, waiting: str = "") -> JsonObject:
    record, start = turn.record, turn.start_state
    supposed = (record.get("supposed_state") or {}).get("state", {})
    execution = record.get("execution")
    state = {key: (value, key in supposed) for key, value in (start or supposed).items()}
    return {
        "record": record,
        "task": fold_text(turn.task, words.PROSE_CHARS),
        "note": turn.note,
        "plan": [_call(call, record.get("origins", {})) for call in record.get("plan", ())],
        "checks": {item["id"]: item.get("check", "") for item in record.get("checklist", ())},
        "state": [(words.clean(key), fold_value(value, key), made_up) for key, (value, made_up) in state.items()],
        "attempts": [_attempt(each, start, waiting=waiting) for each in record["attempts"]],
        "asked": [(_call(each), words.format_description(each)) for each in record.get("asked", ())],
        "real": [(_call(entry["call"]), list(_real_lines(entry))) for entry in execution["calls"]] if execution else [],
        "left": [_call(call) for call in execution["left"]] if execution else [],
    }


def _real_lines(entry: words.Record) -> Iterator[tuple[str, Value]]:
    """Yield the labelled lines of a real call; its result can be unfolded."""
    for number, (word, text) in enumerate(words.format_real_call(entry)):
        result = entry.get("result")
        is_folded = not number and "result" in entry and not isinstance(result, str)
        yield word, fold_value(result) if is_folded else Value(text, "")


def _attempt(attempt: words.Record, start: Json, *, waiting: str) -> JsonObject:
    calls = pending_calls(attempt)
    waiting = waiting or (f"waiting for {words.clean(calls)}" if calls else "thinking")
    return {"record": attempt, "steps": list(_steps(attempt, start)), "waiting": waiting}


def _steps(attempt: words.Record, state: Json) -> Iterator[JsonObject]:
    """Yield the steps with their changes; `state` is replayed where the attempt began from it."""
    if state is not None and digest(state) != attempt.get("start_digest"):
        state = None
    for step in attempt["steps"]:
        outcome = step.get("outcome") or {}
        result = outcome.get("result")
        changes, state = _changes(outcome.get("patch") or [], state)
        observed, state = _changes(outcome.get("observed") or [], state)
        changes += [("observed", place, values) for _, place, values in observed]
        yield {
            "call": _call(step["call"], attempt.get("origins", {})),
            "outcome": outcome,
            "result": fold_text(result) if isinstance(result, str) else fold_value(result),
            "complaints": step.get("complaints", ()),
            "changes": changes[:CHANGES_SHOWN],
            "more": max(0, len(changes) - CHANGES_SHOWN),
        }


def _changes(patch: list[words.Record], state: Json) -> tuple[list[tuple[str, str, list[Value]]], Json]:
    """Return a patch as rows of sign, path and values, old before new where the state is known; and the state after."""
    try:
        after = None if state is None else apply_patch(state, [dict(operation) for operation in patch])
        changes = net_changes(state, after)
    except PatchConflict:
        after = None
    if after is None:
        marks = words.format_patch(patch, room=VALUE_CHARS, most=len(patch))
        return [(mark.sign, mark.place, [Value(mark.value, "")]) for mark in marks], None
    return [(words.SIGNS[each.kind], words.clean(each.path) or "/", _values(each)) for each in changes], after


def _values(change: Change) -> list[Value]:
    if change.kind == "shrink":
        return [Value(words.counted(number, "item"), "") for number in (change.old, change.new)]
    name = next(iter(tokens(change.path)[-1:]), "")
    values = {"add": [change.new], "remove": [change.old]}.get(change.kind, [change.old, change.new])
    return [fold_value(value, name) for value in values]


def _call(call: words.Record, origins: words.Record = MappingProxyType({})) -> JsonObject:
    """Return a call's name and its arguments: name, value, origins, whether it is made up."""
    if "malformed" in call:
        return {"name": words.clean(call["name"]), "args": [("", fold_text(call["malformed"]), "", False)]}
    found = origins.get(call.get("id", ""), {})
    args = [
        (words.clean(name), fold_value(value, name), *words.format_origins(name, found))
        for name, value in call["args"].items()
    ]
    return {"name": words.clean(call["name"]), "args": args}


def fold_value(value: Json, name: str = "") -> Value:
    """Return a value as JSON in one line, and indented where the line cuts it; masked as the value of `name`."""
    label, room = f"{words.clean(name)}: ", VALUE_CHARS
    line, indented = (json.dumps(value, ensure_ascii=False, default=str, indent=indent) for indent in (None, 2))
    short = words.clean(words.cut(f"{label}{line}", len(label) + room)).removeprefix(label)
    whole = words.clean(words.cut(f"{label}{indented}", FOLDED_CHARS), lines=True).removeprefix(label)
    return Value(short, whole if len(line) > room else "")


def fold_text(text: str, room: int = VALUE_CHARS) -> Value:
    """Return a text, and the whole of it where the first is cut."""
    return Value(words.prose(text, room=room), words.prose(text, room=FOLDED_CHARS) if len(text) > room else "")
