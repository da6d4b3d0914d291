"""`golden`: numbers that must not move while the house is rebuilt, compared with the stored ones.

The existing suites with their tables and a digest of each case, the shared OpenAPI documents, and what each command
prints. Times are left out. What cannot run here (no data, no official package) is left out and keeps what is stored.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import redirect_stderr
from difflib import unified_diff
from functools import partial
from multiprocessing import get_context
from typing import TypeAlias

from ..harness.options import ROOT, EvalError
from .commands import PROMPT, STORED, read_texts, run_commands
from .parts import SUITES, Part, read_documents, run_suite

ROWS = ROOT / "evals" / "golden.json"
PARTS: Mapping[str, Callable[[], Part]] = {
    **{name: partial(run_suite, words) for name, words in SUITES.items()},
    "documents": read_documents,
    "commands": run_commands,
}
HERE = frozenset({"reality"})
"""Parts that start a server, which ends with this process."""

MOST_NAMED = 12
"""Cases of a row that are named."""


def run(argv: Sequence[str]) -> int:
    """Measure and compare, several parts at once; returns 0, or 1 where something moved."""
    parser = argparse.ArgumentParser(prog="python -m evals golden", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="NAME", help=", ".join(PARTS))
    parser.add_argument("--write", action="store_true", help="store what came")
    given = parser.parse_args(argv)
    stored = {**json.loads(ROWS.read_text("utf-8")), "commands": read_texts()}
    has_moved = False
    for name, part, words in measure_all(given.only):
        print(f"{name}: {words}", file=sys.stderr, flush=True)
        if part is None:
            continue
        lines = [f"{name}: {line}" for line in differences(stored.get(name, {}), part)]
        print("\n".join(lines) or f"{name}: as stored, {len(part.rows)} rows", flush=True)
        has_moved, stored[name] = has_moved or bool(lines), part.rows
    if given.write:
        texts = stored.pop("commands")
        STORED.write_text("".join(f"{PROMPT} {row}".strip() + f"\n{texts[row]}" for row in texts), "utf-8")
        ROWS.write_text(json.dumps(stored, ensure_ascii=False, indent=1, sort_keys=True) + "\n", "utf-8")
    return 1 if has_moved and not given.write else 0


Measured: TypeAlias = tuple[str, Part | None, str]
"""A part's name, what it came to, and how long that took; or why it is left out."""


def measure_all(names: Sequence[str]) -> Iterator[Measured]:
    """Yield the parts as they end: those in HERE in this process, the others in as many as there are processors."""
    apart = [name for name in names if name not in HERE]
    with ProcessPoolExecutor(min(len(apart), os.cpu_count() or 1) or 1, get_context("fork")) as processes:
        waiting = [processes.submit(measure, name) for name in apart]
        yield from map(measure, [name for name in names if name in HERE])
        yield from (each.result() for each in as_completed(waiting))


def measure(name: str) -> Measured:
    """Measure a part; one that breaks is a part that moved. Its progress is not shown: it would mix with others'."""
    started = time.monotonic()
    with redirect_stderr(io.StringIO()):
        try:
            part = PARTS[name]()
        except EvalError as missing:
            return name, None, f"left out: {missing}"
        except Exception as error:  # noqa: BLE001 - the boundary of a part
            part = Part({"broken": f"{type(error).__name__}: {error}"})
    return name, part, f"{time.monotonic() - started:.0f} s"


def differences(before: Mapping[str, str], part: Part) -> Iterator[str]:
    """Yield what moved, row by row: long texts as a diff, digests of cases by the cases' names."""
    for row in sorted({*before, *part.rows}):
        old, new = before.get(row, "nothing"), part.rows.get(row, "nothing")
        if old == new:
            continue
        if row in part.cases and len(old.split()) == len(new.split()):
            pairs = zip(part.cases[row], old.split(), new.split(), strict=True)
            moved = [name for name, one, other in pairs if one != other]
            yield f"{row}: {len(moved)} moved: {', '.join(moved[:MOST_NAMED])}"
        elif "\n" in old + new:
            yield "\n".join(unified_diff(old.splitlines(), new.splitlines(), row, "now", n=1, lineterm=""))
        else:
            yield f"{row}:\n  - {old}\n  + {new}"
