"""Events that every run streams: `stream_mode="custom"` with `subgraphs=True`.

Each is a plain dict `{"v": 1, "type": "gecko.<name>", "attempt": int, ...}`:

| type | further keys | when |
| --- | --- | --- |
| `gecko.state` | `supposed`, `state`, `unclear` | what is made up of the state, before all attempts (`attempt` 0) |
| `gecko.checklist` | `items`, `failure` | the turn's checklist is known (attempt 0) |
| `gecko.attempt` | `digest`, `feedback` | an attempt begins, from the state with this digest |
| `gecko.call` | `call` | the planner made a call |
| `gecko.complaint` | `call`, `complaints` | the validator refused it |
| `gecko.result` | `call`, `status`, `result`, `rung`, `simulated`, `passed`, `unclear` | a rung answered it |
| `gecko.change` | `call`, `patch`, `refused`, `race` | a change was committed, or refused; with whose it overlaps |
| `gecko.verdict` | `verdict`, `answer`, `stop_reason` | the judge has spoken |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from .state import VERSION

EventType = Literal[
    "gecko.state",
    "gecko.checklist",
    "gecko.attempt",
    "gecko.call",
    "gecko.complaint",
    "gecko.result",
    "gecko.change",
    "gecko.verdict",
]

Emit: TypeAlias = Callable[[dict[str, Any]], None]


def event(type_: EventType, *, attempt: int, **fields: Any) -> dict[str, Any]:
    """One event as the plain dict that is streamed."""
    return {"v": VERSION, "type": type_, "attempt": attempt, **fields}
