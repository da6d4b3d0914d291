"""The verdict beside the official score: turn by turn, each judged alone on the truth of the turns before, and why.

The plan of a rehearsal is run on the real classes. A turn's official word is the checker's on its plan where the truth
has led, whatever came of the turns before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias

from gecko_graph.state import Json, JsonObject, Operation, Step
from gecko_graph.values.difference import json_equal, make_patch
from gecko_graph.values.notes import KINDS, notes_of

from ..harness.figures import Record, Table, rate, rungs_of, share, tools_of
from ..harness.suite import by_group
from .classes import RUNTIME
from .official import Replay, check, same_state
from .oracle import apart, as_json, is_refusal, public
from .rehearse import Played, plan_of
from .simulated import Stage, laid_out
from .tasks import Task, write_call

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
        For each turn the verdict's `status`, `valid` (by the official checker, alone on the truth of the turns before),
        `marks` (the notes of the verdict, by kind), `rungs`, `filled` results, `classes` of its calls,
        `cause` (the first difference that matters, where the plan is wrong or a right one was not accepted) and `call`
        (where).
    """
    owners, records = stage.task.real.owners, list[JsonObject]()
    for task, each in zip(apart(stage.task), played, strict=False):
        verdict, steps = each.rehearsal["verdict"], each.chosen["steps"]
        right = is_right(task, [call for step in plan_of([each])[0] for call in step])
        cause = cause_of(task, each, right=right, is_real=stage.kind == "real")
        records.append(
            {
                "status": verdict["status"],
                "valid": right,
                "marks": marks_of(verdict),
                "rungs": dict(Counter(step["outcome"]["rung"] for step in steps if "outcome" in step)),
                **({"filled": filled} if (filled := _count_filled(steps)) else {}),
                "classes": sorted({owners.get(step["call"]["name"], "unknown") for step in steps}),
                "cause": cause.what,
                "call": cause.call,
            }
        )
    return records


def _count_filled(steps: Sequence[Step]) -> int:
    """Return how many contracts left their result, or a part of it, to another rung."""
    return sum("filled" in step.get("outcome", {}) for step in steps)


def marks_of(verdict: Mapping[str, Json]) -> JsonObject:
    """Return the notes of a verdict, by kind."""
    return {kind: found for kind in KINDS if (found := notes_of(verdict, kind))}


def tables(records: Sequence[Record]) -> list[Table]:
    """Return the verdict's agreement with the official score: by category, verdict, mark, rung and class; causes."""
    done = [record for record in records if record.done]
    turns = [turn for record in done for turn in record.values["by_turn"]]
    facts = {
        "turns": [(turn["status"] == "accepted", turn["valid"], {*turn["marks"]}) for turn in turns],
        "tasks": [(_is_accepted(record), _is_valid(record), _marks(record)) for record in done],
    }
    parts = [_by_verdict(facts), _by_mark(facts, done), _by_rung_and_class(turns, done), _by_cause(done)]
    return [_by_category(records), *(table for table in parts if table.rows)]


def _by_category(records: Sequence[Record]) -> Table:
    table = Table(
        "The verdict beside the official score",
        ["category", "officially valid", "verdict agrees", "valid where accepted", "so without a mark"],
        note=_NOTE,
    )
    groups = by_group(records)
    for name, some in [*groups.items(), *([("all", records)] if len(groups) > 1 else [])]:
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
"""Whether each turn, and each task, was accepted and is right, and the marks that it bears."""


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


def _by_cause(done: Sequence[Record]) -> Table:
    found: dict[tuple[str, str], list[str]] = {}
    for record in done:
        for number, turn in enumerate(record.values["by_turn"], 1):
            if turn["cause"]:
                verdict = "accepted" if turn["status"] == "accepted" else "refused"
                plan = "right" if turn["valid"] else "wrong"
                place = f"{record.id}, turn {number}: {turn['call'][:_MOST_CALL]}"
                found.setdefault((f"{verdict}, {plan}", turn["cause"]), []).append(place)
    table = Table("The first difference that matters", ["verdict, plan", "difference", "turns", "such as"], _ALONE)
    for (verdict, cause), places in sorted(found.items(), key=lambda each: (each[0][0], -len(each[1]))):
        table.add(verdict, cause, len(places), places[0])
    return table


# the first difference that matters: of a plan from the truth, or of a rehearsal from the real classes; the turn is a
# task of its own (`oracle.apart`), so all calls are made where the truth of the turns before has led

MISSING_REFUSAL = "missing refusal: the real tool refuses the call"
FALSE_REFUSAL = "false refusal: the real tool takes the call"
UNDOCUMENTED = "refused by the validator: the real tool takes the call"
LEFT_OUT = "a call that fails counts officially, and the plan leaves it out"
MISSING_WRITE = "missing write: the truth makes it"
EXTRA_WRITE = "extra write: the truth does not make it"
WRITE_ARGUMENTS = "arguments of a write are not the truth's"
MISSING_RESULT = "a result that the truth gets is missing"
ORDER = "the truth's writes and results, another end state"
WRONG_RESULT = "wrong result of the same call"
WRONG_STATE = "same results, another state"
JUDGE = "the verdict alone: the turn's results and its state are the real ones"


_Seen: TypeAlias = Callable[[Mapping[str, Any]], JsonObject]
"""From a state to the part that is compared."""


class Cause(NamedTuple):
    """What differs first, and at which call."""

    what: str = ""
    call: str = ""


class Made(NamedTuple):
    """A call on the real classes: how it is written, its parts, what it answers, the state before and after."""

    text: str
    tool: str
    args: JsonObject
    answer: str
    before: JsonObject
    after: JsonObject

    def effect(self, seen: _Seen) -> Sequence[Operation]:
        """Return what it changes of a part of the state."""
        return make_patch(seen(self.before), seen(self.after))


def is_right(task: Task, calls: Sequence[str]) -> bool:
    """Return whether a turn's calls alone are officially valid; where the truth has none, they must change nothing."""
    if task.turns[0].truth:
        return check(task, [[[call] for call in calls]]).valid
    with Replay(task) as real:
        _, instances = real.run(calls)
        return same_state(instances, task.real.instances(task.real.initial_state))


def cause_of(task: Task, played: Played, *, right: bool, is_real: bool) -> Cause:
    """Return what differs first: refusals before writes, writes before their arguments, these before results.

    Of a wrong plan, from the truth; of a right one that was refused, from what the same calls do in reality.

    Args:
        task: The turn, as a task of its own.
        played: What became of it.
        right: Whether its plan is right.
        is_real: Whether the real classes answered it.
    """
    if not right:
        return _of_plan(task, played.chosen["steps"])
    return Cause() if played.accepted else _of_rehearsal(task, played, is_real=is_real)


def _of_plan(task: Task, steps: Sequence[Step]) -> Cause:
    """Return how a wrong plan differs from the truth."""
    taken = [step for step in steps if step.get("outcome", {}).get("status") == "ok"]
    truth, made = _replay(task, task.turns[0].truth), _replay(task, [*map(_written, taken)])
    refused = [(each.tool, each.args) for each in truth if is_refusal(each.answer)]
    for step, each in zip(taken, made, strict=True):
        if difference(step, each.answer) == MISSING_REFUSAL and (each.tool, each.args) not in refused:
            return Cause(MISSING_REFUSAL, each.text)
    texts = [*map(_written, steps)]
    if len(taken) < len(steps) and is_right(task, texts):
        step, each = next(pair for pair in zip(steps, _replay(task, texts), strict=True) if pair[0] not in taken)
        return Cause(difference(step, each.answer) or LEFT_OUT, each.text)
    start = task.real.initial_state
    if not json_equal(*(public(some[-1].after if some else start) for some in (truth, made))):
        for seen in (public, _attributes):  # the attributes: the current folder as well
            if cause := _of_writes(truth, made, seen):
                return cause
    got = [as_json(each.answer) for each in made]
    lacking = (each for each in truth if not any(json_equal(as_json(each.answer), one) for one in got))
    return next((Cause(MISSING_RESULT, each.text) for each in lacking), Cause(ORDER))


def _of_writes(truth: Sequence[Made], made: Sequence[Made], seen: _Seen) -> Cause | None:
    """Return the first difference of the calls of tools that change this part of the state, here or there."""
    writing = {each.tool for each in (*truth, *made) if each.effect(seen)}
    wanted, found = ([each for each in some if each.tool in writing] for some in (truth, made))
    for some, others, what in ((wanted, found, MISSING_WRITE), (found, wanted, EXTRA_WRITE)):
        more = Counter(each.tool for each in some) - Counter(each.tool for each in others)
        for each in some:
            if each.tool in more and each.effect(seen):
                return Cause(what, each.text)
    for each in found:
        right = next((one for one in wanted if one.tool == each.tool), None)
        if right is not None:
            wanted.remove(right)
            if right.args != each.args and right.effect(seen) != each.effect(seen):
                return Cause(WRITE_ARGUMENTS, each.text)
    return None


def _of_rehearsal(task: Task, played: Played, *, is_real: bool) -> Cause:
    """Return how a refused right turn came out otherwise than in reality: wrong results after all else."""
    steps = played.chosen["steps"]
    made = _replay(task, [*map(_written, steps)])
    found = [Cause(difference(step, each.answer), each.text) for step, each in zip(steps, made, strict=True)]
    for cause in sorted(found, key=lambda one: one.what == WRONG_RESULT):
        if cause.what:
            return cause
    state = made[-1].after if made else task.real.initial_state
    same = json_equal(_attributes(played.after), _attributes(state if is_real else laid_out(state)))
    return Cause(JUDGE if same else WRONG_STATE)


def difference(step: Step, answer: str) -> str:
    """Return how a call came out otherwise than the real class's answer to it; empty where it did not."""
    refuses = is_refusal(answer)
    if "outcome" not in step:
        return "" if refuses else UNDOCUMENTED
    outcome = step["outcome"]
    if outcome["status"] == "error":
        return "" if refuses else FALSE_REFUSAL
    result = outcome["result"]
    if json_equal(as_json(answer), result) or (not isinstance(result, dict) and str(result) == answer):
        return ""
    return MISSING_REFUSAL if refuses and not is_refusal(result) else WRONG_RESULT


def _replay(task: Task, calls: Sequence[str]) -> list[Made]:
    """Return calls as the real classes answer them, one after the other."""
    made = []
    with Replay(task) as real:
        _, instances = real.run([])
        after = task.real.read(instances)
        for text in calls:
            (answer,), instances = real.run([text])
            before, after = after, task.real.read(instances)
            call = task.read(text)
            made.append(Made(text, call["call"], call["args"], answer, before, after))
    return made


def _written(step: Step) -> str:
    """Return a step's call in the official format; its arguments may be no object at all."""
    name, args = step["call"]["name"], step["call"]["args"]
    return write_call(name, args) if isinstance(args, dict) else f"{name}({args!r})"


def _attributes(state: Mapping[str, Any]) -> JsonObject:
    """Return the state without what the classes keep beside their attributes."""
    return {key: value for key, value in state.items() if key != RUNTIME}
