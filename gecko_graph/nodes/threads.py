"""Detection of two runs of one thread at the same time, of which the later would overwrite the earlier one's state.

LangGraph locks no thread: two runs that begin from one checkpoint both succeed, and the later write replaces the
earlier one. Before a run writes back, it therefore asks the saver whether every checkpoint newer than its input is its
own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from ..models.ask import FunctionCall
from ..models.node import running_config

OTHER_RUN = (
    "another run has written to this thread since this one began: both began from the same state, and one would lose "
    "the other's results. Nothing was written back. Let the runs of a thread follow each other (on a LangGraph "
    "server: multitask_strategy='enqueue'), and start this turn again, or continue from the thread's current state: "
    "invoke(None, graph.get_state(config).config)"
)
MOST_READ = 400
"""Most checkpoints of the thread to read, newest first: a parent's turn may have many."""
READ_AT_ONCE = 4
WAIT_S = 2.0
"""Longest wait for a checkpoint of this run that is still being written."""


def look_for_other_runs() -> FunctionCall | None:
    """Return the call that finds out whether another run has written to this thread; its value is a bool.

    None if the saver cannot tell: outside of a graph, without a saver, and with `durability="exit"`, which saves a run
    only at its end.
    """
    config = running_config()
    given = config.get("configurable", {})
    saver, own = given.get("__pregel_checkpointer"), given.get("checkpoint_map", {}).get("")
    if not isinstance(saver, BaseCheckpointSaver) or not own or given.get("__pregel_durability") == "exit":
        return None
    addressed = "checkpoint_id" in config.get("metadata", {})
    arguments = (saver, str(given["thread_id"]), str(own), addressed)
    return FunctionCall(function=other_run_wrote, args=arguments, timeout_s=4 * WAIT_S)


def other_run_wrote(saver: BaseCheckpointSaver[Any], thread_id: str, own: str, addressed: bool) -> bool:
    """Return whether the thread has checkpoints of another run that are newer than this run's start.

    `own` is this run's newest checkpoint. If the caller named the checkpoint to begin from (`addressed`), newer ones
    are expected.
    """
    deadline = time.monotonic() + WAIT_S
    while saver.get_tuple(_config(thread_id, own)) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    expected, began = own, False
    for kept in _newest_first(saver, thread_id):
        if kept.checkpoint["id"] != expected:
            return kept.checkpoint["id"] > expected  # ids increase with time; if ours is missing, it was pruned
        source = kept.metadata.get("source")
        if began or source in ("fork", "update") or (addressed and source == "input") or not kept.parent_config:
            return False
        expected, began = kept.parent_config["configurable"]["checkpoint_id"], source == "input"
    return False


def _newest_first(saver: BaseCheckpointSaver[Any], thread_id: str) -> Iterator[CheckpointTuple]:
    before = None
    for _ in range(MOST_READ // READ_AT_ONCE):
        page = list(saver.list(_config(thread_id), before=before, limit=READ_AT_ONCE))
        yield from page
        if len(page) < READ_AT_ONCE:
            return
        before = page[-1].config


def _config(thread_id: str, checkpoint_id: str | None = None) -> Any:
    known = {"checkpoint_id": checkpoint_id} if checkpoint_id else {}
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": "", **known}}
