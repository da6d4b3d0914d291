"""The multi-turn tasks with simulated tools: contracts where there are some, else a model, else the schema.

No class of the benchmark runs. Its file system has contracts (`examples/files`), so its state lies where they want it:
`{"tree", "cwd"}` at the task state's root, beside the other classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal, TypeAlias

from gecko_graph import Toolkit, ToolSpec
from gecko_graph.context import LADDER
from gecko_graph.state import ChecklistItem, Json, JsonObject

from ..harness.datasets import ROOT
from .classes import FILES, RUNTIME
from .oracle import NOTHING, Truth, checklist, public, truth_of
from .rehearse import Checklist
from .tasks import Task, documents, for_truth

CONTRACTS = ROOT / "examples" / "files" / "files.openapi.yaml"

Kind: TypeAlias = Literal["real", "contract", "model", "schema"]

LADDERS: Mapping[Kind, tuple[str, ...]] = {
    "real": ("python",),
    "contract": LADDER,
    "model": ("model",),
    "schema": ("schema",),
}
"""Whose tools a task is played on, and the rungs that answer: nothing is made up where the real classes cannot."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A task with the tools that it is played on.

    Args:
        task: The task.
        kind: Whose tools answer.
    """

    task: Task
    kind: Kind = "real"

    @property
    def start(self) -> JsonObject:
        """The task state that the first turn begins with."""
        state = self.task.real.initial_state
        return state if self.kind == "real" else laid_out(state)

    @property
    def knobs(self) -> dict[str, tuple[str, ...]]:
        """The knobs that follow from it."""
        return {"ladder": LADDERS[self.kind]}

    def toolkit(self, turn: int) -> Toolkit:
        """The tools of a turn."""
        if self.kind == "real":
            return self.task.toolkit(turn)
        return simulated(self.task, turn, contracts=self.kind == "contract")

    def truthful(self, turn: int) -> Toolkit:
        """The tools of a turn for the ground truth, which may do what the documents do not say."""
        if self.kind == "real":
            return self.task.truthful(turn)
        return for_truth(self.task, turn, self.toolkit(turn), lambda name: documents(self.task.real.owners[name])[name])


def simulated(task: Task, turn: int, *, contracts: bool = True) -> Toolkit:
    """The tools of a turn as documented, without any function.

    Args:
        task: The task.
        turn: Number of the turn, from 0.
        contracts: Give the file system its contracts.
    """
    known = contracted() if contracts and FILES in task.classes else {}
    owners = task.real.owners
    return Toolkit(
        known[spec.name] if owners[spec.name] == FILES and spec.name in known else spec for spec in task.specs(turn)
    )


@cache
def contracted() -> dict[str, ToolSpec]:
    """The file system's tools with their contracts, by name."""
    return {tool.name: tool for tool in Toolkit.from_openapi(CONTRACTS)}


def laid_out(state: Mapping[str, Json]) -> JsonObject:
    """A task state of the real classes as simulated tools are given it."""
    parts = {name: part for name, part in state.items() if name not in (FILES, RUNTIME)}
    files = state.get(FILES)
    return {**(files if isinstance(files, dict) else {}), **parts, RUNTIME: {}}


def checks_of(truth: Truth, turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
    """The oracle's checks of what the official checker compares, in that layout."""
    after = laid_out(public(truth.states[turn]))
    del after[RUNTIME]
    answers = [None if answer == "None" else answer for answer in truth.answers[turn]]
    return checklist(before, after, answers, seen=seen)


def ruled(task: Task) -> Checklist:
    """Those checks; the official checker asks nothing of turns without a truth."""
    return partial(_ruled, task, truth_of(task))


def _ruled(task: Task, truth: Truth, turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
    return checks_of(truth, turn, before, seen) if task.turns[turn].truth else [NOTHING]
