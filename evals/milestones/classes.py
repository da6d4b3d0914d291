"""BFCL's multi-turn tasks as conversations: the truth, two models' recorded plans, and the truth with one change.

Whether a plan succeeds is decided on the real classes: the official comparison of the states at the end, and each
result of the truth's reads among the plan's results. The conversations run by contract, and know nothing of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cache
from random import Random
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from gecko_graph import GeckoContext, Toolkit, World
from gecko_graph.conversation.messages import address
from gecko_graph.state import Json, JsonObject

from ..bfcl.contracted import classes_toolkit
from ..bfcl.drawn import normal
from ..bfcl.official import Replay, check, same_state
from ..bfcl.tasks import Task, widened

Plan = Sequence[Sequence[JsonObject]]
"""Turns of calls, each `{"name", "args"}`, perhaps with the `result` that was recorded."""


class Judged(NamedTuple):
    """Whether a plan succeeds: by what it has come to at the end, and by the official checker turn by turn."""

    end: bool
    official: bool


FAILING: JsonObject = {"name": "no_such_tool", "args": {}}

LEAST_ID = 5
"""A drawn identifier has so many characters; times and prices that differ have fewer, or a blank."""


def write_call(call: JsonObject) -> str:
    """Return a call as Python would write it."""
    return f"{call['name']}({', '.join(f'{key}={value!r}' for key, value in call['args'].items())})"


def judge(task: Task, truth: Plan, plan: Plan) -> Judged:
    """Return whether a plan succeeds, on the real classes."""
    wanted, wanted_state = _run(task, truth)
    made, state = _run(task, plan)
    given = [text for turn in made for text in turn]
    for turn, calls in zip(wanted, truth, strict=True):
        for text, call in zip(turn, calls, strict=True):
            if not call["patch"] and text not in given:
                return Judged(False, _official(task, plan))
    same = same_state(_unordered(state), _unordered(wanted_state))
    return Judged(same, _official(task, plan))


def _unordered(instances: dict[str, Any]) -> dict[str, Any]:
    """Return copies of instances with their lists of plain values in order: in which they were filled means nothing."""
    made = {name: copy(instance) for name, instance in instances.items()}
    for each in made.values():
        for key, value in vars(each).items():
            if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
                setattr(each, key, sorted(value, key=str))
    return made


def _official(task: Task, plan: Plan) -> bool:
    return check(task, [[[write_call(call)] for call in turn] for turn in plan]).valid


def _run(task: Task, plan: Plan) -> tuple[list[list[str]], dict[str, Any]]:
    with Replay(task) as real:
        answers: list[list[str]] = []
        instances: dict[str, Any] = {}
        for turn in plan:
            texts, instances = real.run([write_call(call) for call in turn])
            answers.append(texts)
        return answers, instances


def converse(toolkit: Toolkit, start: JsonObject, texts: Sequence[str], plan: Plan) -> JsonObject:
    """Return the conversation of a plan: after each turn's calls the agent answers with their results."""
    toolkit = _widen(toolkit, [call for turn in plan for call in turn])
    world = World(toolkit, state=start, context=GeckoContext(semantic_validation=False))
    messages: list[AnyMessage] = []
    renamed: dict[str, Json] = {}
    for text, turn in zip(texts, plan, strict=False):
        messages.append(address(HumanMessage(text), "user", "agent", steps=len(world.log)))
        results = []
        for number, call in enumerate(turn):
            args = _rename(call["args"], renamed)
            id_ = f"{len(messages)}-{number}"
            asked = AIMessage("", tool_calls=[{"name": call["name"], "args": args, "id": id_}])
            messages.append(address(asked, "agent", "tools", steps=len(world.log)))
            step = world.call({"name": call["name"], "args": args, "id": id_})
            result = step["outcome"]["result"] if "outcome" in step else None
            results.append(result)
            renamed |= _pair(call.get("result"), result)
            answer = ToolMessage(json.dumps(result), tool_call_id=id_)
            messages.append(address(answer, "tools", "agent", steps=len(world.log)))
        said = "; ".join(json.dumps(result, ensure_ascii=False) for result in results) or "Nothing to do."
        messages.append(address(AIMessage(said), "agent", "user", steps=len(world.log)))
    return {"messages": messages, "world": world.snapshot(), "toolkit": toolkit}


def _widen(toolkit: Toolkit, calls: Sequence[JsonObject]) -> Toolkit:
    names = dict.fromkeys(call["name"] for call in calls if call["name"] in toolkit)
    wide = [widened(toolkit[name], [call["args"] for call in calls if call["name"] == name]) for name in names]
    for each in wide:
        toolkit = toolkit.replace(each)
    return toolkit


def _rename(args: Json, renamed: Mapping[str, Json]) -> Any:
    if isinstance(args, dict):
        return {key: _rename(value, renamed) for key, value in args.items()}
    return renamed.get(json.dumps(args), args) if not isinstance(args, list) else args


def _pair(old: Json, new: Json) -> dict[str, Json]:
    """Return new identifiers by recorded ones that stood in the same place."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return {}
    pairs = ((value, new[key]) for key, value in old.items() if key in new and value != new[key])
    return {
        json.dumps(one): other
        for one, other in pairs
        if type(one) in (int, str) and type(one) is type(other) and len(str(one)) >= LEAST_ID and " " not in str(one)
    }


@cache
def tools_of(classes: tuple[str, ...]) -> Toolkit:
    """Return the tools of some classes."""
    return classes_toolkit(classes)


def plan_of(row: Mapping[str, Any]) -> Plan:
    """Return the calls of a recorded task."""
    return [
        [{**step["call"], "result": step["result"], "patch": step["patch"]} for step in turn] for turn in row["turns"]
    ]


def start_of(row: Mapping[str, Any]) -> JsonObject:
    """Return the state at the start of a recorded task."""
    state: JsonObject = normal(row["initial_state"])
    return state


def mutate(plan: Plan, others: Sequence[JsonObject], seed: str, each: int) -> Iterator[tuple[str, Plan]]:
    """Yield plans with one change: kind and plan; `others` are writes of other tasks on the same tools."""
    chance, places = Random(seed), [(turn, at) for turn, calls in enumerate(plan) for at in range(len(calls))]
    for kind, make in KINDS.items():
        for _ in range(each):
            if places and (made := make(plan, chance.choice(places), others, chance)) is not None:
                yield kind, made


def _edit(plan: Plan, place: tuple[int, int], *calls: JsonObject) -> Plan:
    turn, at = place
    return [[*some[:at], *calls, *some[at + 1 :]] if number == turn else list(some) for number, some in enumerate(plan)]


def _find(plan: Plan, place: tuple[int, int]) -> JsonObject:
    call: JsonObject = plan[place[0]][place[1]]
    return call


def _drop(plan: Plan, place: tuple[int, int], others: Sequence[JsonObject], chance: Random) -> Plan | None:
    return _edit(plan, place)


def _alter(plan: Plan, place: tuple[int, int], others: Sequence[JsonObject], chance: Random) -> Plan | None:
    call = _find(plan, place)
    keys = [key for key, value in call["args"].items() if isinstance(value, str | int | float)]
    if not keys:
        return None
    key = chance.choice(keys)
    value = call["args"][key]
    same = [other["args"][key] for other in others if key in other["args"] and other["args"][key] != value]
    made = chance.choice(same) if same else _other_value(value)
    return _edit(plan, place, {**call, "args": {**call["args"], key: made}})


def _other_value(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int | float) else f"{value}x"


def _add(plan: Plan, place: tuple[int, int], others: Sequence[JsonObject], chance: Random) -> Plan | None:
    made = [other for other in others if other["patch"] and other["args"] != _find(plan, place)["args"]]
    return _edit(plan, place, _find(plan, place), _strip(chance.choice(made))) if made else None


def _swap(plan: Plan, place: tuple[int, int], others: Sequence[JsonObject], chance: Random) -> Plan | None:
    turn, at = place
    if at + 1 >= len(plan[turn]):
        return None
    return _edit(_edit(plan, (turn, at), plan[turn][at + 1]), (turn, at + 1), plan[turn][at])


def _repeat(plan: Plan, place: tuple[int, int], others: Sequence[JsonObject], chance: Random) -> Plan | None:
    return _edit(plan, place, _find(plan, place), _find(plan, place))


def _look(plan: Plan, place: tuple[int, int], others: Sequence[JsonObject], chance: Random) -> Plan | None:
    made = [other for other in others if not other["patch"]]
    return _edit(plan, place, _strip(chance.choice(made)), _find(plan, place)) if made else None


def _look_twice(plan: Plan, place: tuple[int, int], others: Sequence[JsonObject], chance: Random) -> Plan | None:
    return [[same for call in turn for same in ([call] if call["patch"] else [call, call])] for turn in plan]


def _fail_first(plan: Plan, place: tuple[int, int], others: Sequence[JsonObject], chance: Random) -> Plan | None:
    return [[*([FAILING] if number == 0 else []), *turn] for number, turn in enumerate(plan)]


def _strip(call: JsonObject) -> JsonObject:
    return {"name": call["name"], "args": call["args"]}


KINDS = {
    "a call left out": _drop,
    "another argument": _alter,
    "a call more": _add,
    "two calls swapped": _swap,
    "a call twice": _repeat,
    "a look more": _look,
    "each look twice": _look_twice,
    "a failing attempt before": _fail_first,
}
