"""The journal's entries: calls that were not made, and what is told of those that were."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ..models.formatting import cut, one_line
from ..state import VERSION, Call, CallStatus, Json, Outcome, Step
from ..values.leaves import as_text
from ..world.records import ExecutedCall

LONGEST_RESULT = 300
MADE = ("ok", "answered")
"""Calls with a result that counts: the tool's, or the person's."""

UNKNOWN = "It is not known whether this call took effect. Do not make it again: the user decides about it."


def unmade_entry(call: Call, **fields: Any) -> ExecutedCall:
    """Return the journal's entry for a call that is not made, by the person's decision or a rule's."""
    now = time.time()
    return {"call": call, "key": "", "tries": 0, "started_at": now, "ended_at": now, **fields}  # type: ignore[typeddict-item]


def as_step(entry: ExecutedCall) -> Step:
    """Return a real call as a step that changes nothing: a planner sees what it came to, or that it is in doubt."""
    status: CallStatus = "ok" if entry["status"] in MADE else "error"
    result = UNKNOWN if entry["status"] == "in_doubt" else entry.get("result")
    outcome: Outcome = {
        "status": status, "result": result, "patch": [], "rung": "real", "simulated": False, "passed": [],
    }  # fmt: skip
    return {"v": VERSION, "call": entry["call"], "outcome": outcome}


def done_lines(calls: Sequence[ExecutedCall]) -> list[str]:
    """Return what was done, by rule: a line for each call with its result."""
    words, lines = {"ok": "Done", "answered": "Answered by the user"}, list[str]()
    for entry in calls:
        if word := words.get(entry["status"]):
            lines.append(f"{word}: {format_call(entry['call'])}: {in_words(entry.get('result'))}")
    return lines


def doubt_lines(calls: Sequence[ExecutedCall]) -> list[str]:
    """Return a line for each call of which it is not known whether it took effect."""
    return [
        f"In doubt: {format_call(entry['call'])} was called, and it is not known whether it took effect."
        for entry in calls
        if entry["status"] == "in_doubt"
    ]


def format_call(call: Call) -> str:
    """Return a call in one line, for people."""
    return f"{call['name']} ({in_words(call['args'])})" if call["args"] else call["name"]


def in_words(value: Json) -> str:
    """Return JSON as people read it, `id O-7, item pen`; of an error's body what it says."""
    if isinstance(value, dict):
        told = [value[key] for key in ("error", "message", "detail") if isinstance(value.get(key), str)]
        value = told[0] if told else ", ".join(f"{key} {in_words(each)}" for key, each in value.items())
    elif isinstance(value, list):
        value = "; ".join(map(in_words, value)) or "none"
    return cut(one_line(as_text(value)), budget=LONGEST_RESULT)
