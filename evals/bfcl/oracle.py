"""The ground truth: rule checks of its end state, and corrupted calls; not part of the method's accuracy.

The checks compare the whole task state with the state after the ground truth: a part that the truth does not change
with the state before, a changed part with its value. Like the official checker, they look for the truth's answers among
all answers so far.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, MessageLikeRepresentation, ToolMessage

from gecko_graph import Toolkit
from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.state import ChecklistItem, Json, JsonObject
from gecko_graph.values.difference import json_equal

from .classes import RUNTIME
from .drawn import drawn_values
from .official import Replay
from .tasks import Task

Place = tuple[str | int, ...]
Drawn = frozenset[str]

ABSENT = object()

NOTHING: ChecklistItem = {
    "id": "nothing",
    "description": "the official checker asks nothing of this turn",
    "check": "True",
}
"""The checklist item of a turn with an empty ground truth."""

_MOST_PARTS = 40
_PIECE = 2_000
_SOURCE = 6_000
_MOST_VALUES = 300


@dataclass(frozen=True, slots=True)
class Truth:
    """The ground truth's results: states and answers by turn, the values drawn at random, the answers of the past."""

    states: Sequence[JsonObject]
    answers: Sequence[Sequence[Json]]
    drawn: frozenset[str] = frozenset()
    past: Sequence[Json] = ()


def truth_of(task: Task) -> Truth:
    states, answers, drawn = [task.real.initial_state], [], set()
    with Replay(task) as real:
        for turn in task.turns:
            replies, instances = real.run(turn.truth)
            states.append(task.real.read(instances))
            answers.append([as_json(each) for each in replies])
            for call, answer in zip(turn.truth, answers[-1], strict=True):
                places = drawn_values(task.read(call)["call"], answer, states[-1], states[-2])
                drawn |= {json.dumps(value) for values in places.values() for value in values}
        past = [as_json(each) for each in real.past]
    return Truth(states[1:], answers, frozenset(drawn), past)


def apart(task: Task) -> list[Task]:
    """Return each turn as a separate task, with the state and conversation after the truth of the turns before."""
    truth = truth_of(task)
    states, tools = [task.real.initial_state, *truth.states], [*task.tools]
    said: list[MessageLikeRepresentation] = []
    past: list[str] = []
    found = []
    for number, turn in enumerate(task.turns):
        tools += turn.arriving
        alone = replace(turn, arriving=(), before=(*said,))
        found.append(replace(task, tools=(*tools,), turns=(alone,), past=(*past,), start=states[number]))
        said += [*turn.said, *_told(task, number, truth.answers[number])]
        past += turn.truth
    return found


def _told(task: Task, number: int, answers: Sequence[Json]) -> Iterator[AnyMessage]:
    calls = map(task.read, task.turns[number].truth)
    for place, (call, answer) in enumerate(zip(calls, answers, strict=True)):
        made = {"name": call["call"], "args": call["args"], "id": f"truth_{number}_{place}", "type": "tool_call"}
        text = answer if isinstance(answer, str) else json.dumps(answer)
        status = "error" if is_refusal(answer) else "success"
        yield AIMessage("", tool_calls=[made])
        yield ToolMessage(text, name=call["call"], tool_call_id=made["id"], status=status)
    yield AIMessage("Done." if answers else "Something is missing: I can not do this yet.")


def public(state: Mapping[str, Any]) -> JsonObject:
    """Return the public attributes of a task state, which the official checker compares; no current folder."""
    return {
        name: {key: value for key, value in part.items() if key != "cwd"}
        for name, part in state.items()
        if name != RUNTIME
    }


def as_json(answer: str) -> Json:
    """Return an official answer, which is text, as the `python` rung gives it."""
    if answer.startswith("{"):
        try:
            return json.loads(answer)
        except ValueError:
            return answer
    return answer


def is_refusal(answer: Json) -> bool:
    """Return whether an answer, as text or parsed, is one of the benchmark's errors."""
    made = as_json(answer) if isinstance(answer, str) else answer
    return str(answer).startswith("Error during execution") or (isinstance(made, dict) and "error" in made)


def checklist(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    answers: Sequence[Json],
    *,
    seen: Sequence[Json],
    drawn: Drawn = frozenset(),
) -> list[ChecklistItem]:
    """Return the checks of one turn, from the states before and after it and the answers of the truth's calls.

    Parts that `after` lacks are not checked; answers that were `seen` in the turns before need not be repeated; `drawn`
    values, as JSON, may differ.
    """
    items: list[ChecklistItem] = []
    for name, part in after.items():
        checks = list(_of_part(name, before.get(name, ABSENT), part, drawn))
        for number, check in enumerate(bundles(checks), 1):
            description = f"{name} is in the state that the task asks for ({number})"
            items.append({"id": f"{name}-{number}", "description": description, "check": check})
    for number, check in enumerate(answered(answers, seen, drawn), 1):
        items.append({"id": f"answer-{number}", "description": "the task's information was looked up", "check": check})
    return items


def _of_part(name: str, before: Any, after: Json, drawn: Drawn) -> Iterator[str]:
    for key, value in after.items():  # key by key: the current folder may be missing and private parts may be added
        yield from compare((name, key), before.get(key, ABSENT) if before is not ABSENT else ABSENT, value, drawn)


def compare(place: Place, before: Json, after: Json, drawn: Drawn = frozenset()) -> Iterator[str]:
    """Yield checks that hold exactly if `state` has the value `after` at a place."""
    here = f"state{path(place)}"
    if json.dumps(after) in drawn:
        yield f"defined({here})"
    elif before is not ABSENT and json_equal(before, after):
        yield f"{here} == before{path(place)}"
    elif isinstance(after, dict | list) and (
        type(before) is type(after) or _is_large(after) or any(one in json.dumps(after) for one in drawn)
    ):
        yield from _inside(place, before, after, drawn)
    elif isinstance(after, str) and len(after) > _PIECE:
        yield f"isinstance({here}, str) and len({here}) == {len(after)}"
        for start in range(0, len(after), _PIECE):
            yield f"{here}[{start}:{start + _PIECE}] == {after[start : start + _PIECE]!r}"
    else:
        yield f"{here} == {after!r}"


def _is_large(value: Json) -> bool:
    return parts(value) > _MOST_PARTS or len(repr(value)) > _SOURCE


def _inside(place: Place, before: Any, after: Any, drawn: Drawn) -> Iterator[str]:
    here = f"state{path(place)}"
    yield f"isinstance({here}, {'dict' if isinstance(after, dict) else 'list'})"
    yield f"len({here}) == {len(after)}"
    known = dict(_entries(before)) if type(before) is type(after) else {}
    for key, value in _entries(after):
        if json.dumps(key) not in drawn:
            yield from compare((*place, key), known.get(key, ABSENT), value, drawn)


def _entries(value: Any) -> Iterator[tuple[str | int, Json]]:
    yield from value.items() if isinstance(value, dict) else enumerate(value)


def answered(answers: Sequence[Json], seen: Sequence[Json], drawn: Drawn = frozenset()) -> Iterator[str]:
    """Yield checks that each answer was received, as often as the truth receives it."""
    if answers:
        yield "len(calls) > 0"
    distinct: list[Json] = []
    for answer in answers:
        if any(json_equal(answer, each) for each in distinct):
            continue
        distinct.append(answer)
        wanted = sum(json_equal(answer, each) for each in answers) - sum(json_equal(answer, each) for each in seen)
        if wanted > 0:
            yield from (f"len({each}) >= {wanted}" for each in _got(answer, drawn))


def _got(answer: Json, drawn: Drawn) -> Iterator[str]:
    """Yield expressions for the calls with an answer.

    An answer that is too long for an expression, or contains drawn values, is searched in pieces of its text.
    """
    text = json.dumps(answer, ensure_ascii=False)
    held = sorted((one for one in drawn if one in text), key=len, reverse=True)
    if not held and len(repr(answer)) <= _SOURCE and parts(answer) <= _MOST_VALUES:
        yield f"[c for c in calls if c.result == {answer!r}]"
        return
    for piece in re.split("|".join(map(re.escape, held)), text) if held else [text]:
        for start in range(0, len(piece), _PIECE):
            some = repr(piece[start : start + _PIECE])
            yield f"[c for c in calls if {some} in json(c.result)]"


def bundles(checks: Sequence[str]) -> Iterator[str]:
    """Yield the checks joined with `and`, as many as fit into one expression."""
    bundle: list[str] = []
    for check in checks:
        if bundle and (len(bundle) >= 10 or sum(map(len, bundle)) + len(check) > _SOURCE):
            yield " and ".join(f"({each})" for each in bundle)
            bundle = []
        bundle.append(check)
    if bundle:
        yield " and ".join(f"({each})" for each in bundle)


def parts(value: Json) -> int:
    """Return how many values a value contains, itself included."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(parts, inner))


def path(place: Place) -> str:
    """Return a place as subscripts in the language of checks."""
    return "".join(f"[{token!r}]" for token in place)


# corrupted calls of the ground truth: mistakes that an attempt may make, and harmless differences

Calls = list[JsonObject]
"""Calls in the form of recorded planner replies: `{"call", "args"}`."""


class Scene(NamedTuple):
    """The tools of a turn, and the task state at its start."""

    tools: Toolkit
    state: Mapping[str, Any]


Spoil = Callable[[Calls, Random, Scene], Calls | None]
"""Returns changed calls of a turn; None if the change is impossible."""


def _at_one(make: Callable[[JsonObject], Calls]) -> Spoil:
    def spoil(calls: Calls, dice: Random, scene: Scene) -> Calls:
        at = dice.randrange(len(calls))
        return [*calls[:at], *make(calls[at]), *calls[at + 1 :]]

    return spoil


def _disordered(calls: Calls, dice: Random, scene: Scene) -> Calls | None:
    pairs = [(i, j) for i in range(len(calls)) for j in range(i) if calls[i] != calls[j]]
    if not pairs:
        return None
    first, second = dice.choice(pairs)
    made = list(calls)
    made[first], made[second] = made[second], made[first]
    return made


def _extra_read(calls: Calls, dice: Random, scene: Scene) -> Calls | None:
    """Put an unneeded read first: a tool without required arguments that, when tried, does not change the state."""
    reads = []
    for tool in scene.tools:
        if tool.parameters.get("required") or tool.simulate is None:
            continue
        after = copy.deepcopy(dict(scene.state))
        answer = tool.simulate(after)
        if json_equal(after, dict(scene.state)) and "rror" not in str(answer):
            reads.append(tool.name)
    return [{"call": dice.choice(reads), "args": {}}, *calls] if reads else None


def _changed(change: Callable[[Any, Mapping[str, Any]], Any], *, fits: bool) -> Spoil:
    """Return a change of one argument after which the call fits its schema (`fits`) or breaks it."""

    def spoil(calls: Calls, dice: Random, scene: Scene) -> Calls | None:
        places = [(number, key) for number, call in enumerate(calls) for key in call["args"]]
        dice.shuffle(places)
        for number, key in places:
            call = calls[number]
            tool = scene.tools[call["call"]]
            value = change(call["args"][key], tool.parameters.get("properties", {}).get(key, {}))
            made = {**call, "args": {**call["args"], key: value}}
            if value != call["args"][key] and (not find_complaints(tool, made["args"])) == fits:
                return [*calls[:number], made, *calls[number + 1 :]]
        return None

    return spoil


def _other(value: Any, rule: Mapping[str, Any]) -> Any:
    """Return another value of the same type; for an enum one of its values."""
    if rule.get("enum"):
        return next((each for each in rule["enum"] if each != value), value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return f"{value}_2"
    return [*value, *value[:1]] if isinstance(value, list) else value


def _mistyped(value: Any, rule: Mapping[str, Any]) -> Any:
    return 7 if isinstance(value, str) else [value] if isinstance(value, list | dict) else str(value)


KINDS: Mapping[str, Spoil] = {
    "dropped": _at_one(lambda call: []),
    "doubled": _at_one(lambda call: [call, call]),
    "wrong order": _disordered,
    "wrong value": _changed(_other, fits=True),
    "wrong type": _changed(_mistyped, fits=False),
    "unknown tool": _at_one(lambda call: [{**call, "call": f"{call['call']}_all"}]),
    "whole": lambda calls, dice, scene: list(calls),
    "extra read": _extra_read,
}


def spoil(calls: Calls, *, scene: Scene, first: int, seed: str) -> tuple[str, Calls]:
    """Corrupt a turn's calls in the first possible way, starting with kind number `first`."""
    kinds = list(KINDS.items())
    for step in range(len(kinds)):
        name, change = kinds[(first + step) % len(kinds)]
        made = change(copy.deepcopy(calls), Random(f"{seed}:{name}"), scene)
        if made is not None:
            return name, made
    raise AssertionError("leaving calls unchanged is always possible")


class SpoiltTurn(NamedTuple):
    """A turn's calls, corrupted and right; a turn without calls has no kind."""

    kind: str
    spoilt: Calls
    right: Calls


def spoilt_turns(task: Task, truth: Truth, *, first: int, seed: int) -> list[SpoiltTurn]:
    """Corrupt the ground truth of each turn, with the next kind for each next turn."""
    turns = []
    for number, turn in enumerate(task.turns):
        right, kind = [task.read(call) for call in turn.truth], ""
        wrong = right
        if right:
            scene = Scene(task.truthful(number), truth.states[number - 1] if number else task.real.initial_state)
            kind, wrong = spoil(right, scene=scene, first=first + number, seed=f"{seed}:{task.id}:{number}")
        turns.append(SpoiltTurn(kind, wrong, right))
    return turns
