"""Whether a run's marks are in the saver: what is not there is forgotten when the process ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt

from ..errors import StateError
from ..models.work import Work
from ..state import Call
from ..threads import OTHER_RUN
from ..turn import task_of
from .records import ExecutedCall

WAIT_S = 30.0
"""How long a checkpoint that is still being written is waited for."""


class Marks:
    """The marks of one process: those that it has set and not gone on from, and those of calls under way."""

    def __init__(self) -> None:
        self._fresh, self._taken = set[str](), dict[str, object]()

    def add(self, token: str) -> None:
        """Note a mark whose call was not made."""
        self._fresh.add(token)

    @contextmanager
    def take(self, token: str) -> Iterator[bool]:
        """Go on from a mark, alone; yield whether its call is to be made here, and was not made.

        A tool that pauses the run by an interrupt of its own is run again from its top, as by LangGraph.

        Raises:
            StateError: Another run of this process has gone on from it, and its call is under way.
        """
        if self._taken.setdefault(token, own := object()) is not own:
            raise StateError(OTHER_RUN)
        try:
            is_fresh = token in self._fresh
            self._fresh.discard(token)
            yield is_fresh
        except GraphInterrupt:
            self._fresh.add(token)
            raise
        finally:
            del self._taken[token]


NOT_DURABLE = (
    "{tool} changes something, and the mark that it was started is in no checkpoint: after a crash it would not be "
    "known whether it ran. Give the agent, or the parent graph that it is embedded in, a checkpointer, and run it with "
    "durability='sync' or 'async', not 'exit'"
)
BEGUN_AGAIN = (
    "a retry policy around the agent, or a node that runs it twice, has begun this task again after it had made real "
    "calls: they would be made twice. Take the policy away: the agent tries reads again by itself. invoke(None) on the "
    "thread goes on where it stopped"
)


def look_for_mark() -> Work | None:
    """Return the question whether all checkpoints that this superstep began from are saved, the parents' too.

    None where they never will be: without a saver, and with `durability="exit"`.
    """
    try:
        known = get_config().get("configurable", {})
    except RuntimeError:
        return None
    saver, own = known.get("__pregel_checkpointer"), known.get("checkpoint_map") or {}
    if not isinstance(saver, BaseCheckpointSaver) or not own or known.get("__pregel_durability") == "exit":
        return None
    return Work(function=are_saved, args=(saver, str(known["thread_id"]), dict(own)), timeout_s=2 * WAIT_S)


def look_for_earlier_tries(task: str) -> Work | None:
    """Return the question whether this task has real calls already, of a run that was begun again within one node.

    None where it was not begun again. LangGraph numbers the runs of an embedded graph that one task of its parent makes
    (`agent:<task id>|1`): a retry policy there begins a new one, from nothing.
    """
    known = get_config()["configurable"]
    first, _, number = known["checkpoint_ns"].rpartition("|")[0].rpartition("|")
    if not number.isdecimal():
        return None
    namespaces = [first, *(f"{first}|{each}" for each in range(1, int(number)))]
    given = (known["__pregel_checkpointer"], str(known["thread_id"]), namespaces, task)
    return Work(function=was_begun_before, args=given, timeout_s=2 * WAIT_S)


def was_begun_before(saver: BaseCheckpointSaver[Any], thread_id: str, namespaces: Sequence[str], task: str) -> bool:
    """Return whether a run in one of the namespaces has made real calls for the same task."""
    for namespace in namespaces:
        kept = saver.get_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace}})
        values = kept.checkpoint["channel_values"] if kept else {}
        if values.get("journal") and task_of(values["messages"]) == task:
            return True
    return False


def are_saved(saver: BaseCheckpointSaver[Any], thread_id: str, checkpoints: Mapping[str, str]) -> bool:
    """Wait until a saver has these checkpoints, by namespace; False where it has not after `WAIT_S` seconds.

    A task of LangGraph's functional API has its graph's checkpoint, under a name of its own.
    """
    deadline = time.monotonic() + WAIT_S
    for identifier, namespace in {checkpoints[each]: each for each in sorted(checkpoints, reverse=True)}.items():
        config: Any = {
            "configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": identifier}
        }
        while saver.get_tuple(config) is None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
    return True


def unmade_entry(call: Call, **fields: Any) -> ExecutedCall:
    """Return the journal's entry for a call that is not made, by the person's decision or a rule's."""
    now = time.time()
    entry: Any = {"call": call, "key": "", "token": "", "tries": 0, "started_at": now, "ended_at": now, **fields}
    return entry  # type: ignore[no-any-return]
