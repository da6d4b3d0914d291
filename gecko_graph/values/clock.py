"""The task state's clock."""

from __future__ import annotations

from typing import Any


def clock(state: Any) -> str | None:
    """Return the task state's clock: its `now`, or its runtime state's; None where it has none."""
    if not isinstance(state, dict):
        return None
    runtime = state.get("runtime_state")
    for place in (state, runtime if isinstance(runtime, dict) else {}):
        if isinstance(place.get("now"), str):
            return str(place["now"])
    return None
