"""`loop`: training data without a model: does ToolMatch agree, are errors found, and are right rows kept?"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from ..harness.options import SHARED, EvalError


class Given(NamedTuple):
    """The command's options: the folder of the data, and the most cases per part."""

    data: Path
    limit: int


class Told(NamedTuple):
    """A line of a part's report; `holds` is None if it is no expectation."""

    text: str
    holds: bool | None = None


def _load(name: str, given: Given) -> Iterator[Told]:
    return import_module(f"{__name__}.{name}").measure(given)  # type: ignore[no-any-return]


PARTS: Mapping[str, Callable[[Given], Iterator[Told]]] = {
    name: partial(_load, name) for name in ("match", "verify", "spoilt", "speed", "tasks")
}
"""The parts: modules with `measure`, imported on demand."""


def run(argv: Sequence[str]) -> int:
    """Measure the parts; return 0, or 1 if an expectation is not met."""
    parser = argparse.ArgumentParser(prog="python -m evals loop", description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), metavar="PART,...", help=", ".join(PARTS))
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="most cases per part, for a small run")
    parser.add_argument("--data", type=Path, default=SHARED, metavar="DIR", help="the recorded data")
    given, failed = parser.parse_args(argv), 0
    names = given.only.split(",")
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"--only {unknown[0]}: parts are {', '.join(PARTS)}")
    for name in names:
        started = time.process_time()
        try:
            for text, holds in PARTS[name](Given(given.data, given.limit)):
                print(
                    f"{name}: {text}" + ("" if holds is None else ": holds" if holds else ": DOES NOT HOLD"), flush=True
                )
                failed += holds is False
        except EvalError as missing:
            print(f"{name}: skipped: {missing}", file=sys.stderr)
        print(f"{name}: {time.process_time() - started:.0f} CPU seconds", flush=True)
    return 1 if failed else 0
