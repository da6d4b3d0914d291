"""Simulated tools beside the real ones, call by call: BFCL's recorded calls, each in the state it was recorded in."""

from __future__ import annotations

import hashlib
import json
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from gecko_graph import GeckoContext, Toolkit, World
from gecko_graph.state import JsonObject
from gecko_graph.task_state.patch import apply_patch, json_equal

from ..bfcl.contracted import CLASSES, class_toolkit
from ..bfcl.drawn import normal, placeholders, split_hidden
from ..bfcl.tasks import widened
from ..harness.datasets import read_jsonl
from ..harness.figures import Table, share
from ..harness.options import Options
from ..harness.suite import Case, EvalError, Expectation, Record, Suite, Summary, by_group

FILES = ("bfcl_multiturn_calls.jsonl.gz", "bfcl_multiturn_recorded_calls.jsonl.gz")
RUNGS = ("contract", "python", "validator")
"""Whose answer may be right: a call that is left to another rung counts as wrong."""
KEPT_OUT, WRITTEN_WITH = "kept out", "written with"
WANTED, WANTED_ERRORS = 0.99, 0.98


class Recorded(NamedTuple):
    """A recorded call: the state of all classes before it and after, and what the real tool made of it."""

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
        """Whether the real tool raised, or answered with the key `error`: BFCL's tools give their errors so."""
        return bool(self.raised) or is_error(self.result)


class Simulated(NamedTuple):
    """What became of a call in a `World`. `fails` also where the validator refused it; `hidden` as `split_hidden`."""

    fails: bool
    rung: str
    result: Any
    after: JsonObject
    hidden: JsonObject
    reason: str = ""


def is_error(result: Any) -> bool:
    """Return whether a result is an error in BFCL's words: an object with `error`, such an object or text in a list."""
    if isinstance(result, list) and len(result) == 1:
        return is_error(result[0]) or str(result[0]).startswith("Error: ")
    return isinstance(result, dict) and "error" in result


def is_kept_out(task: str) -> bool:
    """Return whether a task is kept out while contracts are written: by its number, as its forms share the calls."""
    return hashlib.sha256(task.rpartition("_")[2].encode()).digest()[0] % 2 == 1


def recorded_calls(task: Mapping[str, Any]) -> Iterator[Recorded]:
    """Yield the calls of a recorded task that are of a class, with the states that their recorded patches give."""
    world = task["initial_state"]
    for step in (step for turn in task["turns"] for step in turn):
        before, world = world, apply_patch(world, step["patch"])
        if step["class"] is not None:
            call = step["call"]
            states = normal(before), normal(world)
            one = Recorded(step["class"], call["name"], call["args"], *states, step["result"], step["raised"])
            yield without_leaks(one)


def without_leaks(one: Recorded) -> Recorded:
    """Return a recorded `post_tweet` with nothing in the lists that it was not given.

    Their defaults are lists that Python makes once: what `mention` adds to one stood in later tasks' tweets, too.
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
    """Answer a call in a world in the state before it; values that its document forbids reach the contract too.

    Args:
        toolkit: The class's tools.
        one: The call.
        hidden: What the task's calls before have left that recordings do not show.
    """
    if one.name in toolkit:
        toolkit = toolkit.replace(widened(toolkit[one.name], [one.args]))
    before: JsonObject = {name: {**part, **hidden.get(name, {})} for name, part in one.before.items()}
    world = World(toolkit, state=before, context=GeckoContext(semantic_validation=False))
    step = world.call({"name": one.name, "args": one.args})
    after = split_hidden(world.state)
    if "outcome" not in step:
        return Simulated(True, "validator", None, *after, str(step["complaints"]))
    outcome = step["outcome"]
    reason = "; ".join(outcome.get("unclear", []))
    return Simulated(outcome["status"] == "error", outcome["rung"], outcome["result"], *after, reason)


def compared(one: Recorded, got: Simulated) -> JsonObject:
    """Return how a simulated call came out beside the real one: outcome, result, state, and all three.

    Of a call that raised there is no result to compare with.
    """
    real, ours = (placeholders(one.name, each.result, each.after, one.before) for each in (one, got))
    same = {
        "outcome": got.fails == one.fails,
        "result": json_equal(ours["result"], real["result"]) or bool(one.raised and got.fails),
        "state": json_equal(ours["state"], real["state"]),
    }
    is_same = all(same.values()) and got.rung in RUNGS
    about = {"class": one.kind, "tool": one.name, "rung": got.rung, "fails": one.fails, "ours_fails": got.fails}
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


class Fidelity(Suite):
    """BFCL's recorded calls by contract beside the real classes, call by call: outcome, result and state.

    A case is a recorded task: its ground truth, or what a real model called. Each call is answered in a `World` in the
    state that it was recorded in. "Kept out" are tasks that were not looked at while the contracts were written.
    """

    name = "fidelity"
    tools = "simulated"
    examples = ("", "--class TradingBot --class TicketAPI --differences 20", "--calls my-calls.jsonl")
    asides = ("differences",)
    asks = False

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add other calls, the classes, and how much is listed."""
        add = parser.add_argument
        add("--calls", type=Path, metavar="FILE", help="other recorded calls of the same form, as JSON lines (.gz)")
        add("--class", dest="classes", action="append", metavar="NAME", help="only calls of this class; repeatable")
        add("--differences", type=int, default=10, metavar="N", help="differing calls to list, none kept out (10)")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._classes = options.own.classes or list(CLASSES)
        if unknown := set(self._classes) - set(CLASSES):
            raise EvalError(f"--class {min(unknown)}: expected one of {', '.join(CLASSES)}")

    def cases(self) -> Iterator[Case]:
        """Yield a case per task and who called."""
        given = self.options.own.calls
        for file in [given] if given else [self.options.dataset(name) for name in FILES]:
            for task in read_jsonl(file):
                if set(self._classes) & set(task["classes"]):
                    who, group = task.get("model", "truth"), KEPT_OUT if is_kept_out(task["id"]) else WRITTEN_WITH
                    yield Case(f"{who}:{task['id']}", task, group=group, unit=task["id"])

    def run_case(self, case: Case) -> JsonObject:
        """Answer its calls."""
        made, hidden, leaks = [], JsonObject(), 0
        for one in recorded_calls(case.data):
            if one.kind in self._classes:
                got = simulated(class_toolkit(one.kind), one, hidden)
                hidden, leaks = got.hidden, leaks + one.has_leaked
                made.append(compared(one, got))
        return {"calls": made, "leaks": leaks, "rungs": dict(Counter(call["rung"] for call in made))}

    def tell(self, record: Record) -> str:
        """Return how many of its calls are the same."""
        return f"{sum(call['same'] for call in record.values['calls'])} of {len(record.values['calls'])} calls the same"

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return agreement by class, by rung and by method, and the differing calls."""
        groups = by_group([record for record in records if record.done])
        parts = {name: [call for record in some for call in record.values["calls"]] for name, some in groups.items()}
        every = [call for calls in parts.values() for call in calls]
        tables = [
            *(by_class(f"Simulated beside real: tasks {name}", calls) for name, calls in sorted(parts.items())),
            by_key("By rung", "rung", every),
            by_key("By method", "tool", every),
        ]
        shown = Counter(call["difference"] for call in parts.get(WRITTEN_WITH, []) if call["difference"])
        lines = [f"{n} times: {text}" for text, n in shown.most_common(self.options.own.differences)]
        if leaks := sum(record.values["leaks"] for record in records if record.done):
            lines.append(f"{leaks} recorded tweets held what other tasks had put into a shared default: taken out")
        return Summary(tables, list(expected(parts.get(KEPT_OUT, []))), lines)


def by_class(title: str, calls: Sequence[JsonObject]) -> Table:
    """Return agreement by class, and how well "fails" is foreseen."""
    heads = ["class", "calls", "of them errors", "all the same", "errors all the same", "outcome", "result", "state"]
    table = Table(title, [*heads, "'fails' precision", "'fails' recall"])
    groups = [(name, [call for call in calls if call["class"] == name]) for name in CLASSES]
    for name, some in [*groups, ("all", calls)]:
        if some:
            failed, foreseen = ([call for call in some if call[key]] for key in ("fails", "ours_fails"))
            words = [_share(some, key) for key in ("outcome", "result", "state")]
            both = [_share(foreseen, "fails"), _share(failed, "ours_fails")]
            table.add(name, len(some), len(failed), _share(some, "same"), _share(failed, "same"), *words, *both)
    return table


def by_key(title: str, key: str, calls: Sequence[JsonObject]) -> Table:
    """Return agreement by rung or by method."""
    table = Table(title, [key, "class", "calls", "of them errors", "all the same", "outcome", "result", "state"])
    for kind, word in sorted({(call["class"], call[key]) for call in calls}):
        some = [call for call in calls if (call["class"], call[key]) == (kind, word)]
        words = [_share(some, one) for one in ("same", "outcome", "result", "state")]
        table.add(word, kind, len(some), sum(call["fails"] for call in some), *words)
    return table


def expected(calls: Sequence[JsonObject]) -> Iterator[Expectation]:
    """Yield what must hold of the calls of tasks kept out, class by class."""
    for name in CLASSES:
        some = [call for call in calls if call["class"] == name]
        failed = [call for call in some if call["fails"]]
        for word, of, wanted in (("calls", some, WANTED), ("real errors", failed, WANTED_ERRORS)):
            if of:
                text = f"{name}: at least {wanted:.0%} of the {word} of tasks kept out come to the same"
                yield Expectation(text, sum(call["same"] for call in of) >= wanted * len(of))


def _share(calls: Sequence[JsonObject], key: str) -> Any:
    rungs = Counter(call["rung"] for call in calls)
    return share(sum(bool(call[key]) for call in calls), len(calls), tools="simulated", rungs=rungs)


SUITE = Fidelity
