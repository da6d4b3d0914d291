"""Events that every run streams: `stream_mode="custom"` with `subgraphs=True`.

Each is a plain dict `{"v": 1, "type": "gecko.<name>", "attempt": int, ...}`:

| type | further keys | when |
| --- | --- | --- |
| `gecko.state` | `supposed`, `state`, `unclear` | the made-up parts of the state, before all attempts (`attempt` 0) |
| `gecko.checklist` | `items`, `failure` | the turn's checklist is known (attempt 0) |
| `gecko.attempt` | `digest`, `feedback` | an attempt begins, from the state with this digest |
| `gecko.need` | `need`, `candidates`, `rejections` | `create_toolgate`: the next step and candidate tools |
| `gecko.call` | `call` | the planner made a call |
| `gecko.complaint` | `call`, `complaints` | the validator refused the call |
| `gecko.result` | `call`, `status`, `result`, `rung`, `simulated`, `passed` | a rung answered the call |
| `gecko.change` | `call`, `patch`, `observed` | a state change was applied or refused |
| `gecko.execute` | `call` | the agent makes a call for real (attempt 0, as the next two) |
| `gecko.executed` | `call`, `status`, `result` | the real call was answered; `in_doubt` if its effect is unknown |
| `gecko.sync` | `call`, `patch`, `drift` | the task state was updated; `drift`: differences from the prediction |
| `gecko.verdict` | `verdict`, `answer`, `stop`, `stop_reason` (its message) | the judge has given its verdict |

Results and changes carry the `notes` of their outcomes (`values/notes.py`), if any. A result whose call violates
contract clauses, and a change that is refused for them, also carry `violations`. A refused change carries the new
`status` and `result` of the call; the earlier answer is discarded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from .state import VERSION, Step

RESULT_MARKS = ("notes", "violations", "filled", "evidence")
"""Optional keys of `gecko.result`."""

EventType = Literal[
    "gecko.state",
    "gecko.checklist",
    "gecko.attempt",
    "gecko.need",
    "gecko.call",
    "gecko.complaint",
    "gecko.result",
    "gecko.change",
    "gecko.verdict",
    "gecko.execute",
    "gecko.executed",
    "gecko.sync",
]

Emit: TypeAlias = Callable[[dict[str, Any]], None]


def event(type_: EventType, *, attempt: int, **fields: Any) -> dict[str, Any]:
    return {"v": VERSION, "type": type_, "attempt": attempt, **fields}


def change_event(step: Step, attempt: int) -> dict[str, Any] | None:
    """Build the `gecko.change` event of a step; None if nothing was changed or refused."""
    outcome = step.get("outcome")
    if not outcome:
        return None
    refused = any(each["kind"] == "refused" for each in outcome.get("notes", ()))
    if not (outcome["patch"] or outcome.get("observed") or refused):
        return None
    keys = ("patch", "observed", "notes", *(("status", "result", "violations") if refused else ()))
    fields: dict[str, Any] = {key: outcome[key] for key in keys if key in outcome}  # type: ignore[literal-required]
    return event("gecko.change", attempt=attempt, call=step["call"], **fields)


def stream_options(graph: Any) -> dict[str, Any]:
    """Return the arguments of `graph.stream` that a `Reader` needs."""
    keys = graph.output_channels  # the keys that `invoke` uses
    return {"stream_mode": ["custom", "values"], "subgraphs": True, "version": "v2", "output_keys": keys}


class Reader:
    """Reads a graph's stream (with `stream_options`): passes events on, keeps the run's output in `output`."""

    def __init__(self, take: Emit) -> None:
        self.output: dict[str, Any] = {}
        self._take = take
        self._before: Mapping[str, Any] | None = None

    def read(self, part: Mapping[str, Any]) -> None:
        """Read one part of the stream; custom events of other tools are ignored."""
        data = part["data"]
        if part["type"] == "values" and not part["ns"]:
            paused = part.get("interrupts")
            self._before = data if self._before is None else self._before
            self.output = {**data, "__interrupt__": list(paused)} if paused else dict(data)
        elif part["type"] == "custom" and isinstance(data, Mapping) and str(data.get("type", "")).startswith("gecko."):
            self._take(dict(data))

    @property
    def rehearsal(self) -> Any:
        """The rehearsal that this run finished; None if unfinished, even if the thread has an earlier one."""
        return self.new.get("rehearsal")

    @property
    def new(self) -> dict[str, Any]:
        """The output keys that this run wrote, without earlier values of the thread."""
        before = self._before or {}
        return {key: value for key, value in self.output.items() if value is not before.get(key)}
