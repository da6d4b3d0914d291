"""The multi-turn tasks with simulated tools: by the classes' contracts, a model, or the schema.

No class of the benchmark runs. All classes of a task share one state, each below its name.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from gecko_graph import Toolkit, ToolSpec
from gecko_graph.context import LADDER
from gecko_graph.state import ChecklistItem, Json, JsonObject
from gecko_graph.values.digest import clone

from .classes import FILES, RUNTIME
from .contracted import PRINTED, class_toolkit, learned_toolkit
from .drawn import Redrawn
from .oracle import NOTHING, Truth, checklist, public, truth_of
from .rehearse import Checklist, Played
from .tasks import Task, documents, for_truth, plain

Kind: TypeAlias = Literal["real", "contract", "model", "schema", "agent"]

LADDERS: Mapping[Kind, tuple[str, ...]] = {
    "real": ("python",),
    "contract": LADDER,
    "model": ("model",),
    "schema": ("schema",),
    "agent": ("contract", "python"),
}
"""The rungs that answer, by the kind of tools; on the real classes nothing is made up.

`agent`: rehearsed on the file system's contracts and on copies of the other classes, then carried out (`acting`).
"""

APART = ("contract", "model", "schema")
"""Kinds of tools on which a turn can be rehearsed alone."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A task with the tools that it is played on.

    `alone`: each turn is played after the truth of the turns before, instead of after the played ones; `learned`: a
    folder of contracts, used instead of the written ones.
    """

    task: Task
    kind: Kind = "real"
    alone: bool = False
    learned: Path | None = None
    redrawn: Redrawn = field(init=False, compare=False)

    def __post_init__(self) -> None:
        instance = clone(self.task.real.initial_state) if self.is_ruled else {}
        object.__setattr__(self, "redrawn", Redrawn(self.task, instance=instance))

    @property
    def is_ruled(self) -> bool:
        """Whether contracts answer, which draw their own identifiers."""
        return self.kind == "contract"

    def advance(self, played: Played) -> None:
        """Run the turn's plan on the real classes, as an agent would after each turn."""
        if self.is_ruled:
            self.redrawn.advance(played)

    def real(self, played: Sequence[Played]) -> Sequence[Played]:
        """Return turns with the real identifiers instead of those that contracts have drawn."""
        return self.redrawn.real(played) if self.is_ruled else played

    @property
    def start(self) -> JsonObject:
        return self.layout(self.task.real.initial_state)

    @property
    def acts(self) -> bool:
        return self.kind == "agent"

    def layout(self, state: JsonObject) -> JsonObject:
        """Return a task state of the real classes in the layout of this stage's tools."""
        if self.kind == "real":
            return state
        hidden = {name: part for name, part in state[RUNTIME].items() if name != FILES and self.acts}
        return {**laid_out(state), RUNTIME: hidden}

    @property
    def knobs(self) -> dict[str, Any]:
        return {"ladder": LADDERS[self.kind]}

    def toolkit(self, turn: int) -> Toolkit:
        if self.kind == "real":
            return self.task.toolkit(turn)
        return Toolkit(map(self._spec, (spec.name for spec in self.task.specs(turn))))

    def truthful(self, turn: int) -> Toolkit:
        """Return the tools of a turn for the ground truth, which may go beyond the documents."""
        if self.kind == "real":
            return self.task.truthful(turn)
        return for_truth(self.task, turn, self.toolkit(turn), self._spec)

    def _spec(self, name: str) -> ToolSpec:
        """Return a documented tool; with its contract, or a copy of its class, if this stage uses them."""
        real, owner = self.task.real, self.task.real.owners[name]
        if self.learned:
            return learned_toolkit(owner, self.learned)[name]
        has_contract = self.is_ruled or (self.acts and owner == FILES)
        spec = class_toolkit(owner)[name] if has_contract else documents(owner)[name]
        if name in PRINTED and has_contract:
            spec = replace(spec, simulate=PRINTED[name], result=None)
        return replace(spec, simulate=real.simulate(name), result=None) if self.acts and owner != FILES else spec


def laid_out(state: Mapping[str, Json]) -> JsonObject:
    """Return a task state of the real classes without what they keep privately, as simulated tools need it."""
    return {**{name: part for name, part in state.items() if name != RUNTIME}, RUNTIME: {}}


def checks_of(truth: Truth, turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
    """Return the oracle's checks of what the official checker compares, in the layout of simulated tools."""
    after = laid_out(public(truth.states[turn]))
    del after[RUNTIME]
    answers = [_as_value(answer) for answer in truth.answers[turn]]
    return checklist(before, after, answers, seen=seen, drawn=truth.drawn)


def _as_value(answer: Json) -> Json:
    """Return an official answer as a contract gives it: the text `None` as None, a printed list as a list."""
    if isinstance(answer, str) and answer.startswith("["):
        try:
            return plain(literal_eval(answer))
        except (ValueError, SyntaxError):
            return answer
    return None if answer == "None" else answer


def ruled(task: Task) -> Checklist:
    """Return the checklist of `checks_of`; turns without a truth have nothing to check."""
    return partial(_ruled, task, truth_of(task))


def _ruled(task: Task, truth: Truth, turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
    seen = [*map(_as_value, truth.past), *seen]
    return checks_of(truth, turn, before, seen) if task.turns[turn].truth else [NOTHING]
