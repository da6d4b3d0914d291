"""The calls of a conversation, made again: as they were, without one of them, or with other drawn values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..context import GeckoContext
from ..state import Json, JsonObject, Step
from ..tools import Toolkit
from ..values.difference import json_equal
from ..values.leaves import Place, map_texts, scalars
from ..world.provenance import is_planned
from ..world.world import World
from .user import CLOCK, add_minutes


class Rerun:
    """The calls of a log, made again one by one.

    Results that come out otherwise than in the log (new identifiers) stand in the place of the old ones in later calls.

    Args:
        toolkit: The tools; contracts, functions and examples answer, no model.
        start: The task state before the first call.
        log: The steps that are made again.
        seed: Another one draws other values.
        minutes: How much later the state's clock is, for values that depend on it.
    """

    def __init__(
        self, toolkit: Toolkit, start: JsonObject, log: Sequence[Step], *, seed: int = 0, minutes: int = 0
    ) -> None:
        context = GeckoContext(seed=seed, semantic_validation=False)
        start = {**start, "now": add_minutes(start["now"], minutes) or start["now"]} if "now" in start else start
        self._log, self._minutes, self._renamed = log, minutes, dict[str, Json]()
        self._world = World(toolkit, state=start, context=context)
        self.steps: list[Step] = []
        self.states: list[JsonObject] = [start]
        self._forks: list[tuple[World, dict[str, Json]]] = []

    def run(self) -> Rerun:
        """Make all calls."""
        for step in self._log:
            self._forks.append((self._world.fork(), dict(self._renamed)))
            self.steps.append(self._make(self._world, step, self._renamed))
            self.states.append(self._world.state)
        return self

    def without(self, index: int) -> list[Step]:
        """Return the steps after one, as they are without it."""
        world, renamed = self._forks[index]
        world, renamed = world.fork(), dict(renamed)
        return [self._make(world, step, renamed) for step in self._log[index + 1 :]]

    def find_failed(self) -> Step | None:
        """Return the first step that worked in the log, and does not here."""
        pairs = zip(self._log, self.steps, strict=True)
        return next((then for then, now in pairs if is_planned(then) and not is_planned(now)), None)

    def _make(self, world: World, step: Step, renamed: dict[str, Json]) -> Step:
        call = step["call"]
        if call["name"] == CLOCK:
            patch = step["outcome"]["patch"] or ()
            moved = [{**each, "value": add_minutes(each["value"], self._minutes) or each["value"]} for each in patch]
            made = {**step, "outcome": {**step["outcome"], "patch": moved}}
            world.replay([{"step": made, "note": {}}])
            return made  # type: ignore[return-value]
        args = map_texts(call["args"], lambda text: renamed.get(text, text))
        done = world.call({"name": call["name"], "args": args})
        if is_planned(step) and is_planned(done):
            pairs = find_differences(step["outcome"]["result"], done["outcome"]["result"])
            renamed |= {old: new for _, old, new in pairs if isinstance(old, str)}
        return done


def find_differences(old: Json, new: Json) -> Iterator[tuple[Place, Json, Json]]:
    """Yield the scalars of a value that differ from what stands in the same place of another."""
    there = dict(scalars(new))
    for place, value in scalars(old):
        if place in there and not json_equal(value, there[place]):
            yield place, value, there[place]
