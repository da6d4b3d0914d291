"""The first difference that matters of one turn: of its plan from the truth, or of its rehearsal from the real classes.

The turn is a task of its own (`oracle.apart`): all calls are made where the truth of the turns before has led.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple, TypeAlias

from gecko_graph.state import Json, JsonObject, Operation, Step
from gecko_graph.values.patch import json_equal, make_patch

from .calls import write_call
from .classes import RUNTIME
from .official import Replay, check, same_state
from .oracle import as_json, is_refusal, public
from .rehearse import Played
from .simulated import laid_out
from .tasks import Task

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
STALE = "stale read: what was changed before is missing in its real result"
WRONG_STATE = "same results, another state"
JUDGE = "the verdict alone: the turn's results and its state are the real ones"


_Layout: TypeAlias = Callable[[Mapping[str, Any]], JsonObject]


class Cause(NamedTuple):
    """What differs first, and at which call."""

    what: str = ""
    call: str = ""


class Made(NamedTuple):
    """A call on the real classes: how it is written, what it answers, and the state before and after."""

    text: str
    call: JsonObject
    answer: str
    before: JsonObject
    after: JsonObject

    def effect(self, seen: _Layout) -> Sequence[Operation]:
        """Return what of a part of the state it changes."""
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
    if right:
        return Cause() if played.accepted else _of_rehearsal(task, played, is_real=is_real)
    steps = played.chosen["steps"]
    taken = [step for step in steps if step.get("outcome", {}).get("status") == "ok"]
    truth, made = [*replay(task, task.turns[0].truth)], [*replay(task, [*map(written, taken)])]
    refused = [each.call for each in truth if is_refusal(each.answer)]
    for step, each in zip(taken, made, strict=True):
        if difference(step, each.answer) == MISSING_REFUSAL and each.call not in refused:
            return Cause(MISSING_REFUSAL, each.text)
    if len(taken) < len(steps) and is_right(task, [*map(written, steps)]):
        step, each = next(pair for pair in _in_reality(task, steps) if pair[0] not in taken)
        return Cause(difference(step, each.answer) or LEFT_OUT, each.text)
    state = task.real.initial_state
    ends = [public(some[-1].after if some else state) for some in (truth, made)]
    for seen in (public, _attributes) if ends[0] != ends[1] else ():  # _attributes: the current folder as well
        if cause := _of_writes(truth, made, seen):
            return cause
    got = [as_json(each.answer) for each in made]
    lacking = (each for each in truth if not any(json_equal(as_json(each.answer), one) for one in got))
    return next((Cause(MISSING_RESULT, each.text) for each in lacking), Cause(ORDER))


def _of_writes(truth: Sequence[Made], made: Sequence[Made], seen: _Layout) -> Cause | None:
    (wanted, idle), (found, vain) = _parted(truth, seen), _parted(made, seen)
    tools, others = (Counter(each.call["call"] for each in some) for some in (wanted, found))
    for some, more, beside, what in (
        (wanted, tools - others, vain, MISSING_WRITE),
        (found, others - tools, idle, EXTRA_WRITE),
    ):
        if more:
            each = next(each for each in some if each.call["call"] in more)
            same = [one for one in beside if one.call["call"] == each.call["call"] and one.call != each.call]
            if same:  # both make it, and with the arguments of one it changes nothing
                return Cause(WRITE_ARGUMENTS, (same[0] if what == MISSING_WRITE else each).text)
            return Cause(what, each.text)
    waiting = [*wanted]
    for each in found:
        right = waiting.pop([one.call["call"] for one in waiting].index(each.call["call"]))
        if right.call != each.call and right.effect(seen) != each.effect(seen):
            return Cause(WRITE_ARGUMENTS, each.text)
    return None


def _parted(calls: Sequence[Made], seen: _Layout) -> tuple[list[Made], list[Made]]:
    """Return the calls that change something, and those that do not."""
    changing = [bool(each.effect(seen)) for each in calls]
    return [*compress(calls, changing)], [each for each, does in zip(calls, changing, strict=True) if not does]


def _of_rehearsal(task: Task, played: Played, *, is_real: bool) -> Cause:
    """Return how a refused right turn came out otherwise than in reality."""
    pairs = [*_in_reality(task, played.chosen["steps"])]
    found = [(difference(step, each.answer), step, each) for step, each in pairs]
    for what, step, each in sorted(found, key=lambda one: one[0] == WRONG_RESULT):
        if what:
            stale = step.get("outcome", {}).get("stale") and what == WRONG_RESULT
            return Cause(STALE if stale else what, each.text)
    state = pairs[-1][1].after if pairs else task.real.initial_state
    same = json_equal(_attributes(played.after), _attributes(state if is_real else laid_out(state)))
    return Cause(JUDGE if same else WRONG_STATE)


def replay(task: Task, calls: Sequence[str]) -> Iterator[Made]:
    """Yield calls as the real classes answer them, one after the other."""
    with Replay(task) as real:
        _, instances = real.run([])
        after = task.real.read(instances)
        for text in calls:
            (answer,), instances = real.run([text])
            before, after = after, task.real.read(instances)
            yield Made(text, task.read(text), answer, before, after)


def _in_reality(task: Task, steps: Sequence[Step]) -> Iterator[tuple[Step, Made]]:
    return zip(steps, replay(task, [*map(written, steps)]), strict=True)


def written(step: Step) -> str:
    """Return a step's call in the official format; its arguments may be no object at all."""
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
    return MISSING_REFUSAL if refuses and not is_refusal(outcome["result"]) else WRONG_RESULT


def same_answer(result: Json, answer: str) -> bool:
    """Return True where a result matches the benchmark's text: an object as JSON, else as Python prints it."""
    return json_equal(as_json(answer), result) or (not isinstance(result, dict) and str(result) == answer)


def _attributes(state: Mapping[str, Any]) -> JsonObject:
    """Return the state without what the classes keep beside their attributes."""
    return {key: value for key, value in state.items() if key != RUNTIME}
