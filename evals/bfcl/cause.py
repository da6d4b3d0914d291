"""The first difference that matters of one turn: of its plan from the truth, or of its rehearsal from the real classes.

The turn is a task of its own (`oracle.apart`): all calls are made where the truth of the turns before has led.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from gecko_graph.state import JsonObject, Operation, Step
from gecko_graph.values.difference import json_equal, make_patch

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
