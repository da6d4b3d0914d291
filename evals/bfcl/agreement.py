"""Compare verdicts with the official score, turn by turn, each turn judged alone after the truth of the turns before.

The plan of a rehearsal is run on the real classes. A turn's official verdict is the checker's on its plan, in the state
that the ground truth of the turns before leads to, whatever the plans of those turns did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from gecko_graph.state import Json, JsonObject, Step
from gecko_graph.values.notes import KINDS, notes_of

from ..harness.figures import Record, Table, rate, rungs_of, share, tools_of
from ..harness.suite import with_all
from .official import Replay, check, same_state
from .oracle import apart
from .rehearse import Played, plan_of
from .simulated import Stage
from .tasks import Task

_NOTE = (
    "The plan of each rehearsal was run on the real classes and scored by the official checker. Agrees: accepted where "
    "officially valid, not accepted where not. A mark: anything that the verdict lists beside its items."
)
_ALONE = (
    "Right: the turn's plan, alone, is officially valid where the ground truth of the turns before has led; where the "
    "truth has no calls, it changes nothing."
)

_UNITS = ("turns", "tasks")


def by_turn(stage: Stage, played: Sequence[Played]) -> list[JsonObject]:
    """Return the record of each turn.

    Returns:
        For each turn the verdict's `status`, `valid` (the official checker's verdict, alone after the truth of the
        turns before), `marks` (the notes of the verdict, by kind), `rungs`, `filled` results, `classes` of its calls.
    """
    owners, records = stage.task.real.owners, list[JsonObject]()
    for task, each in zip(apart(stage.task), played, strict=False):
        verdict, steps = each.rehearsal["verdict"], each.chosen["steps"]
        right = is_right(task, [call for step in plan_of([each])[0] for call in step])
        records.append(
            {
                "status": verdict["status"],
                "valid": right,
                "marks": marks_of(verdict),
                "rungs": dict(Counter(step["outcome"]["rung"] for step in steps if "outcome" in step)),
                **({"filled": filled} if (filled := _count_filled(steps)) else {}),
                "classes": sorted({owners.get(step["call"]["name"], "unknown") for step in steps}),
            }
        )
    return records


def _count_filled(steps: Sequence[Step]) -> int:
    """Return how many contracts left their result, or a part of it, to another rung."""
    return sum("filled" in step.get("outcome", {}) for step in steps)


def marks_of(verdict: Mapping[str, Json]) -> JsonObject:
    return {kind: found for kind in KINDS if (found := notes_of(verdict, kind))}


def tables(records: Sequence[Record]) -> list[Table]:
    """Return the verdict's agreement with the official score: by category, verdict, mark, rung and class."""
    done = [record for record in records if record.done]
    turns = [turn for record in done for turn in record.values["by_turn"]]
    facts = {
        "turns": [(turn["status"] == "accepted", turn["valid"], {*turn["marks"]}) for turn in turns],
        "tasks": [(_is_accepted(record), _is_valid(record), _marks(record)) for record in done],
    }
    parts = [_by_verdict(facts), _by_mark(facts, done), _by_rung_and_class(turns, done)]
    return [_by_category(records), *(table for table in parts if table.rows)]


def _by_category(records: Sequence[Record]) -> Table:
    table = Table(
        "The verdict beside the official score",
        ["category", "officially valid", "verdict agrees", "valid where accepted", "so without a mark"],
        note=_NOTE,
    )
    for name, some in with_all(records):
        accepted = [record for record in some if record.done and _is_accepted(record)]
        table.add(
            name,
            rate(some, _is_valid),
            rate(some, lambda record: _is_accepted(record) == _is_valid(record)),
            rate(accepted, _is_valid),
            rate([record for record in accepted if not _marks(record)], _is_valid),
        )
    return table


def _is_valid(record: Record) -> bool:
    return bool(record.values["valid"])


def _is_accepted(record: Record) -> bool:
    return all(record.values["accepted"])


def _marks(record: Record) -> set[str]:
    return {kind for turn in record.values["by_turn"] for kind in turn["marks"]}


Facts = Mapping[str, Sequence[tuple[bool, bool, set[str]]]]
"""Whether each turn or task was accepted, whether it is right, and its marks."""


def _by_verdict(facts: Facts) -> Table:
    columns = [f"{name} {'with' if marked else 'without'} a mark" for name, marked in product(_UNITS, (True, False))]
    table = Table("Accepted and refused, right and wrong, with and without a mark", ["verdict, plan", *columns], _ALONE)
    for accepted, right in product((True, False), repeat=2):
        cells = [
            sum((one[0], one[1], bool(one[2])) == (accepted, right, marked) for one in facts[name])
            for name, marked in product(_UNITS, (True, False))
        ]
        table.add(f"{'accepted' if accepted else 'refused'}, {'right' if right else 'wrong'}", *cells)
    return table


def _by_mark(facts: Facts, done: Sequence[Record]) -> Table:
    columns = [f"{'right' if right else 'wrong'} {name}" for name, right in product(_UNITS, (True, False))]
    table, tools = Table("Right and wrong turns with a mark, by kind", ["mark", *columns], _ALONE), tools_of(done)
    groups = [[one[2] for one in facts[name] if one[1] == right] for name, right in product(_UNITS, (True, False))]
    kinds = sorted({kind for some in groups for marks in some for kind in marks})
    table.add("any", *(share(sum(map(bool, some)), len(some), tools=tools) for some in groups))
    for kind in kinds:
        table.add(kind, *(share(sum(kind in marks for marks in some), len(some), tools=tools) for some in groups))
    return table


def _by_rung_and_class(turns: Sequence[JsonObject], done: Sequence[Record]) -> Table:
    table = Table(
        "Turns: agreement by the rungs that answered, and by class",
        ["turns", "verdict agrees", "accepted, not valid", "valid, not accepted", "with a mark"],
        note=f"{_ALONE} A turn counts for each class that it calls.",
    )
    for name, some in _parts(turns):
        wrong = [turn for turn in some if (turn["status"] == "accepted") != turn["valid"]]
        agrees = share(len(some) - len(wrong), len(some), tools=tools_of(done), rungs=rungs_of(done))
        false = sum(turn["status"] == "accepted" for turn in wrong)
        table.add(name, agrees, false, len(wrong) - false, sum(bool(turn["marks"]) for turn in some))
    return table


def _parts(turns: Sequence[JsonObject]) -> Iterator[tuple[str, list[JsonObject]]]:
    """Yield turns by the rungs that answered, then by class, then all."""
    groups: dict[str, list[JsonObject]] = {}
    for turn in turns:
        rungs = " + ".join(sorted(turn["rungs"])) or "no call answered"
        for name in [f"1 rungs: {rungs}", *(f"2 class: {each}" for each in turn["classes"]), "3 all"]:
            groups.setdefault(name, []).append(turn)
    yield from ((name[2:], some) for name, some in sorted(groups.items()))


def is_right(task: Task, calls: Sequence[str]) -> bool:
    """Return whether a turn's calls alone are officially valid; if the truth has no calls, they must change nothing."""
    if task.turns[0].truth:
        return check(task, [[[call] for call in calls]]).valid
    with Replay(task) as real:
        _, instances = real.run(calls)
        return same_state(instances, task.real.instances(task.real.initial_state))
