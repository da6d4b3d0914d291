"""Threads of calls on a service: drawn at random from what the thread has met, and as rows of what reads had shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from gecko_graph import Toolkit
from gecko_graph.learning.observation import known_by_reads
from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.state import CallStatus, Json, JsonObject
from gecko_graph.values.observation import Observation

READS, ODD, LATEST, TRIES = 0.6, 0.1, 12, 20
"""Share of calls that read, share of values that nobody has met, how many of those met are drawn from."""


class Service(NamedTuple):
    """A service: its tools, with what reads show (`observes`) where rows know no more, and the rows of a thread.

    `learn` and `held` name the threads to learn from and those held out.
    """

    toolkit: Toolkit
    rows: Callable[[Any], Sequence[Observation]]
    learn: Sequence[Any]
    held: Sequence[Any]


@dataclass
class Driver:
    """Draws calls that fit the documents: values met under the argument's name, now and then one that nobody met."""

    toolkit: Toolkit
    seed: str
    met: dict[str, list[Json]] = field(default_factory=dict)
    alike: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)

    def draw(self) -> tuple[str, JsonObject]:
        """Return a tool's name and arguments."""
        for _ in range(TRIES):
            reads = self._random.random() < READS
            tool = self._random.choice([each for each in self.toolkit if each.reads == reads])
            args: Any = self._value(tool.parameters, "")
            if not find_complaints(tool, args):
                break
        return tool.name, args

    def meet(self, value: Json, name: str = "") -> None:
        """Remember the values of a result, each by the name of the member that held it; keys by that of the object."""
        if isinstance(value, dict):
            for key, each in value.items():
                self.meet(each, key)
                if isinstance(each, dict):
                    self.meet(key, "id")
        elif isinstance(value, list):
            for each in value:
                self.meet(each, name)
        elif value is not None:
            known = self.met.setdefault(name, [])
            self.met[name] = [*(each for each in known if each != value), value][-LATEST:]

    def _value(self, schema: Mapping[str, Any], name: str) -> Json:
        source, kind = self._random, schema.get("type")
        kind = kind[0] if isinstance(kind, list) else kind
        if schema.get("enum"):
            return source.choice(schema["enum"])
        if kind == "object":
            needed, properties = schema.get("required", ()), schema.get("properties", {})
            kept = [key for key in properties if key in needed or source.random() < 0.5]
            return {key: self._value(properties[key], key) for key in kept}
        if kind == "array":
            return [self._value(schema.get("items", {}), name) for _ in range(source.choice((1, 1, 2)))]
        if kind == "boolean":
            return source.random() < 0.5
        if kind == "string" and (met := [one for one in self.met.get(self.alike.get(name, name), ()) if one]):
            one = str(source.choice(met))
            return one if source.random() > ODD else one[:-1] + source.choice("0X7")  # looks like one that there is
        if kind == "string":
            return f"{name}-{source.randint(1, 99)}"
        least = int(schema.get("minimum", 0))
        return source.randint(least, int(schema.get("maximum", source.choice((6, 6, 60)) + least)))


def follow(driver: Driver, count: int, call: Callable[[str, JsonObject], tuple[CallStatus, Json]]) -> list[Observation]:
    """Make a thread's calls on a service, after the reads that need nothing, and return their rows, by reads alone."""
    made: list[tuple[str, JsonObject, CallStatus, Json]] = []
    opening: list[tuple[str, JsonObject]] = [
        (tool.name, {}) for tool in driver.toolkit if tool.reads and not find_complaints(tool, {})
    ]
    for number in range(count):
        name, args = opening[number] if number < len(opening) else driver.draw()
        status, result = call(name, args)
        if status == "ok":
            driver.meet(result)
        made.append((name, args, status, result))
    return by_reads(driver.toolkit, made, source=driver.seed)


def by_reads(
    toolkit: Toolkit, calls: Iterable[tuple[str, JsonObject, CallStatus, Json]], *, source: str
) -> list[Observation]:
    """Return calls of one thread as rows that know of the state what its reads have shown before, by `observes`."""
    return list(known_by_reads([Observation(*one, source=source) for one in calls], toolkit))
