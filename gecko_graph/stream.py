"""Typed streams of a run, for LangGraph's `stream_events(version="v3")`.

```python
run = gecko.stream_events(task, version="v3", transformers=[Rehearsing])
for step in run.extensions["steps"]: ...
```

Pass `Rehearsing` at the start of the run, also to a graph that embeds ours: LangGraph ignores the transformers that an
embedded graph was compiled with. An agent with `GeckoMiddleware` has it already. On a server each stream is the
channel `custom:<name>`. A stream contains the steps of its own run, none of earlier turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeGuard

from langgraph.stream import ProtocolEvent, StreamChannel, StreamTransformer
from typing_extensions import TypedDict

from .events import change_event
from .state import Json, Step

STREAMS = ("rehearsals", "attempts", "steps", "changes", "verdicts", "questions")
_EVENTS = {"gecko.attempt": "attempts", "gecko.verdict": "verdicts"}
_STEPPING = ("arguments", "validator", "state_updater")
"""Nodes of an attempt that write new `steps`; `begin` only repeats those of the turn's real calls."""


class Question(TypedDict):
    """A question on which a run is paused: `Command(resume={id: answer})` continues it."""

    id: str
    value: Json
    namespace: list[str]
    """The graph that asked, as LangGraph names it: `["agent:<task id>"]`."""


class Rehearsing(StreamTransformer):
    """Streams of rehearsed, simulated and real calls, at any depth of the run's graphs.

    - `attempts`: an attempt begins, as the event `gecko.attempt`.
    - `steps`: a finished `Step`, as in the record: refused, answered and committed, or real; with the number of its
    `attempt`, 0 for a real call and outside attempts.
    - `changes`: a step's changes, or why they were refused, as the event `gecko.change`; for a real call also its
    `drift`.
    - `verdicts`: an attempt was judged, as the event `gecko.verdict`.
    - `rehearsals`: a finished `Rehearsal`.
    - `questions`: a `Question` to a person.
    """

    required_stream_modes = ("custom", "tasks", "values")

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self._streams = {name: StreamChannel[Any](name) for name in STREAMS}
        self._numbers: dict[str, int] = {}
        self._lines: dict[tuple[str, ...], dict[str, Any]] = {}
        self._asked: set[str] = set()

    def init(self) -> dict[str, Any]:
        return self._streams

    def process(self, event: ProtocolEvent) -> bool:
        """Read one event; all events are kept in the main stream."""
        read: dict[str, Callable[..., None]]
        read = {"custom": self._read_custom, "values": self._read_values, "tasks": self._read_task}
        if event["method"] in read:
            read[event["method"]](event["params"]["data"], tuple(event["params"]["namespace"]), event["params"])
        return True

    def _read_custom(self, data: Any, *_: Any) -> None:
        if isinstance(data, Mapping) and (name := _EVENTS.get(str(data.get("type")))):
            self._streams[name].push(dict(data))

    def _read_values(self, _: Any, namespace: tuple[str, ...], params: Mapping[str, Any]) -> None:
        """Read the questions: a client of a server reads nothing after the values that end the run."""
        for task in filter(None, self._lines.pop(namespace, {}).values()):
            self._read_result(task)
        for asked in params.get("interrupts", ()):
            if asked.id not in self._asked:  # the enclosing graphs repeat it
                self._asked.add(asked.id)
                question: Question = {"id": asked.id, "value": asked.value, "namespace": [*namespace]}
                self._streams["questions"].push(question)

    def _read_task(self, task: Mapping[str, Any], namespace: tuple[str, ...], *_: Any) -> None:
        """Read a task. An agent's tool calls are read in the order of its message."""
        if "result" not in task:
            if task["name"] in _STEPPING:
                self._numbers[task["id"]] = _number_of(task["input"])
            elif task["name"] == "tools":
                self._lines.setdefault(namespace, {})[task["id"]] = None
            return
        line = self._lines.get(namespace, {})
        line = line if task["id"] in line else {}
        line[task["id"]] = task
        while line and (first := next(iter(line.values()))):
            self._read_result(line.pop(first["id"]))

    def _read_result(self, task: Mapping[str, Any]) -> None:
        result, attempt = task["result"], self._numbers.pop(task["id"], 0)
        drifts = _find_drifts(result)
        for step in filter(_is_step, _list_steps(task["name"], result)):
            self._streams["steps"].push({**step, "attempt": attempt})
            if change := change_event(step, attempt):
                drift = drifts.get(step["call"]["id"])
                self._streams["changes"].push({**change, "drift": drift} if drift else change)
        if task["name"] == "finish" and _has_keys(result.get("rehearsal"), "plan", "verdict", "attempts"):
            self._streams["rehearsals"].push(result["rehearsal"])


def _number_of(given: Any) -> int:
    """Return the attempt number in a node's input, 0 outside attempts."""
    kept = given.get("bookkeeping") if isinstance(given, Mapping) else None
    return kept.get("number", 0) if isinstance(kept, Mapping) else 0


def _list_steps(node: str, result: Mapping[str, Any]) -> Iterator[Any]:
    """Return the new steps in a node's update: of an attempt, an agent, middleware or a conversation."""
    if node in _STEPPING:
        yield from _as_list(result.get("steps"))
    elif node == "sync":  # an agent writes its steps as a whole list
        for kept in _writes(result, "bookkeeping"):
            yield from _as_list(kept.get("steps"))[-1:]
    records = [record for done in _writes(result, "gecko_done") for record in done.values()]
    records += [record for world in _writes(result, "world") for record in _as_list(world.get("records"))]
    yield from (record.get("step") for record in records if isinstance(record, Mapping))


def _find_drifts(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the drifts of real calls in a node's update, by call id."""
    entries = [*_as_list(result.get("journal")), *_as_list(result.get("gecko_journal"))]
    return {each["call"]["id"]: each.get("drift") for each in entries if _has_keys(each, "call", "status", "key")}


def _writes(result: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects written to a key; LangGraph collects several writes under `$writes`."""
    write = result.get(key)
    several = write.get("$writes") if isinstance(write, Mapping) else None
    yield from (each for each in _as_list(several or [write]) if isinstance(each, Mapping))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_step(value: Any) -> TypeGuard[Step]:
    """Return whether this is a step, and not a value of a user's node under the same key."""
    return _has_keys(value, "v", "call") and (_has_keys(value.get("outcome"), "status") or "complaints" in value)


def _has_keys(value: Any, *keys: str) -> bool:
    return isinstance(value, Mapping) and value.keys() >= {*keys}
