"""Multi-turn ground truths as samples, right and spoilt in five ways; the real classes say what a spoiling changes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any, cast

from gecko_graph import GeckoError, Toolkit
from gecko_graph.conversation.derive import describe_milestones
from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.state import Json, JsonObject
from gecko_graph.training.checks import Checker, as_conversation, make, to_langchain
from gecko_graph.values.places import scalars

from ..bfcl.contracted import classes_toolkit
from ..bfcl.classes import RUNTIME
from ..bfcl.drawn import normal
from ..bfcl.tasks import Task, task_of
from ..harness.options import find, read_jsonl
from . import Given, Told

WAYS = ("another value", "left out", "swapped", "sibling", "made-up id")
ROWS = 2_000


@cache
def checker_of(classes: Sequence[str]) -> Checker:
    """Return what checks the rows of these classes."""
    return Checker(classes_toolkit(classes))


def toolkit_of(checker: Checker) -> Toolkit:
    """Return the tools that it answers with."""
    return cast("Toolkit", checker.toolkit)


def read_turns(given: Given) -> Iterator[tuple[JsonObject, Task, Checker, int]]:
    """Yield each turn with calls as a sample: its label are the turn's calls, `state` is the conversation's start."""
    tasks = {one["id"]: one for one in read_jsonl(find("bfcl_multiturn_tasks.jsonl.gz", given.data))}
    for row in read_jsonl(find("bfcl_multiturn_calls.jsonl.gz", given.data)):
        checker, messages = checker_of(tuple(row["classes"])), list[JsonObject]()
        tools, task = toolkit_of(checker).as_openai(), tasks[row["id"]]
        for number, (turn, said) in enumerate(zip(row["turns"], task["turns"], strict=True)):
            messages = [*messages, *said["user"]]
            calls = [{"name": one["call"]["name"], "arguments": one["call"]["args"]} for one in turn if one.get("call")]
            results = [
                one["result"] if not one["raised"] else {"error": one["raised"]} for one in turn if one.get("call")
            ]
            sample = {"v": 1, "id": f"{row['id']}:{number}", "tools": tools, "messages": messages, "label": calls}
            if calls:
                yield (
                    {**sample, "results": results, "state": normal(row["initial_state"]), "from": []},
                    task_of(task),
                    checker,
                    number,
                )
            for at, (call, result) in enumerate(zip(calls, results, strict=True)):
                id_, function = f"c{number}_{at}", {"name": call["name"], "arguments": json.dumps(call["arguments"])}
                made = {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"id": id_, "type": "function", "function": function}],
                }
                messages = [*messages, made, {"role": "tool", "content": json.dumps(result), "tool_call_id": id_}]


def add_goal(sample: JsonObject, checker: Checker) -> JsonObject:
    """Return a sample with the goal that follows from its label, where one does."""
    world = checker.world_at(sample)  # type: ignore[arg-type]
    if isinstance(world, str):
        return sample
    for call, result in zip(sample["label"], sample["results"], strict=True):
        world = make(world, call, [result]).world
    try:
        milestones = describe_milestones(world.toolkit, as_conversation(world, to_langchain(sample["messages"])))
    except GeckoError:
        return sample
    return {**sample, "goal": {"milestones": milestones}}


def spoil(sample: JsonObject, way: str, toolkit: Toolkit, dice: Random) -> JsonObject | None:
    """Return a sample spoilt in one way; None where it cannot be."""
    label, results = json.loads(json.dumps(sample["label"])), [*sample["results"]]
    at = dice.randrange(len(label))
    call = label[at]
    values = [
        (place, value)
        for place, value in scalars(call["arguments"])
        if place and place[-1] != "precision" and isinstance(value, str | int) and not isinstance(value, bool)
    ]
    if way in ("left out", "swapped"):
        if len(label) < 2:
            return None
        for some in (label, results):
            if way == "left out":
                some.pop(at)
            else:
                some[at - 1], some[at] = some[at], some[at - 1]
    elif way == "sibling":
        others = [
            tool for tool in toolkit if tool.name != call["name"] and not find_complaints(tool, call["arguments"])
        ]
        if not others:
            return None
        call["name"] = dice.choice(others).name
    elif not values:
        return None
    else:
        place, old = dice.choice(values)
        known = [
            each for _, each in scalars(sample["state"], keys=True) if type(each) is type(old) and each not in (old, "")
        ]
        new: Json = f"zq{dice.randrange(10**6)}" if isinstance(old, str) else dice.randrange(10**6, 10**7)
        if way == "another value":
            if not known:
                return None
            new = dice.choice(known)
        holder: Any = call["arguments"]
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = new
    same = label == sample["label"]
    return None if same else {**sample, "label": label, "results": results}


def play(
    task: Task, number: int, label: Sequence[Mapping[str, Any]], sample: JsonObject
) -> tuple[list[Json], JsonObject]:
    """Return what the real classes answer to a label after the messages' calls, and the state that they end in."""
    instances = task.real.load()
    past = [call["function"] for each in sample["messages"] for call in each.get("tool_calls", ())]
    for one in past:
        task.real.real(one["name"], instances)(**json.loads(one["arguments"]))
    results = [task.real.real(one["name"], instances)(**one["arguments"]) for one in label]
    end = task.real.read(instances)
    return results, {key: each for key, each in end.items() if key != RUNTIME}


def _expected(label: Sequence[Any], bad: Sequence[Any], results: Sequence[Json], way: str) -> list[Json]:
    """Return the results that a spoilt label's calls have where nothing is changed: those that they have in the right one."""
    if way in ("left out", "swapped"):
        known = list(zip(label, results, strict=True))
        return [known.pop(next(at for at, (call, _) in enumerate(known) if call == one))[1] for one in bad]
    return [*results]


def measure(given: Given) -> Iterator[Told]:
    """Yield what becomes of right labels, and of spoilt ones way by way."""
    right, goals, made, changed, found, missed = (
        Counter[str](),
        0,
        Counter[str](),
        Counter[str](),
        Counter[str](),
        list[str](),
    )
    turns = list(read_turns(given))
    for sample, task, checker, number in Random(0).sample(turns, min(len(turns), given.limit or len(turns))):
        whole, dice = add_goal(sample, checker), Random(sample["id"])
        goals += "goal" in whole
        verdict = checker.check(whole)  # type: ignore[arg-type]
        right[verdict["status"]] += 1
        if verdict["status"] == "drop":
            yield Told(
                f"right, and dropped: {sample['id']}: {verdict['reasons'][0]['path']} {verdict['reasons'][0]['message']}"
            )
        truth = play(task, number, sample["label"], sample)
        for way in dice.sample(WAYS, len(WAYS)):
            bad = spoil(whole, way, toolkit_of(checker), dice) if made.total() < (given.limit or ROWS) else None
            if bad is None:
                continue
            made[way] += 1
            results, end = play(task, number, bad["label"], sample)
            if end == truth[1] and results == _expected(sample["label"], bad["label"], truth[0], way):
                continue
            changed[way] += 1
            if checker.check(bad)["status"] == "drop":  # type: ignore[arg-type]
                found[way] += 1
            else:
                missed.append(f"{way}: {bad['id']}: {json.dumps(bad['label'])[:300]}")
    yield Told(f"right labels: {dict(right)}, {goals} with a goal")
    yield from (
        Told(
            f"{way}: {found[way]} of {changed[way]} that change outcome or end, of {made[way]}",
            found[way] == changed[way],
        )
        for way in WAYS
    )
    yield from (Told(f"missed: {each}") for each in missed[:20])
