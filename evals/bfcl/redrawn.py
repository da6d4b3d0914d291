"""Identifiers that a simulation draws beside those that the real classes draw.

A written plan names the real ones: it is given the simulation's in their place, as a model would that reads results.
What comes out is scored with the real ones put back.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gecko_graph.models.node import NODE_STATE
from gecko_graph.scenario.case import made_calls
from gecko_graph.state import Json, JsonObject
from gecko_graph.values.patch import apply_patch
from gecko_graph.values.places import map_scalars

from .drawn import drawn_values
from .rehearse import Played
from .tasks import Task

Seen = Sequence[tuple[str, Json]]
"""A turn's calls as a plan was written: the tool's name and the result that its writer saw."""


@dataclass(slots=True)
class Redrawn:
    """What a task's simulation has drawn so far, and what stands for it elsewhere.

    Args:
        task: The task.
        seen: The plan's calls by turn; empty where the plan is not written down.
        instance: The state of the real classes, to which `advance` carries out each turn's plan.
    """

    task: Task
    seen: Sequence[Seen] = ()
    instance: JsonObject = field(default_factory=dict)
    _ours: dict[str, Json] = field(default_factory=dict)
    _real: dict[str, Json] = field(default_factory=dict)
    _turn: int = 0

    def fill(self, reply: Json, where: str, attempt: int) -> Json:
        """Return a written reply with the simulation's identifiers in the place of those that its writer saw."""
        calls = made_calls(NODE_STATE.get(), attempt)
        return exchanged(reply, {**self._ours, **self._pairs((call["name"], call["result"]) for call in calls)})

    def _pairs(self, calls: Iterable[tuple[str, Json]]) -> dict[str, Json]:
        """Return what a turn's writer saw with what its calls have drawn: each tool's calls in their order."""
        waiting: dict[str, list[dict[str, list[Json]]]] = defaultdict(list)
        for name, result in self.seen[self._turn] if self._turn < len(self.seen) else ():
            waiting[name].append(drawn_values(name, result))
        found: dict[str, Json] = {}
        for name, result in calls:
            if waiting[name]:
                found |= _matched(waiting[name].pop(0), drawn_values(name, result, shaped=False))
        return found

    def advance(self, played: Played) -> None:
        """Carry out a turn's plan on the real classes, and note what both sides have drawn."""
        answered = [step for step in played.chosen["steps"] if "outcome" in step]
        self._ours |= self._pairs((step["call"]["name"], step["outcome"]["result"]) for step in answered)
        self._turn += 1
        state, planned = played.before, {call["id"] for call in played.rehearsal["plan"]}
        for step in answered:
            before, state = state, apply_patch(state, step["outcome"]["patch"] or [])
            name, outcome = step["call"]["name"], step["outcome"]
            if step["call"]["id"] in planned and name in self.task.real.owners:
                was = json.loads(json.dumps(self.instance))
                answer = self.task.real.simulate(name)(self.instance, **exchanged(step["call"]["args"], self._real))
                ours = drawn_values(name, outcome["result"], state, before, shaped=False)
                self._real |= _matched(ours, drawn_values(name, answer, self.instance, was))

    def read(self, name: str, args: JsonObject) -> Json:
        """Return what a read of the real classes answers, in the simulation's identifiers."""
        state = json.loads(json.dumps(self.instance))
        answer = self.task.real.simulate(name)(state, **exchanged(args, self._real))
        back = {json.dumps(real): json.loads(ours) for ours, real in self._real.items()}
        return exchanged(answer, back)

    def real(self, played: Sequence[Played]) -> list[Played]:
        """Return turns with the real identifiers in the place of the simulation's."""
        return [
            replace(
                each, **{key: exchanged(getattr(each, key), self._real) for key in ("rehearsal", "before", "after")}
            )
            for each in played
        ]


def _matched(some: Mapping[str, list[Json]], others: Mapping[str, list[Json]]) -> dict[str, Json]:
    pairs = (pair for place, values in some.items() for pair in zip(values, others.get(place, ()), strict=False))
    return {json.dumps(one): other for one, other in pairs}


def exchanged(value: Json, words: Mapping[str, Json]) -> Json:
    """Return a value with others in the place of drawn ones, also inside texts and as keys."""
    if not words:
        return value
    texts = {json.loads(one): other for one, other in words.items() if one.startswith('"') and isinstance(other, str)}

    def change(text: Json) -> Json:
        if not isinstance(text, str):
            return words.get(json.dumps(text), text)
        if text in texts:
            return texts[text]
        for one, other in texts.items():
            text = text.replace(one, other) if len(one) > SHORT else text
        return text

    return map_scalars(value, change, keys=True)


SHORT = 5
"""Texts of so many characters or less are replaced only where they stand alone."""
