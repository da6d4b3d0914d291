"""The multi-turn tasks with simulated tools: contracts where there are some, else a model, else the schema.

No class of the benchmark runs. Its file system has contracts (`examples/files`), so its state lies where they want it:
`{"tree", "cwd"}` at the task state's root, beside the other classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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

APART = 600
"""Words by which a copy's random source is ahead of the real one's."""

CONTRACTS = ROOT / "examples" / "files" / "files.openapi.yaml"

Kind: TypeAlias = Literal["real", "contract", "model", "schema", "agent", "agent-apart"]

LADDERS: Mapping[Kind, tuple[str, ...]] = {
    "real": ("python",),
    "contract": LADDER,
    "model": ("model",),
    "schema": ("schema",),
    "agent": ("contract", "python"),
    "agent-apart": ("contract", "python"),
}
"""Whose tools a task is played on, and the rungs that answer: nothing is made up where the real classes cannot.

`agent`: rehearsed on the file system's contracts and on copies of the other classes, then carried out (`acting`);
`agent-apart`: the copies draw other numbers than reality will.
"""


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
        state = self.layout(self.task.real.initial_state)
        if self.kind == "agent-apart":
            for name in self.task.classes:
                hidden = state[RUNTIME].get(name, {})
                state[RUNTIME][name] = {**hidden, "drawn": hidden.get("drawn", 0) + APART}
        return state

    @property
    def acts(self) -> bool:
        """True where the agent rehearses and then really acts."""
        return self.kind.startswith("agent")

    def layout(self, state: JsonObject) -> JsonObject:
        """A task state of the real classes as this stage's tools are given it."""
        if self.kind == "real":
            return state
        hidden = {name: part for name, part in state[RUNTIME].items() if name != FILES and self.acts}
        return {**laid_out(state), RUNTIME: hidden}

    @property
    def knobs(self) -> dict[str, tuple[str, ...]]:
        """The knobs that follow from it."""
        return {"ladder": LADDERS[self.kind]}

    def toolkit(self, turn: int) -> Toolkit:
        """The tools of a turn."""
        if self.kind == "real":
            return self.task.toolkit(turn)
        return Toolkit(map(self._spec, (spec.name for spec in self.task.specs(turn))))

    def truthful(self, turn: int) -> Toolkit:
        """The tools of a turn for the ground truth, which may do what the documents do not say."""
        if self.kind == "real":
            return self.task.truthful(turn)
        return for_truth(self.task, turn, self.toolkit(turn), self._spec)

    def _spec(self, name: str) -> ToolSpec:
        """A tool as documented; with its contract, or a copy of its class, where this stage has them."""
        real, is_ruled = self.task.real, self.kind == "contract" or self.acts
        if is_ruled and real.owners[name] == FILES and name in contracted():
            return contracted()[name]
        spec = documents(real.owners[name])[name]
        return replace(spec, simulate=real.simulate(name), result=None) if self.acts else spec


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
