"""Compare written contracts with real calls: find the branches that rows contradict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..contracts.contract import Contract
from ..errors import EvaluationFailed, PatchConflict
from ..state import Json, JsonObject
from ..tools import ToolSpec
from ..values.difference import json_equal
from ..values.digest import digest
from ..values.observation import Observation, kind_of
from ..values.patch import apply_patch
from ..values.places import as_text, scalars
from ..world.followed import open_run
from .rules import weigh

NAMED = 5
Part = Literal["requires", "effects", "returns"]


@dataclass(slots=True)
class Contradiction:
    """A branch of a contract that real calls contradict.

    Args:
        tool: The tool.
        part: `requires`, `effects` or `returns`.
        branch: The clause that refused a successful call, the kind of an unforeseen refusal, or the path of the
            difference in state or result.
        count: Number of contradicting rows.
        rows: Digests of the first of them.
    """

    tool: str
    part: Part
    branch: str
    count: int = 0
    rows: list[str] = field(default_factory=list)


def find_contradictions(tool: ToolSpec, rows: Iterable[Observation]) -> list[Contradiction]:
    found: dict[tuple[str, str], Contradiction] = {}
    for row in rows:
        for part, branch in contradicted(tool, row):
            one = found.setdefault((part, branch), Contradiction(tool.name, part, branch))
            one.count += 1
            if len(one.rows) < NAMED:
                one.rows.append(row.digest[:12])
    return sorted(found.values(), key=lambda one: -one.count)


def contradicted(tool: ToolSpec, row: Observation) -> Iterator[tuple[Part, str]]:
    contract, before = tool.contract, row.before
    if contract is None or before is None:
        return
    run = open_run(contract, tool, row)
    refusal = run.refusal()
    clause = refusal.violations[0]["clause"] if refusal else ""
    if row.status == "error":
        kind = kind_of(row.result, row.args)
        # also if a clause cannot be evaluated, since none predicted the refusal
        if refusal is None and run.unknown is None and "requires" in contract.data:
            yield "requires", f"no clause foresees: {kind}"
        elif refusal is not None and not (refusal.reason or kind.endswith(kind_of(refusal.error, row.args))):
            # an exception's name may precede its text
            yield "requires", f"{clause} refuses a call that was refused otherwise: {kind}"
        return
    if clause:
        yield "requires", f"{clause} refuses a call that was made"
    if run.unknown is None and not run.unclear:
        yield from _answers(contract, tool, row, before)


def _answers(contract: Contract, tool: ToolSpec, row: Observation, before: JsonObject) -> Iterator[tuple[Part, str]]:
    """Yield the places where result and state differ from the contract's."""
    runs = [open_run(contract, tool, row, seed) for seed in (0, 1)]
    try:
        answer, again = (run.answer() for run in runs)
        if answer is None or again is None:
            return
        if place := _differs(answer.result, again.result, row.result):
            yield "returns", place
        if row.change is not None:
            ours, theirs = (apply_patch(before, one.patch) for one in (answer, again))
            if place := _differs(ours, theirs, row.after):
                yield "effects", place
    except (EvaluationFailed, PatchConflict) as failure:
        yield "effects", f"cannot be evaluated: {failure}"[:200]


def without_explained(
    tool: ToolSpec,
    clauses: Sequence[JsonObject],
    others: Sequence[JsonObject],
    rows: Iterable[Observation],
    let: JsonObject | None = None,
) -> list[JsonObject]:
    """Return learned clauses without proposed ones whose refusals the other clauses explain, too.

    `let` are the lets of both.
    """
    named = [Contract.load({"let": let or {}, "requires": [each]}, where=tool.name) for each in others]
    refused, gone = [row for row in rows if row.status == "error"], set[str]()
    for clause in (each for each in clauses if each.get("evidence", {}).get("status", "established") != "established"):
        own = Contract.load({"let": let or {}, "requires": [clause]}, where=tool.name)
        hit = [row for row in refused if _fires(own, tool, row)]
        if hit and all(any(_fires(one, tool, row) for one in named) for row in hit):
            gone |= {clause["id"], f"{clause['id']}-rivals"}
    return [each for each in clauses if each.get("id") not in gone]


def try_clause(
    tool: ToolSpec, contract: Contract, kind: str, found: Sequence[tuple[str, Observation]], *, by: str
) -> tuple[JsonObject, list[Observation]]:
    """Return the evidence that rows give for a contract of one clause, and the successful rows that it would refuse.

    The clause is from a `model`, which may be right by accident, or from a `document`.
    """
    some = [pair for pair in found if pair[1].before is not None or not contract.state_keys]
    runs = [(branch, row, run := open_run(contract, tool, row), run.refusal()) for branch, row in some]
    hits = Counter(branch for branch, _, _, refusal in runs if branch and refusal)
    most, count = max(hits.items(), key=lambda pair: (pair[1], pair[0]), default=("", 0))
    own = [row for branch, row, _, refusal in runs if branch == most and refusal]
    against = [row for branch, row, _, refusal in runs if not branch and refusal]
    lawful = [bool(run.unclear) for branch, _, run, refusal in runs if not (branch or refusal)]
    starts = len({row.question if row.before is None else digest(row.before) for row in own})
    is_clear, named = by == "document" or 2 * sum(lawful) < len(lawful), [row.digest[:12] for row in against[:NAMED]]
    more: JsonObject = {"lawful": lawful.count(False), "rivals": 0, "by": by, "says": most}
    return weigh(kind, count, starts, named, is_clear=is_clear, **more), against


def _fires(contract: Contract, tool: ToolSpec, row: Observation) -> bool:
    """Return whether a clause refuses a call, or warns of it."""
    run = open_run(contract, tool, row)
    return run.refusal() is not None or bool(run.warned)


def _differs(ours: Json, again: Json, real: Json) -> str:
    """Return the first place where reality differs, or ""; values that depend on the seed may differ."""
    if json_equal(ours, real):
        return ""
    made, other, seen = (dict(scalars(each)) for each in (ours, again, real))
    fixed = (place for place, value in made.items() if place in other and json_equal(other[place], value))
    wrong = [place for place in fixed if not (place in seen and json_equal(seen[place], made[place]))]
    if not wrong and not json_equal(ours, again):
        return "" if len(made) == len(seen) else "/"
    place = next(iter(wrong or [place for place in seen if place not in made]), ())
    return "/" + "/".join(map(str, place)) if place else f"{as_text(ours)[:60]}, not {as_text(real)[:60]}"
