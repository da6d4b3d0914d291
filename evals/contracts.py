"""BFCL's recorded file-system calls against the contracts of `examples/files`: outcome, result and state, by tool."""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gecko_graph import Toolkit
from gecko_graph.contracts.expression import Expression, Scope
from gecko_graph.errors import EvaluationFailed, PatchConflict
from gecko_graph.state import Call
from gecko_graph.toolkit.spec import ToolSpec
from gecko_graph.world.patch import apply_patch, json_equal

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
TOOLKIT = ROOT / "examples" / "files" / "files.openapi.yaml"
FILES = ("bfcl_multiturn_calls.jsonl.gz", "bfcl_multiturn_recorded_calls.jsonl.gz")
CLASS = "GorillaFileSystem"
WANTED = 0.995


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
        """BFCL's tools give their errors as a result with the key `error`."""
        return isinstance(self.result, dict) and "error" in self.result


@dataclass(slots=True)
class Row:
    """What was counted for one tool."""

    calls: int = 0
    errors: int = 0
    outcome: int = 0
    result: int = 0
    state: int = 0
    seconds: float = 0.0
    differences: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a contract made of a call. `status` is `ok`, `error` or `none`."""

    status: str
    result: Any
    after: Any


def recorded_calls(path: Path) -> Iterator[Recorded]:
    """The file-system calls of one recording, with the states that their recorded patches give."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            task = json.loads(line)
            if CLASS in task["initial_state"]:
                yield from _calls_of(task)


def _calls_of(task: dict[str, Any]) -> Iterator[Recorded]:
    world = task["initial_state"]
    for number, step in enumerate(step for turn in task["turns"] for step in turn):
        before = world
        world = apply_patch(world, step["patch"])
        if step["class"] == CLASS:
            name, args = step["call"]["name"], step["call"]["args"]
            call: Call = {"id": f"{task['id']}-{number}", "name": name, "args": args}
            yield Recorded(task["id"], call, before[CLASS], world[CLASS], step["result"], step["raised"])


def replay(tool: ToolSpec, one: Recorded) -> Replayed:
    """One recorded call by contract."""
    assert tool.contract is not None
    try:
        run = tool.contract.open(
            args=one.call["args"], parameters=tool.parameters, state=one.before, call=one.call, now=None, seed=0
        )
        refusal = run.refusal()
        if refusal is not None:
            return Replayed("error", refusal.error, apply_patch(one.before, refusal.patch))
        answer = run.answer()
        if answer is None:
            return Replayed("none", "the contract has no answer", one.before)
        after = apply_patch(one.before, answer.patch)
        broken = run.broken(answer.result, after)
    except (EvaluationFailed, PatchConflict) as failure:
        return Replayed("none", str(failure), one.before)
    return Replayed("none", broken, one.before) if broken else Replayed("ok", answer.result, after)


def compare(row: Row, one: Recorded, got: Replayed) -> None:
    """Count where a replayed call agrees with the recorded one."""
    outcome = got.status == ("error" if one.is_error else "ok")
    result, state = json_equal(got.result, one.result), json_equal(got.after, one.after)
    row.calls += 1
    row.errors += one.is_error
    row.outcome += outcome
    row.result += result
    row.state += state
    if not (outcome and result and state):
        row.differences.append(
            f"{one.task}: {one.call['name']}({one.call['args']}): {got.result!r}, not {one.result!r}"
        )


def replay_all(data: Path) -> tuple[dict[str, Row], int]:
    """All recorded calls by tool, and how many had raised and were left out."""
    tools = Toolkit.from_openapi(TOOLKIT)
    rows: dict[str, Row] = defaultdict(Row)
    raised = 0
    for name in FILES:
        for one in recorded_calls(data / name):
            if one.raised:
                raised += 1
                continue
            row = rows[one.call["name"]]
            started = time.thread_time()
            got = replay(tools[one.call["name"]], one)
            row.seconds += time.thread_time() - started
            compare(row, one, got)
    return dict(sorted(rows.items())), raised


def total_of(rows: dict[str, Row]) -> Row:
    """The sums of all rows."""
    total = Row()
    for row in rows.values():
        for key in ("calls", "errors", "outcome", "result", "state", "seconds"):
            setattr(total, key, getattr(total, key) + getattr(row, key))
    return total


def table(rows: dict[str, Row]) -> str:
    """The rows and their sum as a Markdown table."""
    lines = [
        "| tool | calls | of them errors | same outcome | same result | same state | µs a call |",
        "|---" * 7 + "|",
    ]
    for name, row in [*rows.items(), ("all", total_of(rows))]:
        pace = row.seconds / max(row.calls, 1) * 1e6
        counts = f"{row.calls} | {row.errors} | {row.outcome} | {row.result} | {row.state}"
        lines.append(f"| {name} | {counts} | {pace:.0f} |")
    return "\n".join(lines)


def load_seconds() -> float:
    """Seconds to read the example's document with its contracts, the best of three."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        Toolkit.from_openapi(TOOLKIT)
        times.append(time.perf_counter() - started)
    return min(times)


def check_micros(kilobytes: int) -> float:
    """Microseconds of a check that names a small part of a state of this size, the best of 300."""
    rows = {str(n): {"name": f"row {n}", "open": n % 2 == 0, "tags": ["x"] * 5} for n in range(kilobytes * 13)}
    scope = Scope({"state": {"user": {"name": "a"}, "rows": rows}, "args": {"name": "a", "id": 7}})
    source = "state.user.name == args.name and args.id in state.rows and not state.rows[args.id].open"
    check = Expression.compile(source, names=scope.values, where="evals")
    times = []
    for _ in range(300):
        started = time.perf_counter()
        check.holds(scope)
        times.append(time.perf_counter() - started)
    return min(times) * 1e6


def run(argv: list[str]) -> int:
    """Print the table. Exit code 0 if the share of equal calls is reached, 1 if not, 2 without the data."""
    parser = argparse.ArgumentParser(prog="python -m evals contracts", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the recordings")
    parser.add_argument("--differences", type=int, default=10, help="how many differing calls to list")
    options = parser.parse_args(argv)
    if not all((options.data / name).is_file() for name in FILES):
        print(f"no recordings ({', '.join(FILES)}) in {options.data}", file=sys.stderr)
        return 2
    rows, raised = replay_all(options.data)
    total = total_of(rows)
    print(table(rows))
    print(f"\n{raised} more calls had raised in the real class (wrong arguments) and are the validator's business.")
    print(
        f"The document with its {len(Toolkit.from_openapi(TOOLKIT))} contracts loads in {load_seconds() * 1000:.0f} ms."
    )
    paces = ", ".join(f"{check_micros(size):.1f} µs at {size:,} kB" for size in (1, 100, 1000))
    print(f"A check that names a small part of the state: {paces}.")
    differences = [text for row in rows.values() for text in row.differences]
    for text in differences[: options.differences]:
        print(f"- {text}")
    return 0 if min(total.outcome, total.result, total.state) >= WANTED * total.calls else 1
