"""A conversation as the snapshots that milestones are looked for in: one for each message between the parties."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage

from ..models.formatting import text_of
from ..state import Json, JsonObject, Step
from ..tools import Toolkit
from ..values.patch import booked_patch, fold_patches
from ..world.provenance import Sources, is_planned, trace
from .answered import find_computed, find_statements
from .messages import read_calls, read_envelope
from .milestones.tables import MESSAGE, REST, SEEN, Snapshot, Table, find_table


def build_trajectory(
    messages: Sequence[AnyMessage], world: JsonObject, tables: Sequence[str], toolkit: Toolkit
) -> list[Snapshot]:
    """Return the snapshots of the tables that are looked at, from the user's first message on.

    `world` is the world's snapshot at the end: states in between follow from its log.
    """
    grounded = find_grounded(messages, world["log"], toolkit) if SEEN in tables else None
    return list(_Fold(world, tables, grounded).snapshots(messages))


def find_grounded(messages: Sequence[AnyMessage], log: Sequence[Step], toolkit: Toolkit) -> set[str]:
    """Return the ids of the calls whose results count: those of reads with a made-up argument do not.

    Nor do those that rest on such results. A guess that failed taints nothing, and what a write changes is looked at.
    """
    user_messages = [message for message in messages if read_envelope(message)["sender"] == "user"]
    steps = [step for step in log if step["call"]["name"] in toolkit and "outcome" in step]
    reads = {step["call"]["id"] for step in steps if is_planned(step) and not step["outcome"]["patch"]}
    doubtful: set[str] = set()
    while True:
        known = [_forget(step, doubtful) for step in steps]
        sources = Sources(conversation=user_messages, state={}, reading=toolkit.names)
        _, made_up = trace(known, sources, lambda name: toolkit[name].parameters)
        if (found := {each["call"] for each in made_up} & reads) <= doubtful:
            return {step["call"]["id"] for step in log} - doubtful
        doubtful |= found


def _forget(step: Step, doubtful: Collection[str]) -> Step:
    """Return a step without its arguments where it failed, and without its result where that is in doubt."""
    call, outcome = step["call"], step["outcome"]
    if not is_planned(step):
        return {**step, "call": {**call, "args": {}}}
    return {**step, "outcome": {**outcome, "result": None}} if call["id"] in doubtful else step


class _Fold:
    def __init__(self, world: JsonObject, tables: Sequence[str], grounded: Collection[str] | None) -> None:
        self._log: list[Step] = world["log"]
        self._state: JsonObject = world["start"]
        self._names, self._done = [name for name in tables if name != SEEN], 0
        self._tables = {name: find_table(self._state, name) for name in self._names}
        self._grounded, self._seen, self._guessed = grounded, list[Json](), list[Json]()

    def snapshots(self, messages: Sequence[AnyMessage]) -> Iterator[Snapshot]:
        for number, message in enumerate(messages):
            envelope = read_envelope(message)
            if envelope["sender"] == "system":
                continue
            steps = self._go_to(envelope["steps"])
            done = [step for step in steps if is_planned(step)] if isinstance(message, ToolMessage) else []
            row: JsonObject = {
                "sender": envelope["sender"],
                "recipient": envelope["recipient"],
                "content": text_of(message),
                "calls": [{**_read_call(step["call"]), "result": step["outcome"]["result"]} for step in done],
                "attempts": self._find_attempts(message, messages[number + 1 :]),
            }
            if self._grounded is not None:
                self._tables[SEEN] = [self._note_seen(row, steps, self._grounded)]
            yield {**self._tables, MESSAGE: [row]}

    def _note_seen(self, message: JsonObject, steps: Sequence[Step], grounded: Collection[str]) -> JsonObject:
        """Return the row of `SEEN` after a message, and the calls that came with it."""
        texts = [message["content"]] if message["sender"] == "user" else []
        ran = [(step["call"], step["outcome"]) for step in steps if "outcome" in step]
        real = [outcome["result"] for call, outcome in ran if call["id"] in grounded and not outcome["patch"]]
        self._seen = [*self._seen, *texts, *real]
        self._guessed = [*self._guessed, *(call["name"] for call, _ in ran if call["id"] not in grounded)]
        figures = find_statements(message["content"]) if message["recipient"] == "user" else ""
        return {"texts": self._seen, "unseen": [*self._guessed, *find_computed(figures, self._seen)]}

    def _find_attempts(self, message: AnyMessage, later: Sequence[AnyMessage]) -> list[JsonObject]:
        """Return the calls that a message makes, under the tools' own names where they were answered."""
        made = read_calls(message)
        if not made:
            return []
        over = next((read_envelope(each)["steps"] for each in later if not isinstance(each, ToolMessage)), None)
        answered = self._log[self._done : over]
        return list(map(_read_call, [step["call"] for step in answered] or made))

    def _go_to(self, steps: int | None) -> list[Step]:
        """Go on to the state after so many calls; returns the calls."""
        new = self._log[self._done : steps] if steps is not None else []
        self._done += len(new)
        patches = [patch for step in new if "outcome" in step and (patch := booked_patch(step["outcome"]))]
        if patches:
            before, self._state = self._state, fold_patches(self._state, patches)
            self._tables |= {name: self._same_or_new(name, before) for name in self._names}
        return new

    def _same_or_new(self, name: str, before: JsonObject) -> Table:
        root = name.partition(".")[0]
        unchanged = before.get(root) is self._state.get(root) and root in before and not name.startswith(REST)
        return self._tables[name] if unchanged else find_table(self._state, name)


def _read_call(call: Any) -> JsonObject:
    return {"name": call["name"], "args": call["args"]}
