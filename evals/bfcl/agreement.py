"""The verdict beside the official score: turn by turn, each judged alone on the truth of the turns before, and why.

The plan of a rehearsal is run on the real classes. A turn's official word is the checker's on its plan where the truth
has led, whatever came of the turns before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from gecko_graph.state import Json, JsonObject

from ..harness.figures import Figure, Table, rate, rungs_of, share, tools_of
from ..harness.suite import Record, by_group
from .cause import cause_of, is_right
from .oracle import apart
from .rehearse import Played, plan_of
from .simulated import Stage

_NOTE = (
    "The plan of each rehearsal was run on the real classes and scored by the official checker. Agrees: accepted where "
    "officially valid, not accepted where not. A mark: anything that the verdict lists beside its items."
)
_ALONE = (
    "Right: the turn's plan, alone, is officially valid where the ground truth of the turns before has led; where the "
    "truth has no calls, it changes nothing."
)

_UNITS = ("turns", "tasks")
_MOST_CALL = 80


def by_turn(stage: Stage, played: Sequence[Played]) -> list[JsonObject]:
    """Return what a record keeps of each turn.

    Returns:
        For each turn `word`, `valid` (by the official checker, alone on the truth of the turns before), `marks` (what
        the verdict lists beside its items, by kind), `rungs` and `classes` of its calls, `cause` (the first difference
        that matters, where the plan is wrong or a right one was not accepted; else empty) and `call` (where).
    """
    records = []
    for task, each in zip(apart(stage.task), played, strict=False):
        right = is_right(task, [call for step in plan_of([each])[0] for call in step])
        cause = cause_of(task, each, right=right, is_real=stage.kind == "real")
        records.append({**_of_turn(stage, each), "valid": right, "cause": cause.what, "call": cause.call})
    return records


def _of_turn(stage: Stage, played: Played) -> JsonObject:
    verdict, steps = played.rehearsal["verdict"], played.chosen["steps"]
    owners = stage.task.real.owners
    return {
        "status": verdict["status"],
        "marks": marks_of(verdict),
        "rungs": dict(Counter(step["outcome"]["rung"] for step in steps if "outcome" in step)),
        "classes": sorted({owners.get(step["call"]["name"], "unknown") for step in steps}),
    }


def marks_of(verdict: Mapping[str, Json]) -> JsonObject:
    """Return what a verdict lists beside its items, by kind."""
    return {
        kind: [*listed] for kind, listed in verdict.items() if kind != "items" and isinstance(listed, list) and listed
    }


def tables(records: Sequence[Record]) -> list[Figure]:
    """Return the verdict's agreement with the official score: by category, verdict, mark and rung, and the causes."""
    done = [record for record in records if record.done]
    return [_by_category(records), _by_verdict(done), _by_mark(done), _by_rung_and_class(done), *_causes(done)]


def _by_category(records: Sequence[Record]) -> Table:
    table = Table(
        "The verdict beside the official score",
        ["category", "officially valid", "verdict agrees", "valid where accepted", "so without a mark"],
        note=_NOTE,
    )
    groups = by_group(records)
    for name, some in [*groups.items(), *([("all", records)] if len(groups) > 1 else [])]:
        table.add(
            name,
            rate(some, _is_valid),
            rate(some, lambda record: _is_accepted(record) == _is_valid(record)),
            rate([record for record in some if record.done and _is_accepted(record)], _is_valid),
            rate([record for record in some if record.done and _is_plain(record)], _is_valid),
        )
    return table


def _is_valid(record: Record) -> bool:
    return bool(record.values["valid"])


def _is_accepted(record: Record) -> bool:
    return all(record.values["accepted"])


def _is_plain(record: Record) -> bool:
    """Return True where every turn was accepted and bears no mark."""
    return _is_accepted(record) and not _marks(record)


def _marks(record: Record) -> set[str]:
    return {kind for turn in record.values["by_turn"] for kind in turn["marks"]}


def _turns(records: Sequence[Record]) -> Iterator[tuple[str, JsonObject]]:
    """Yield every turn, each with its record's id."""
    for record in records:
        yield from ((f"{record.id}, turn {number}", turn) for number, turn in enumerate(record.values["by_turn"], 1))


def _facts(done: Sequence[Record]) -> Mapping[str, Sequence[tuple[bool, bool, set[str]]]]:
    """Return whether each turn, and each task, was accepted and is right, and the marks that it bears."""
    return {
        "turns": [(turn["status"] == "accepted", turn["valid"], {*turn["marks"]}) for _, turn in _turns(done)],
        "tasks": [(_is_accepted(record), _is_valid(record), _marks(record)) for record in done],
    }


def _by_verdict(done: Sequence[Record]) -> Table:
    columns = [f"{name} {'with' if marked else 'without'} a mark" for name, marked in product(_UNITS, (True, False))]
    table = Table("Accepted and refused, right and wrong, with and without a mark", ["verdict, plan", *columns], _ALONE)
    facts = _facts(done)
    for accepted, right in product((True, False), repeat=2):
        cells = [
            sum((one[0], one[1], bool(one[2])) == (accepted, right, marked) for one in facts[name])
            for name, marked in product(_UNITS, (True, False))
        ]
        table.add(f"{'accepted' if accepted else 'refused'}, {'right' if right else 'wrong'}", *cells)
    return table


def _by_mark(done: Sequence[Record]) -> Table:
    columns = [f"{'right' if right else 'wrong'} {name}" for name, right in product(_UNITS, (True, False))]
    table = Table("Right and wrong turns with a mark, by kind", ["mark", *columns], _ALONE)
    facts, tools = _facts(done), tools_of(done)
    groups = [[one[2] for one in facts[name] if one[1] == right] for name, right in product(_UNITS, (True, False))]
    kinds = sorted({kind for some in groups for marks in some for kind in marks})
    table.add("any", *(share(sum(map(bool, some)), len(some), tools=tools) for some in groups))
    for kind in kinds:
        table.add(kind, *(share(sum(kind in marks for marks in some), len(some), tools=tools) for some in groups))
    return table


def _by_rung_and_class(done: Sequence[Record]) -> Table:
    table = Table(
        "Turns: agreement by the rungs that answered, and by class",
        ["turns", "verdict agrees", "accepted, not valid", "valid, not accepted", "with a mark"],
        note=f"{_ALONE} A turn counts for each class that it calls.",
    )
    groups: dict[str, list[JsonObject]] = {}
    for _, turn in _turns(done):
        rungs = " + ".join(sorted(turn["rungs"])) or "no call answered"
        for name in [f"1 rungs: {rungs}", *(f"2 class: {each}" for each in turn["classes"]), "3 all"]:
            groups.setdefault(name, []).append(turn)
    for name, turns in sorted(groups.items()):
        wrong = [turn for turn in turns if (turn["status"] == "accepted") != turn["valid"]]
        agrees = share(len(turns) - len(wrong), len(turns), tools=tools_of(done), rungs=rungs_of(done))
        false = sum(turn["status"] == "accepted" for turn in wrong)
        table.add(name[2:], agrees, false, len(wrong) - false, sum(bool(turn["marks"]) for turn in turns))
    return table


def _causes(done: Sequence[Record]) -> Iterator[Table]:
    found: dict[tuple[str, str], list[str]] = {}
    for name, turn in _turns(done):
        if turn["cause"]:
            verdicts = (
                f"{'accepted' if turn['status'] == 'accepted' else 'refused'}, {'right' if turn['valid'] else 'wrong'}"
            )
            found.setdefault((verdicts, turn["cause"]), []).append(f"{name}: {turn['call'][:_MOST_CALL]}")
    if found:
        table = Table("The first difference that matters", ["verdict, plan", "difference", "turns", "such as"])
        for (verdicts, cause), names in sorted(found.items(), key=lambda each: (each[0][0], -len(each[1]))):
            table.add(verdicts, cause, len(names), names[0])
        yield table
