"""BFCL's recorded file-system calls against the contracts of `examples/files`: outcome, result and state, by tool."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gecko_graph import Toolkit
from gecko_graph.contracts.language.expression import Expression, Scope
from gecko_graph.errors import EvaluationFailed, PatchConflict
from gecko_graph.state import Call, JsonObject
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.values.patch import apply_patch, json_equal

from ..harness.datasets import ROOT, read_jsonl
from ..harness.figures import Table, mean_of, share
from ..harness.options import Options
from ..harness.suite import Case, Expectation, Record, Suite, Summary

TOOLKIT = ROOT / "examples" / "files" / "files.openapi.yaml"
FILES = ("bfcl_multiturn_calls.jsonl.gz", "bfcl_multiturn_recorded_calls.jsonl.gz")
CLASS = "GorillaFileSystem"
WANTED = 0.995
AGREE = ("outcome", "result", "state")


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded call: the state before it, and what the real tool made of it."""

    task: str
    call: Call
    before: Any
    after: Any
    result: Any
    raised: str | None

    @property
    def is_error(self) -> bool:
        """Return whether the result has the key `error`: BFCL's tools give their errors so."""
        return isinstance(self.result, dict) and "error" in self.result


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a contract made of a call. `status` is `ok`, `error` or `none`."""

    status: str
    result: Any
    after: Any


def recorded_calls(path: Path) -> Iterator[Recorded]:
    """Yield the file-system calls of one recording, with the states that their recorded patches give."""
    for task in read_jsonl(path):
        if CLASS in task["initial_state"]:
            yield from answered_calls(task)


def answered_calls(task: Mapping[str, Any]) -> Iterator[Recorded]:
    """Yield the file-system calls of one recorded task."""
    world = task["initial_state"]
    for number, step in enumerate(step for turn in task["turns"] for step in turn):
        before = world
        world = apply_patch(world, step["patch"])
        if step["class"] == CLASS:
            name, args = step["call"]["name"], step["call"]["args"]
            call: Call = {"id": f"{task['id']}-{number}", "name": name, "args": args}
            yield Recorded(task["id"], call, before[CLASS], world[CLASS], step["result"], step["raised"])


def replay(tool: ToolSpec, one: Recorded) -> Replayed:
    """Replay one recorded call by contract."""
    assert tool.contract is not None
    try:
        run = tool.contract.open(
            args=one.call["args"], parameters=tool.parameters, state=one.before, call=one.call, now=None, seed=0
        )
        refusal = run.refusal()
        if refusal is not None:
            return Replayed("error", refusal.error, apply_patch(one.before, refusal.patch))
        if run.unclear:
            return Replayed("none", run.unclear[0], one.before)
        answer = run.answer()
        if answer is None:
            return Replayed("none", "the contract has no answer", one.before)
        after = apply_patch(one.before, answer.patch)
        broken = run.violations(answer.result, after)
    except (EvaluationFailed, PatchConflict) as failure:
        return Replayed("none", str(failure), one.before)
    return Replayed("none", broken[0]["error"], one.before) if broken else Replayed("ok", answer.result, after)


def compared(one: Recorded, got: Replayed, seconds: float) -> JsonObject:
    """Compare a replayed call with the recorded one."""
    agrees = {
        "outcome": got.status == ("error" if one.is_error else "ok"),
        "result": json_equal(got.result, one.result),
        "state": json_equal(got.after, one.after),
    }
    name, args = one.call["name"], one.call["args"]
    difference = "" if all(agrees.values()) else f"{one.task}: {name}({args}): {got.result!r}, not {one.result!r}"
    return {"tool": name, "error": one.is_error, **agrees, "seconds": seconds, "difference": difference}


class Contracts(Suite):
    """BFCL's recorded file-system calls against the contracts of `examples/files`: outcome, result and state, by tool.

    A case is a recorded task: its ground truth, or what a real model called. Each call is answered by contract in the
    state that it was recorded in. Calls that raised in the real class (wrong arguments) are the validator's business.
    """

    name = "contracts"
    tools = "simulated"
    examples = ("", "--only 'truth:*' --limit 20")
    asides = ("differences",)
    asks = False

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add how much is listed."""
        parser.add_argument("--differences", type=int, default=10, metavar="N", help="differing calls to list (10)")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._tools = Toolkit.from_openapi(TOOLKIT)

    def cases(self) -> Iterator[Case]:
        """Yield a case per task and who called."""
        for name in FILES:
            for task in read_jsonl(self.options.dataset(name)):
                if CLASS in task["initial_state"]:
                    who = task.get("model", "truth")
                    yield Case(f"{who}:{task['id']}", task, group=who, unit=task["id"])

    def run_case(self, case: Case) -> JsonObject:
        """Replay its calls."""
        made, raised = [], 0
        for one in answered_calls(case.data):
            if one.raised:
                raised += 1
                continue
            started = time.thread_time()
            got = replay(self._tools[one.call["name"]], one)
            made.append(compared(one, got, time.thread_time() - started))
        return {"calls": made, "raised": raised, "rungs": {"contract": len(made)}}

    def tell(self, record: Record) -> str:
        """Return how many of its calls agree."""
        same = sum(not call["difference"] for call in record.values["calls"])
        return f"{same} of {len(record.values['calls'])} calls the same"

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return agreement by tool."""
        done = [record for record in records if record.done]
        calls = sorted((call for record in done for call in record.values["calls"]), key=lambda call: call["tool"])
        table = Table(
            "Recorded calls answered by contract",
            ["tool", "calls", "of them errors", *(f"same {word}" for word in AGREE), "µs a call"],
        )
        for name in dict.fromkeys(call["tool"] for call in calls):
            _add(table, name, [call for call in calls if call["tool"] == name])
        _add(table, "all", calls)
        lost = [call["difference"] for call in calls if call["difference"]]
        least = min(sum(call[word] for call in calls) for word in AGREE)
        holds = Expectation(f"at least {WANTED:.1%} of the calls come to the same", least >= WANTED * len(calls))
        raised = sum(record.values["raised"] for record in done)
        notes = [
            f"{raised} more calls had raised in the real class (wrong arguments) and are the validator's business",
            *paces(len(self._tools)),
            *lost[: self.options.own.differences],
        ]
        return Summary([table], [holds], notes)


def _add(table: Table, name: str, calls: Sequence[JsonObject]) -> None:
    rungs = {"contract": len(calls)}
    same = (share(sum(call[word] for call in calls), len(calls), tools="simulated", rungs=rungs) for word in AGREE)
    pace = mean_of([1e6 * call["seconds"] for call in calls])
    table.add(name, len(calls), sum(call["error"] for call in calls), *same, pace)


def paces(contracts: int) -> Iterable[str]:
    """Return the times that loading the document and a check take."""
    checks = ", ".join(f"{check_micros(size):.1f} µs at {size:,} kB" for size in (1, 100, 1000))
    return [
        f"the document with its {contracts} contracts loads in {load_seconds() * 1000:.0f} ms",
        f"a check that names a small part of the state: {checks}",
    ]


def load_seconds() -> float:
    """Return the seconds to read the example's document with its contracts, the best of three."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        Toolkit.from_openapi(TOOLKIT)
        times.append(time.perf_counter() - started)
    return min(times)


def check_micros(kilobytes: int) -> float:
    """Return the microseconds of a check that names a small part of a state of this size, the best of 300."""
    rows = {str(n): {"name": f"row {n}", "open": n % 2 == 0, "tags": ["x"] * 5} for n in range(kilobytes * 13)}
    scope = Scope({"state": {"user": {"name": "a"}, "rows": rows}, "args": {"name": "a", "id": 7}})
    source = "state.user.name == args.name and args.id in state.rows and not state.rows[args.id].open"
    check = Expression.compile(source, names=scope.values, where="evals")
    times = []
    for _ in range(300):
        started = time.perf_counter()
        check.is_true(scope)
        times.append(time.perf_counter() - started)
    return min(times) * 1e6


SUITE = Contracts
