"""Compare a real tool's call with the same call by contract, in the same state: outcome, result, state."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from gecko_graph import GeckoContext, Toolkit, World
from gecko_graph.state import JsonObject
from gecko_graph.values.difference import json_equal
from gecko_graph.values.notes import notes_of, tell
from gecko_graph.values.patch import apply_patch

from .drawn import normal, placeholders, split_hidden
from .tasks import widened

RUNGS = ("contract", "python", "validator")
"""Rungs whose answer may be right; a call answered by another rung counts as wrong."""


class Recorded(NamedTuple):
    """A recorded call: the state of all classes before and after it, and the real tool's result or exception."""

    kind: str
    name: str
    args: JsonObject
    before: JsonObject
    after: JsonObject
    result: Any
    raised: str | None
    has_leaked: bool = False

    @property
    def fails(self) -> bool:
        """Whether the real tool raised, or answered with the key `error`, as BFCL's tools do."""
        return bool(self.raised) or is_error(self.result)


class Simulated(NamedTuple):
    """The result of a call in a `World`.

    `fails` is also true if the validator refused the call; `hidden` as in `split_hidden`.
    """

    fails: bool
    rung: str
    result: Any
    after: JsonObject
    hidden: JsonObject
    reason: str = ""
    is_wide: bool = False
    """Whether the call breaks its tool's document, which was widened for it."""


def is_error(result: Any) -> bool:
    """Return whether a result is one of BFCL's errors: an object with `error`, or such an object or text in a list."""
    if isinstance(result, list) and len(result) == 1:
        return is_error(result[0]) or str(result[0]).startswith("Error: ")
    return isinstance(result, dict) and "error" in result


def is_kept_out(task: str) -> bool:
    """Return whether a task is held out while contracts are written.

    It is chosen by the task's number, because variants of a task share calls.
    """
    return hashlib.sha256(task.rpartition("_")[2].encode()).digest()[0] % 2 == 1


def recorded_calls(task: Mapping[str, Any]) -> Iterator[Recorded]:
    """Yield the recorded calls of a task that belong to a class, with the states from the recorded patches."""
    world = task["initial_state"]
    for step in (step for turn in task["turns"] for step in turn):
        before, world = world, apply_patch(world, step["patch"])
        if step["class"] is not None:
            call = step["call"]
            states = normal(before), normal(world)
            one = Recorded(step["class"], call["name"], call["args"], *states, step["result"], step["raised"])
            yield without_leaks(one)


def without_leaks(one: Recorded) -> Recorded:
    """Return a recorded `post_tweet` with empty lists for arguments that it was not given.

    Python creates their default lists once: what `mention` added to one also appeared in later tasks' tweets.
    """
    missing = [key for key in ("tags", "mentions") if key not in one.args]
    if one.name != "post_tweet" or one.fails or not any(one.result[key] for key in missing):
        return one
    empty: JsonObject = {key: [] for key in missing}
    twitter = one.after[one.kind]
    tweets = {**twitter["tweets"], str(one.result["id"]): {**one.result, **empty}}
    after = {**one.after, one.kind: {**twitter, "tweets": tweets}}
    return one._replace(result={**one.result, **empty}, after=after, has_leaked=True)


def simulated(toolkit: Toolkit, one: Recorded, hidden: Mapping[str, JsonObject] = MappingProxyType({})) -> Simulated:
    """Make a call in a world with the state before it, even if its document forbids the arguments' values.

    `hidden` are private attributes that the task's earlier calls have left and that recordings do not show.
    """
    is_wide = False
    if one.name in toolkit:
        wide = widened(toolkit[one.name], [one.args])
        is_wide = wide is not toolkit[one.name]
        toolkit = toolkit.replace(wide)
    before: JsonObject = {name: {**part, **hidden.get(name, {})} for name, part in one.before.items()}
    world = World(toolkit, state=before, context=GeckoContext(semantic_validation=False))
    step = world.call({"name": one.name, "args": one.args})
    after = split_hidden(world.state)
    if "outcome" not in step:
        return Simulated(True, "validator", None, *after, str(step["complaints"]), is_wide)
    outcome = step["outcome"]
    reason = "; ".join(map(tell, notes_of(outcome, "unclear")))
    return Simulated(outcome["status"] == "error", outcome["rung"], outcome["result"], *after, reason, is_wide)


def compared(one: Recorded, got: Simulated) -> JsonObject:
    """Return how a simulated call compares with the real one in outcome, result, state, and all three.

    For a call that raised, there is no result to compare.
    """
    real, ours = (placeholders(one.name, each.result, each.after, one.before) for each in (one, got))
    same = {
        "outcome": got.fails == one.fails,
        "result": json_equal(ours["result"], real["result"]) or bool(one.raised and got.fails),
        "state": json_equal(ours["state"], real["state"]),
    }
    is_same = all(same.values()) and got.rung in RUNGS
    about = {"class": one.kind, "tool": one.name, "rung": got.rung, "fails": one.fails, "ours_fails": got.fails}
    about |= {"raised": bool(one.raised), "wide": got.is_wide}
    return {**about, **same, "same": is_same, "difference": "" if is_same else _difference(one, got, real, ours)}


def _difference(one: Recorded, got: Simulated, real: Any, ours: Any) -> str:
    head = f"{one.name}({json.dumps(one.args)[:300]}) by {got.rung}"
    if not json_equal(real["result"], ours["result"]):
        return f"{head}: {str(got.result)[:300]}, not {one.raised or str(one.result)[:300]} {got.reason[:300]}"
    return f"{head}: another state: {_parts(ours['state'], real['state'])}"


def _parts(ours: Any, real: Any, place: str = "") -> str:
    if isinstance(ours, dict) and isinstance(real, dict):
        keys = [key for key in {**ours, **real} if not json_equal(ours.get(key), real.get(key))]
        return "; ".join(_parts(ours.get(key), real.get(key), f"{place}/{key}") for key in keys[:3])
    return f"{place}: {str(ours)[:200]}, not {str(real)[:200]}"
