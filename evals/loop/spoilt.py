"""Multi-turn ground truths as samples, right and corrupted in five ways, checked on the real classes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any, cast

from gecko_graph import GeckoError, Toolkit
from gecko_graph.conversation.derive import describe_milestones
from gecko_graph.conversation.milestones.tables import find_table
from gecko_graph.conversation.played import as_conversation
from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.state import Json, JsonObject
from gecko_graph.training.checks import Checker, make, to_langchain
from gecko_graph.values.places import scalars

from ..bfcl.classes import RUNTIME
from ..bfcl.contracted import classes_toolkit
from ..bfcl.drawn import normal
from ..bfcl.tasks import Task, task_of
from ..harness.options import find, read_jsonl
from . import Given, Told

WAYS = ("another value", "left out", "swapped", "sibling", "made-up id")
ROWS = 2_000


@cache
def checker_of(classes: Sequence[str]) -> Checker:
    """Return the checker for rows of these classes."""
    return Checker(classes_toolkit(classes))


def toolkit_of(checker: Checker) -> Toolkit:
    """Return the checker's tools."""
    return cast("Toolkit", checker.toolkit)


def read_turns(given: Given) -> Iterator[tuple[JsonObject, Task, Checker]]:
    """Yield each turn with calls as a sample; the label is the turn's calls, `state` the start of the conversation."""
    tasks = {one["id"]: one for one in read_jsonl(find("bfcl_multiturn_tasks.jsonl.gz", given.data))}
    for row in read_jsonl(find("bfcl_multiturn_calls.jsonl.gz", given.data)):
        checker, messages, task = checker_of(tuple(row["classes"])), list[JsonObject](), tasks[row["id"]]
        about = {"v": 1, "tools": toolkit_of(checker).as_openai(), "state": normal(row["initial_state"]), "from": []}
        for number, (turn, said) in enumerate(zip(row["turns"], task["turns"], strict=True)):
            messages = [*messages, *said["user"]]
            made = [one for one in turn if one.get("call")]
            calls = [{"name": one["call"]["name"], "arguments": one["call"]["args"]} for one in made]
            results = [{"error": one["raised"]} if one["raised"] else one["result"] for one in made]
            row_id = f"{row['id']}:{number}"
            if calls:
                yield (
                    {**about, "id": row_id, "messages": messages, "label": calls, "results": results},
                    task_of(task),
                    checker,
                )
            for at, (call, result) in enumerate(zip(calls, results, strict=True)):
                id_, function = f"c{number}_{at}", {"name": call["name"], "arguments": json.dumps(call["arguments"])}
                tool_calls = [{"id": id_, "type": "function", "function": function}]
                answer = {"role": "tool", "content": json.dumps(result), "tool_call_id": id_}
                messages = [*messages, {"role": "assistant", "content": "", "tool_calls": tool_calls}, answer]


def add_goal(sample: JsonObject, checker: Checker) -> JsonObject:
    """Return a sample with the goal derived from its label, if there is one."""
    world = checker.world_at(sample)  # type: ignore[arg-type]
    if isinstance(world, str):
        return sample
    for call, result in zip(sample["label"], sample["results"], strict=True):
        world = make(world, call, [result]).world
    said = [each for each in sample["messages"] if each["role"] in ("system", "user")]
    try:
        milestones = describe_milestones(world.toolkit, as_conversation(world, to_langchain(said), ""))
    except GeckoError:  # no change that a milestone can name: compare the changed parts as they are
        end = world.state
        changed = [key for key, each in end.items() if each != sample["state"].get(key) and key != RUNTIME]
        if not changed:
            return sample
        parts = [{"at": key, "snapshot": list(find_table(end, key))} for key in changed]
        milestones = [{"id": "end", "last": True, "state": parts}]
    return {**sample, "goal": {"milestones": milestones}}


def spoil(sample: JsonObject, way: str, toolkit: Toolkit, dice: Random) -> JsonObject | None:
    """Return a sample corrupted in one way; None if that is impossible."""
    label, results = json.loads(json.dumps(sample["label"])), [*sample["results"]]
    at = dice.randrange(len(label))
    if way == "sibling":
        args, name = label[at]["arguments"], label[at]["name"]
        others = [tool.name for tool in toolkit if tool.name != name and not find_complaints(tool, args)]
        label[at]["name"] = dice.choice(others or [name])
    elif way in ("left out", "swapped"):
        for some in (label, results) if len(label) > 1 else ():
            moved = some.pop(at)
            some[at - 1 : at - 1] = [moved] if way == "swapped" else []
    else:
        _change(label[at]["arguments"], sample["state"] if way == "another value" else None, dice)
    return None if label == sample["label"] else {**sample, "label": label, "results": results}


def _change(args: JsonObject, state: JsonObject | None, dice: Random) -> None:
    """Replace a text or integer by a value of the state, or by a made-up one."""
    old = [(place, value) for place, value in scalars(args) if type(value) in (str, int) and place[-1] != "precision"]
    if not old:
        return
    place, value = dice.choice(old)
    new: Json = f"zq{dice.randrange(10**6)}" if isinstance(value, str) else dice.randrange(10**6, 10**7)
    if state is not None:
        new = dice.choice(
            [each for _, each in scalars(state, keys=True) if type(each) is type(value) and each] or [value]
        )
    holder: Any = args
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = new


def play(task: Task, label: Sequence[Mapping[str, Any]], sample: JsonObject) -> tuple[list[Json], JsonObject]:
    """Return the real classes' results of a label after the messages' calls, and the end state.

    The end state leaves out what no row can predict: the randomly drawn balance of a card that the calls have
    registered.
    """
    instances = task.real.load()
    for call in (call["function"] for each in sample["messages"] for call in each.get("tool_calls", ())):
        task.real.real(call["name"], instances)(**json.loads(call["arguments"]))
    results = [task.real.real(one["name"], instances)(**one["arguments"]) for one in label]
    end = task.real.read(instances)
    for card in end.get("TravelAPI", {}).get("credit_card_list", {}).values():
        card.pop("balance" if "cardholder_name" in card else "", None)
    return results, {key: each for key, each in end.items() if key != RUNTIME}


def _changes(label: Sequence[Any], bad: Sequence[Any], truth: tuple[Any, Any], now: tuple[Any, Any]) -> bool:
    """Return whether a corrupted label has another end state, or calls with other results, than the right label."""
    if all(one in label for one in bad):
        known = list(zip(label, truth[0], strict=True))
        then = [next((known.pop(at)[1] for at, (call, _) in enumerate(known) if call == one), None) for one in bad]
        return now != (then, truth[1])
    return now != truth


def measure(given: Given) -> Iterator[Told]:
    """Yield the verdicts on right labels, and on corrupted ones by kind."""
    right, goals, counts, missed = Counter[str](), 0, Counter[tuple[str, str]](), list[str]()
    turns = list(read_turns(given))
    for sample, task, checker in Random(0).sample(turns, min(len(turns), given.limit or len(turns))):
        whole, dice = add_goal(sample, checker), Random(sample["id"])
        goals += "goal" in whole
        verdict = checker.check(whole)  # type: ignore[arg-type]
        right[verdict["status"]] += 1
        if verdict["status"] == "drop":
            reason = verdict["reasons"][0]
            yield Told(
                f"right, and dropped: {whole['id']}: {reason['path']} {reason['message']}",
                reason["code"] == "arguments",
            )
        truth = play(task, sample["label"], sample)
        for way in dice.sample(WAYS, len(WAYS)):
            bad = spoil(whole, way, toolkit_of(checker), dice)
            if bad is None or sum(counts[each, "made"] for each in WAYS) >= (given.limit or ROWS):
                continue
            counts[way, "made"] += 1
            if not _changes(sample["label"], bad["label"], truth, play(task, bad["label"], sample)):
                continue
            counts[way, "changed"] += 1
            is_found = checker.check(bad)["status"] == "drop"  # type: ignore[arg-type]
            counts[way, "found"] += is_found
            missed += [] if is_found else [f"missed: {way}: {bad['id']}: {json.dumps(bad['label'])[:200]}"]
    yield Told(f"right labels: {dict(right)}, {goals} with a goal")
    for way in WAYS:
        made, changed, found = (counts[way, word] for word in ("made", "changed", "found"))
        yield Told(f"{way}: {found} of {changed} that change outcome or end found, of {made} made", found == changed)
    yield from map(Told, missed[:20])
