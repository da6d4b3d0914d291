"""A run's place in LangGraph, and its answers. Only this module uses private names of LangGraph.

`tests/real/test_questions.py` fails if they change. The docstrings describe measured behaviour.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from langgraph._internal._constants import (
    CONFIG_KEY_CHECKPOINT_MAP,
    CONFIG_KEY_CHECKPOINT_NS,
    CONFIG_KEY_CHECKPOINTER,
    CONFIG_KEY_DURABILITY,
    CONFIG_KEY_RESUME_MAP,
    CONFIG_KEY_SCRATCHPAD,
    INTERRUPT,
    NULL_TASK_ID,
    PUSH,
    RESUME,
    TASKS,
)
from langgraph.errors import GraphInterrupt
from langgraph.pregel._algo import _xxhash_str
from langgraph.types import Interrupt, Send

from ..errors import GeckoError
from .ledger import has_checkpoint

SOON_S = 2.0
"""Longest wait of a call for the checkpoint that it begins from."""
SAVED_S = 30.0
"""Longest wait for a parent's checkpoint that is still being written."""


class Standing(NamedTuple):
    """The place of a running node: thread, saver, and its graph's place among the graphs that embed it."""

    saver: Any
    thread_id: str
    graph: str
    """Namespace of the node's graph, with the ids of the tasks that embed it."""
    task: str
    """Id of the node's own task."""
    checkpoints: Mapping[str, str]
    """The checkpoint that the tasks of each namespace began from, saved or not."""
    durability: str

    @classmethod
    def of(cls, configurable: Mapping[str, Any]) -> Standing | None:
        """Return the place of the node with this config; None without a saver."""
        saver, known = configurable.get(CONFIG_KEY_CHECKPOINTER), configurable.get(CONFIG_KEY_CHECKPOINT_MAP)
        if not saver or saver is True or not known:
            return None
        graph, _, own = str(configurable.get(CONFIG_KEY_CHECKPOINT_NS, "")).rpartition("|")
        durability = str(configurable.get(CONFIG_KEY_DURABILITY) or "")
        return cls(saver, str(configurable["thread_id"]), graph, own.rpartition(":")[2], dict(known), durability)

    @property
    def is_repeated(self) -> bool:
        """Whether the task that embeds the graph runs it again, by a retry policy or in its code."""
        return self.graph.rpartition("|")[2].isdecimal()

    @property
    def run(self) -> str:
        """The graph's namespace without the number of the run in its task."""
        return self.graph.rpartition("|")[0] if self.is_repeated else self.graph

    @property
    def root(self) -> str:
        """The checkpoint that the outermost graph's tasks began from, saved or not; "" if there is none."""
        return self.checkpoints[min(self.checkpoints, key=len)] if self.checkpoints else ""

    def config(self, namespace: str) -> Any:
        """Return the config of a checkpoint of this graph or of one that embeds it.

        A task of the functional API has its graph's checkpoint under its own namespace.
        """
        identifier = self.checkpoints[namespace]
        saved = min((name for name, each in self.checkpoints.items() if each == identifier), key=len)
        known = {"checkpoint_ns": saved, "checkpoint_id": identifier}
        return {"configurable": {"thread_id": self.thread_id, **known}}


def is_saved_at(standing: Standing) -> bool:
    """Return whether the checkpoints of the task's graph and of the outermost one are saved.

    They soon are, except with durability `exit`. Runs in a thread.
    """
    graphs = {min(standing.checkpoints, key=len), standing.graph}
    deadline = time.monotonic() + SOON_S * (standing.durability != "exit")
    pause = 0.0005  # mostly the checkpoint is just being written, and every real call waits here
    left = [standing.config(each) for each in graphs.intersection(standing.checkpoints)]
    while left := [each for each in left if not has_checkpoint(standing.saver, each)]:
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
        pause = min(1.5 * pause, 0.01)
    return True


def find_begin(standing: Standing) -> str:
    """Return the first checkpoint of the thread: rows older than it belong to a deleted thread.

    "~", later than any id, if nothing is saved; "", earlier than any, if the first one was pruned. Runs in a thread.
    """
    config = {"configurable": {"thread_id": standing.thread_id, "checkpoint_ns": ""}}
    first = [each.checkpoint["id"] for each in standing.saver.list(config, filter={"step": -1})]
    return str(min(first)) if first else "" if any(True for _ in standing.saver.list(config, limit=1)) else "~"


def find_delivery(standing: Standing) -> str:
    """Return the checkpoint of the thread's last input; calls from an earlier one belong to an earlier delivery.

    "~", later than any id, if it is not saved. Runs in a thread.
    """
    config = {"configurable": {"thread_id": standing.thread_id, "checkpoint_ns": ""}}
    known = standing.saver.list(config, filter={"source": "input"}, limit=1) if is_saved_at(standing) else ()
    return next((str(each.checkpoint["id"]) for each in known), "~")


def find_path(standing: Standing) -> str:
    """Return the graph's place without task ids, which stays the same if a message is sent again.

    Tasks of one `Send` list are numbered. Runs in a thread, and reads the checkpoints of the graphs that embed it.
    """
    parts = standing.graph.split("|") if standing.graph else []
    path: list[str] = []
    for index, part in enumerate(parts):
        if part.isdecimal():
            continue
        name, _, task = part.rpartition(":")
        parent = "|".join(parts[:index])
        if parent in standing.checkpoints:  # a task of the functional API has its graph's namespace
            name += _sibling(standing, parent, name, task)
        path.append(name)
    return "|".join(path)


def _sibling(standing: Standing, parent: str, name: str, task: str) -> str:
    """Return the task's number among the tasks sent at once, as a suffix; empty if an edge leads to it."""
    deadline = time.monotonic() + SAVED_S
    while (kept := standing.saver.get_tuple(standing.config(parent))) is None:
        if time.monotonic() > deadline:
            raise GeckoError("the checkpoint that the agent's node began from cannot be read")
        time.sleep(0.005)
    sends = [each for each in kept.checkpoint["channel_values"].get(TASKS) or () if isinstance(each, Send)]
    begun, step = UUID(kept.checkpoint["id"]).bytes, str(kept.metadata["step"] + 1)
    namespace = f"{parent}|{name}" if parent else name
    ids = (_xxhash_str(begun, namespace, step, name, PUSH, str(number)) for number in range(len(sends)))
    return next((f"#{number}" for number, each in enumerate(ids) if each == task), "")


def find_raised(standing: Standing) -> Any:
    """Return the question that this task has raised in a saved checkpoint; None if it has raised none."""
    kept = standing.saver.get_tuple(standing.config(standing.graph))
    writes = kept.pending_writes if kept else None
    raised = [value for task, key, value in writes or () if task == standing.task and key == INTERRUPT]
    return next((each.value for each in (raised[-1] if raised else ())), None)


def take_answer(configurable: Mapping[str, Any]) -> tuple[Any, bool]:
    """Return the value that this run was resumed with, and whether it names the task's interrupt by its id.

    The value is removed from LangGraph, so that an interrupt of the tool or the next question does not get it.
    """
    scratchpad, addressed = configurable[CONFIG_KEY_SCRATCHPAD], configurable.get(CONFIG_KEY_RESUME_MAP) or {}
    if scratchpad.resume and any(value is scratchpad.resume[-1] for value in addressed.values()):
        return scratchpad.resume.pop(), True
    return scratchpad.get_null_resume(True), False


def spend(standing: Standing) -> None:
    """Overwrite the resume value that is stored with this graph and each that embeds it.

    LangGraph keeps the value until the graph's superstep ends, so `invoke(None)` would answer the next question with
    it. None counts as no answer.
    """
    for namespace in standing.checkpoints:
        kept = standing.saver.get_tuple(config := standing.config(namespace))
        if kept and any(task == NULL_TASK_ID and key == RESUME for task, key, _ in kept.pending_writes or ()):
            standing.saver.put_writes(config, [(RESUME, None)], NULL_TASK_ID)


def raise_question(value: Any, configurable: Mapping[str, Any], schema: dict[str, Any] | None = None) -> GraphInterrupt:
    """Return the interrupt that asks a question, regardless of a resume value; `schema` is for its answer."""
    return GraphInterrupt((Interrupt.from_ns(value, configurable[CONFIG_KEY_CHECKPOINT_NS], response_schema=schema),))
