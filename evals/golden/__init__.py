"""`golden`: numbers that must not move while the house is rebuilt, compared with those that are stored.

The existing suites with their figures and a digest of each case, the shared OpenAPI documents, and what each command
prints. Times are left out. What cannot run here (no data, no official package) is left out and keeps what is stored.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from difflib import unified_diff
from functools import partial

from ..harness.suite import EvalError
from .commands import run_commands
from .parts import SUITES, Part, read_documents, run_suite
from .stored import read_stored, write_stored

MOST_NAMED = 12
"""Cases of a row that are named."""


def run(argv: Sequence[str]) -> int:
    """Measure and compare; returns 0, 1 where something moved, or 2 for a wrong command."""
    parser = argparse.ArgumentParser(prog="python -m evals golden", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="these parts: " + ", ".join(PARTS))
    parser.add_argument("--fresh", action="store_true", help="run finished cases again")
    parser.add_argument("--write", action="store_true", help="store what came")
    given = parser.parse_args(argv)
    only = [name for each in given.only for name in each.split(",")]
    if unknown := {*only} - {*PARTS}:
        parser.error(f"no part is called {', '.join(sorted(unknown))}")
    stored, now = read_stored(), dict[str, Part]()
    for name in only or PARTS:
        started = time.monotonic()
        try:
            now[name] = PARTS[name](fresh=given.fresh)
        except EvalError as missing:
            print(f"{name}: left out: {missing}", file=sys.stderr, flush=True)
        except Exception as error:  # noqa: BLE001 - a part that breaks is a part that moved
            now[name] = Part({"broken": f"{type(error).__name__}: {error}"})
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    moved = {name: list(differences(stored.get(name, {}), part)) for name, part in now.items()}
    for name, lines in moved.items():
        print("\n".join(f"{name}: {line}" for line in lines) or f"{name}: as stored, {len(now[name].rows)} rows")
    if given.write:
        write_stored(stored | {name: part.rows for name, part in now.items()})
    return 1 if any(moved.values()) and not given.write else 0


def differences(before: dict[str, str], part: Part) -> Iterator[str]:
    """Yield what moved, row by row: long texts as a diff, digests of cases by the cases' names."""
    for row in sorted({*before, *part.rows}):
        old, new = before.get(row), part.rows.get(row)
        if old == new:
            continue
        if old is None or new is None:
            yield f"{row}: {'is new' if old is None else 'is gone'}"
        elif row in part.cases and len(old.split()) == len(new.split()):
            pairs = zip(part.cases[row], old.split(), new.split(), strict=True)
            others = [names for names, one, other in pairs if one != other]
            more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
            yield f"{row}: {', '.join(others[:MOST_NAMED])}{more}"
        elif "\n" in old + new:
            yield "\n".join(unified_diff(old.splitlines(), new.splitlines(), row, "now", n=1, lineterm=""))
        else:
            yield f"{row}: {old} -> {new}"


PARTS: dict[str, Callable[..., Part]] = {
    **{name: partial(run_suite, words) for name, words in SUITES.items()},
    "documents": read_documents,
    "commands": run_commands,
}
