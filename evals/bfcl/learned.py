"""Contracts learned from calls of the eight classes: the calls, what learned contracts predict for others, in sequence.

A prediction is refused, warned, lawful or unknown, with result and state if known. In sequence, a task's calls are made
on the state that the contracts predicted so far, and the schema fills unknown results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from gecko_graph import GeckoContext, Toolkit, ToolSpec, World
from gecko_graph.errors import EvaluationFailed
from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.state import JsonObject
from gecko_graph.values.difference import json_equal, make_patch
from gecko_graph.values.observation import Observation
from gecko_graph.values.patch import apply_patch

from .classes import Classes
from .differential import LONGEST, Start, Values, make_call, public, random_step
from .drawn import placeholders, split_hidden
from .fidelity import Recorded, recorded_calls
from .tasks import documents

HELD_OUT = 5
"""One task of this many is held out, by its number, because variants of a task share calls."""


def is_held_out(task: str) -> bool:
    return hashlib.sha256(f"learn:{task.rpartition('_')[2]}".encode()).digest()[0] % HELD_OUT == 0


def plain_toolkit(kind: str) -> Toolkit:
    return Toolkit.from_tools(documents(kind).values(), title=kind)


def observe(one: Recorded, source: str = "") -> Observation:
    """Return a recorded call as an observation, with the state of its class only."""
    before, after = (shown.get(one.kind, {}) for shown in (one.before, one.after))
    return Observation(
        tool=one.name,
        args=one.args,
        status="error" if one.fails else "ok",
        result=one.raised if one.raised else one.result,
        before=before,
        change=make_patch(before, after),
        source=source,
    )


def journal(tasks: Iterable[Mapping[str, Any]], kinds: Iterable[str]) -> Iterator[tuple[str, Recorded]]:
    """Yield the recorded calls of these classes, each with its task's id."""
    wanted = set(kinds)
    for task in tasks:
        for one in recorded_calls(task):
            if one.kind in wanted:
                yield task["id"], one


def random_calls(kind: str, starts: list[Start], values: Values, *, count: int, seed: str) -> Iterator[Recorded]:
    """Yield calls with documented arguments, made on the real class in sequences from its tasks' states."""
    source, made = Random(seed), 0
    while made < count:
        start = source.choice(starts)
        classes = Classes([kind], {kind: start.config})
        state = classes.initial_state
        for _ in range(source.randint(2, LONGEST)):
            try:
                name, args = random_step(source, kind, values, public(state))
                result, raised, after = make_call(classes, kind, state, (name, args))
            except ValueError:
                break  # a folder that contains itself cannot be represented in JSON
            made += 1
            before, now = (split_hidden(public(each))[0] for each in (state, after))
            yield Recorded(kind, name, args, before, now, result, raised)
            state = after


def starts_of(tasks: Iterable[Mapping[str, Any]], kind: str) -> list[Start]:
    return [
        Start(kind, task["id"], task["initial_config"].get(kind, {}))
        for task in tasks
        if kind in task["involved_classes"]
    ]


# what learned contracts predict

WARNED = "perhaps refused"
OUTSIDE = "outside"
"""A call that breaks its tool's document, which refuses it independently of learned contracts."""


def foreseen(toolkit: Toolkit, one: Recorded) -> JsonObject:
    """Return a contract's prediction for a call in its own state, compared with the real outcome.

    Returns:
        `outcome` (refused, lawful, warned, unknown or outside), `fails`; and, if predicted, whether `result` and
        `state` are right.
    """
    about: JsonObject = {"class": one.kind, "tool": one.name, "fails": one.fails, "outcome": "unknown"}
    tool = toolkit.get(one.name)
    if tool is None or find_complaints(tool, one.args):
        return {**about, "outcome": OUTSIDE}
    if tool.contract is None:
        return about
    before = one.before.get(one.kind, {})
    call: Any = {"id": "call_1", "name": one.name, "args": one.args}
    run = tool.contract.open(args=one.args, parameters=tool.parameters, state=before, call=call, now=None, seed=0)
    refusal = run.refusal()
    if refusal is not None:
        return {**about, "outcome": "refused", "by": refusal.violations[0]["clause"], "text": refusal.error}
    if run.unknown is not None:
        return {**about, "outcome": "warned" if run.unknown.startswith(WARNED) else "unknown", "why": run.unknown}
    if run.unclear:
        return {**about, "why": run.unclear[0]}
    about["outcome"] = "lawful"
    try:
        answer = run.answer()
    except EvaluationFailed as failure:
        return {**about, "why": str(failure)}
    if answer is None or one.fails:
        return {**about, **({"result": False, "state": False} if answer is not None else {})}
    after: JsonObject = {**one.before, one.kind: apply_patch(before, answer.patch)}
    real = placeholders(one.name, one.result, one.after, one.before)
    ours = placeholders(one.name, answer.result, after, one.before)
    return {**about, **{key: json_equal(real[key], ours[key]) for key in ("result", "state")}}


def tally(found: Iterable[Mapping[str, Any]]) -> JsonObject:
    """Return counts over predictions: all, answered, right, lawful calls refused, refusals allowed and so on."""
    inside = [one for one in found if one["outcome"] != OUTSIDE]
    answered = [one for one in inside if one["outcome"] in ("refused", "lawful")]
    right = [one for one in answered if (one["outcome"] == "refused") == one["fails"]]
    whole = [one for one in inside if "result" in one or one["outcome"] == "refused"]
    return {
        "calls": len(inside),
        "refusals": sum(one["fails"] for one in inside),
        "answered": len(answered),
        "right": len(right),
        "warned": sum(one["outcome"] == "warned" for one in inside),
        "warned_lawful": sum(one["outcome"] == "warned" and not one["fails"] for one in inside),
        "lawful_refused": sum(one["outcome"] == "refused" and not one["fails"] for one in inside),
        "refusals_allowed": sum(one["outcome"] == "lawful" and one["fails"] for one in inside),
        "refusals_refused": sum(one["outcome"] == "refused" and one["fails"] for one in inside),
        "whole": len(whole),
        "whole_right": sum(is_whole_right(one) for one in whole),
    }


def is_whole_right(one: Mapping[str, Any]) -> bool:
    if one["outcome"] == "refused":
        return bool(one["fails"])
    return not one["fails"] and bool(one.get("result")) and bool(one.get("state"))


def add_tallies(tallies: Sequence[JsonObject]) -> JsonObject:
    return {key: sum(one[key] for one in tallies) for key in tallies[0]} if tallies else {}


# a task's calls in sequence on the predicted state

CONTEXT = GeckoContext(ladder=("contract", "schema"), semantic_validation=False)


def play_calls(toolkit: Toolkit, calls: Sequence[Recorded]) -> JsonObject:
    """Return how many of a class's calls in a task are predicted on the predicted state, and how many correctly.

    If a change is unknown, every key that the tool has ever changed becomes unknown, and with it each answer that reads
    such a key. Identifiers that a right answer has drawn are replaced by the real ones, which a caller would use next.

    Returns:
        `calls`; `known`: result and change by contract, in a known state; `right`: of these those with the real result
        and state; `gaps`: change known and result filled in; `gaps_right`: of these those with the real outcome and
        state.
    """
    counts = dict.fromkeys(("calls", "known", "right", "gaps", "gaps_right"), 0)
    state, lost = calls[0].before.get(calls[0].kind, {}), set[str]()
    wrong: list[str] = []
    for one in calls:
        tool = toolkit.get(one.name)
        if tool is None or find_complaints(tool, one.args):
            lost |= set() if one.fails else {*state}  # the document refuses a call that the real tool has made
            continue
        counts["calls"] += 1
        if tool.contract is None or tool.contract.state_keys & lost:
            lost |= _touches(tool, state)
            continue
        world = World(toolkit, state=state, context=CONTEXT)
        outcome = world.call({"name": one.name, "args": one.args})["outcome"]
        if outcome["rung"] != "contract":
            lost |= _touches(tool, state)
            continue
        kind = "gaps" if "filled" in outcome else "known"
        right = _is_right(one, outcome, world.state, lost)
        counts[kind] += 1
        counts["right" if kind == "known" else "gaps_right"] += right
        wrong += [] if right else [one.name]
        if one.has_leaked:
            break  # the recorded states after it contain values that Python's shared default lists have kept
        state = {**one.after.get(one.kind, {}), **{key: world.state[key] for key in lost}} if right else world.state
    return {**counts, "wrong": wrong}


def _touches(tool: ToolSpec, state: JsonObject) -> set[str]:
    """Return the keys of the state that calls of the tool have ever changed; all keys if no change was seen."""
    data: Any = tool.contract.data if tool.contract is not None else {}
    return {*data.get("evidence", {}).get("touches", state)}


def _is_right(one: Recorded, outcome: Any, state: JsonObject, lost: set[str]) -> bool:
    state = {**state, **{key: one.after.get(one.kind, {}).get(key) for key in lost}}
    if one.fails or outcome["status"] == "error":
        return one.fails == (outcome["status"] == "error") and json_equal(state, one.after.get(one.kind, {}))
    real = placeholders(one.name, one.result, one.after, one.before)
    after = {**one.after, one.kind: state} if one.kind in one.after else one.after
    ours: Any = placeholders(one.name, outcome["result"], after, one.before)
    same: Any = ("state",) if "filled" in outcome else ("result", "state")
    return all(json_equal(real[key], ours[key]) for key in same)
