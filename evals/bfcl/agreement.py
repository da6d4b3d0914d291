"""The verdict beside the official score: turn by turn, and where they differ, why.

The plan of a rehearsal is run on the real classes. A turn's official word is the checker's on the plan up to it, so
after the first turn that it calls invalid the later ones are not compared.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gecko_graph.state import Json, JsonObject, Step
from gecko_graph.task_state.patch import json_equal

from ..harness.figures import Figure, Table, rate, rungs_of, share, tools_of
from ..harness.suite import Record, by_group
from .calls import write_call
from .classes import RUNTIME
from .official import Replay, check
from .oracle import as_json, is_refusal
from .rehearse import Played, plan_of
from .simulated import Stage, laid_out

MADE_UP = "made-up value in the plan"
MISSING_REFUSAL = "missing refusal: the real tool refuses the call"
FALSE_REFUSAL = "false refusal: the real tool takes the call"
UNDOCUMENTED = "refused by the validator: the real tool takes the call"
WRONG_RESULT = "wrong result of the same call"
WRONG_STATE = "same results, another state"
STALE = "stale read: what was changed before is missing in its real result"
LEFT_OUT = "a call that fails counts officially, and the plan leaves it out"
JUDGE = "the verdict alone: the turn's results and its state are the real ones"

_NOTE = (
    "The plan of each rehearsal was run on the real classes and scored by the official checker. Agrees: accepted where "
    "officially valid, not accepted where not."
)


def by_turn(stage: Stage, played: Sequence[Played]) -> list[JsonObject]:
    """Return what a record keeps of each turn.

    Returns:
        For each turn `word`, `valid` (by the official checker, the turns before included), `made_up` (arguments of
        the plan, by tool), `unclear` (conditions that could not be evaluated), `rungs` and `classes` of its calls, and
        `cause`, where verdict and checker differ and all turns before were valid; else empty.
    """
    whole = plan_of(played)
    valid = [check(stage.task, whole[:number], turns=number).valid for number in range(1, len(played) + 1)]
    records = []
    for number, each in enumerate(played):
        counts = not number or valid[number - 1]
        differs = counts and each.accepted != valid[number]
        records.append(
            {
                **_of_turn(stage, each),
                "valid": valid[number],
                "cause": cause_of(stage, played[: number + 1]) if differs else "",
            }
        )
    return records


def _of_turn(stage: Stage, played: Played) -> JsonObject:
    verdict, steps = played.rehearsal["verdict"], played.chosen["steps"]
    answered = [step for step in steps if "outcome" in step]
    owners = stage.task.real.owners
    return {
        "word": verdict["word"],
        "made_up": [f"{each['tool']} {each['argument']}" for each in verdict.get("made_up", [])],
        "stale": len(verdict.get("stale", [])),
        "unclear": [text for step in answered for text in step["outcome"].get("unclear", [])],
        "rungs": dict(Counter(step["outcome"]["rung"] for step in answered)),
        "classes": sorted({owners.get(step["call"]["name"], "unknown") for step in steps}),
    }


def cause_of(stage: Stage, played: Sequence[Played]) -> str:
    """Return why the verdict on the last of these turns is not the official one."""
    *before, last = played
    if last.accepted and last.rehearsal["verdict"].get("made_up"):
        return MADE_UP
    with Replay(stage.task) as real:
        real.run([call for turn in plan_of(before) for step in turn for call in step])
        for step in last.chosen["steps"]:
            (answer,), _ = real.run([_written(step)])
            if found := difference(step, answer):
                return STALE if step.get("outcome", {}).get("stale") else found
        _, instances = real.run([])
        state = stage.task.real.read(instances)
    expected = state if stage.kind == "real" else laid_out(state)
    if _attributes(last.after) != _attributes(expected):
        return WRONG_STATE
    called = [[_written(step)] for step in last.chosen["steps"] if "outcome" in step]
    whole = [*plan_of(before), called]
    return LEFT_OUT if last.accepted and check(stage.task, whole, turns=len(whole)).valid else JUDGE


def _written(step: Step) -> str:
    name, args = step["call"]["name"], step["call"]["args"]
    return write_call(name, args) if isinstance(args, dict) else f"{name}({args!r})"


def difference(step: Step, answer: str) -> str:
    """Return how a call came out otherwise than the real class's answer to it; empty where it did not."""
    refuses = is_refusal(answer)
    if "outcome" not in step:
        return "" if refuses else UNDOCUMENTED
    outcome = step["outcome"]
    if outcome["status"] == "error":
        return "" if refuses else FALSE_REFUSAL
    if same_answer(outcome["result"], answer):
        return ""
    return MISSING_REFUSAL if refuses else WRONG_RESULT


def same_answer(result: Json, answer: str) -> bool:
    """Return True where a result matches the benchmark's text: an object as JSON, else as Python prints it."""
    return json_equal(as_json(answer), result) or (not isinstance(result, dict) and str(result) == answer)


def _attributes(state: Mapping[str, Any]) -> str:
    """Return the state without what the classes keep beside their attributes."""
    return json.dumps({key: value for key, value in state.items() if key != RUNTIME}, sort_keys=True)


def tables(records: Sequence[Record]) -> list[Figure]:
    """Return the verdict's agreement with the official score: by category, by rung and class, and the causes."""
    done = [record for record in records if record.done]
    return [_by_category(records), _by_rung_and_class(done), *_causes(done)]


def _by_category(records: Sequence[Record]) -> Table:
    table = Table(
        "The verdict beside the official score",
        ["category", "officially valid", "verdict agrees", "valid where accepted", "so without made-up values"],
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
    """Return True where the turn was accepted and nothing in the plan was made up."""
    return _is_accepted(record) and not any(turn["made_up"] for turn in record.values["by_turn"])


def _compared(records: Sequence[Record]) -> Iterator[tuple[str, JsonObject]]:
    """Yield the turns up to the first officially invalid one, each with its record's id."""
    for record in records:
        for number, turn in enumerate(record.values["by_turn"], 1):
            yield f"{record.id}, turn {number}", turn
            if not turn["valid"]:
                break


def _by_rung_and_class(done: Sequence[Record]) -> Table:
    table = Table(
        "Turns: agreement by the rungs that answered, and by class",
        ["turns", "verdict agrees", "accepted, not valid", "valid, not accepted", "with made-up values"],
        note="Turns up to a task's first officially invalid one. A turn counts for each class that it calls.",
    )
    groups: dict[str, list[JsonObject]] = {}
    for _, turn in _compared(done):
        rungs = " + ".join(sorted(turn["rungs"])) or "no call answered"
        for name in [f"1 rungs: {rungs}", *(f"2 class: {each}" for each in turn["classes"]), "3 all"]:
            groups.setdefault(name, []).append(turn)
    for name, turns in sorted(groups.items()):
        wrong = [turn for turn in turns if (turn["word"] == "accepted") != turn["valid"]]
        agrees = share(len(turns) - len(wrong), len(turns), tools=tools_of(done), rungs=rungs_of(done))
        false = sum(turn["word"] == "accepted" for turn in wrong)
        table.add(name[2:], agrees, false, len(wrong) - false, sum(bool(turn["made_up"]) for turn in turns))
    return table


def _causes(done: Sequence[Record]) -> Iterator[Table]:
    found: dict[tuple[str, str], list[str]] = {}
    for name, turn in _compared(done):
        if turn["cause"]:
            verdicts = "valid, not accepted" if turn["valid"] else "accepted, not valid"
            found.setdefault((verdicts, turn["cause"]), []).append(name)
    if found:
        table = Table("Where they differ, by cause", ["turn", "cause", "turns", "such as"])
        for (verdicts, cause), names in sorted(found.items(), key=lambda each: (each[0][0], -len(each[1]))):
            table.add(verdicts, cause, len(names), names[0])
        yield table
