"""What a record keeps of a rehearsal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gecko_graph.models.usage import add_usage
from gecko_graph.state import JsonObject, Rehearsal, Usage


def rehearsed(*turns: Rehearsal) -> JsonObject:
    """Return what a record keeps of a rehearsal's turns.

    Returns:
        `verdict` (of the last turn), `verdicts`, `score` (of the last turn), `attempts` (all), `tool_calls` (answered
        ones, of all attempts), `complaints`, `rungs` (answers by rung) and `usage` (by role).
    """
    attempts = [attempt for turn in turns for attempt in turn["attempts"]]
    steps = [step for attempt in attempts for step in attempt["steps"]]
    answered = [step["outcome"] for step in steps if "outcome" in step]
    last = turns[-1]["verdict"]
    return {
        "verdict": last["status"],
        "verdicts": [turn["verdict"]["status"] for turn in turns],
        "score": last["score"],
        "attempts": len(attempts),
        "tool_calls": len(answered),
        "complaints": sum(len(step.get("complaints", [])) for step in steps),
        "rungs": dict(Counter(outcome["rung"] for outcome in answered)),
        "usage": add_all(turn["usage"] for turn in turns),
    }


def add_all(usages: Iterable[Usage]) -> Usage:
    """Return the sum of several usages."""
    whole: Usage = {}
    for usage in usages:
        whole = add_usage(whole, usage)
    return whole
