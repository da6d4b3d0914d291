"""The multi-turn tasks with simulated tools: contracts where there are some, else a model, else the schema.

No class of the benchmark runs. Its file system has contracts (`examples/files`), so its state lies where they want it:
`{"tree", "cwd"}` at the task state's root, beside the other classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from gecko_graph import Toolkit, ToolSpec
from gecko_graph.state import ChecklistItem, Json, JsonObject

from ..datasets import ROOT
from .classes import FILES, RUNTIME
from .oracle import Truth, checklist, public
from .tasks import Task

CONTRACTS = ROOT / "examples" / "files" / "files.openapi.yaml"


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


def laid_out(state: Mapping[str, Any]) -> JsonObject:
    """A task state of the real classes as simulated tools are given it."""
    parts = {name: part for name, part in state.items() if name not in (FILES, RUNTIME)}
    return {**state.get(FILES, {}), **parts, RUNTIME: {}}


def checks_of(truth: Truth, turn: int, before: Mapping[str, Any], seen: Sequence[Json]) -> list[ChecklistItem]:
    """The oracle's checks of what the official checker compares, in that layout."""
    after = laid_out(public(truth.states[turn]))
    del after[RUNTIME]
    answers = [None if answer == "None" else answer for answer in truth.answers[turn]]
    return checklist(before, after, answers, seen=seen)
