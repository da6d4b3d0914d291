"""Contracts made wrong in one place, to see whether a comparison with the real calls finds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from gecko_graph import Toolkit
from gecko_graph.contracts.contract import Contract
from gecko_graph.state import JsonObject
from gecko_graph.tools.spec import ToolSpec

from .contracted import class_toolkit
from .differential import LONGEST, Real, Start, Values, public, random_step
from .fidelity import Recorded, compared, simulated

OTHER = {"error": "something else"}


class Seen(NamedTuple):
    """A call of the real class, with what the calls before it have left that recordings do not show."""

    one: Recorded
    hidden: JsonObject


def mutants_of(data: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yield contracts that are wrong in one place, each with what was done."""
    if "returns" in data:
        yield "no result", {**data, "returns": None}
    for part in ("requires", "effects"):
        clauses: list[Any] = data.get(part, [])
        for number, clause in enumerate(clauses):
            where, others = f"{part}[{number}]", [clauses[:number], clauses[number + 1 :]]
            yield f"without {where}", {**data, part: [*others[0], *others[1]]}
            for key in ("when", "effects") if part == "requires" else ("when",):
                if key in clause:
                    less = {each: clause[each] for each in clause if each != key}
                    yield f"{where} without {key}", {**data, part: [*others[0], less, *others[1]]}
            if "error" in clause:
                yield (
                    f"{where} with another error",
                    {**data, part: [*others[0], {**clause, "error": OTHER}, *others[1]]},
                )


def mutated(toolkit: Toolkit) -> Iterator[tuple[ToolSpec, str, Toolkit]]:
    """Yield a class's tools with a wrong contract, what is wrong, and the toolkit with it."""
    for tool in toolkit:
        if tool.contract is not None:
            for what, data in mutants_of(tool.contract.data):
                contract = Contract.load(data, lets=tool.contract.lets, where=f"{tool.name}, {what}")
                yield tool, what, toolkit.replace(replace(tool, contract=contract))


def find_mutants(kind: str, recorded: Sequence[Seen], random: Sequence[Seen]) -> list[JsonObject]:
    """Return each mutant of a class's contracts with whether recorded calls and random ones find it.

    It is found where a call that came out the same with the contract does not with the mutant.
    """
    right = class_toolkit(kind)
    found = []
    for tool, what, wrong in mutated(right):
        row: JsonObject = {"tool": tool.name, "mutant": what}
        for word, seen in (("recorded", recorded), ("random", random)):
            calls = (each for each in seen if each.one.name == tool.name)
            row[word] = any(not _is_same(wrong, each) and _is_same(right, each) for each in calls)
        found.append(row)
    return found


def _is_same(toolkit: Toolkit, seen: Seen) -> bool:
    return bool(compared(seen.one, simulated(toolkit, seen.one, seen.hidden))["same"])


def random_calls(starts: Sequence[Start], *, seed: str, values: Values, most: int) -> list[Seen]:
    """Return random calls of a class on the real one."""
    source = Random(seed)
    seen: list[Seen] = []
    while len(seen) < most:
        real = Real(source.choice(starts))
        try:
            for _ in range(LONGEST):
                step = random_step(source, real.start.kind, values, public(real.state))
                hidden = dict(real.hidden)
                real.step(step)
                seen.append(Seen(real.last, hidden))
        except ValueError:  # a folder holds itself
            continue
    return seen
