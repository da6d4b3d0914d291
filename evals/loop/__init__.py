"""`loop`: training data, without a model: does ToolMatch agree, is what is wrong found and what is right kept?"""

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
    """What the command says: where the data lies, and how much of it is taken."""

    data: Path
    limit: int


class Told(NamedTuple):
    """A line of a part's report; `holds` is None where nothing is expected of it."""

    text: str
    holds: bool | None = None


def _load(name: str, given: Given) -> Iterator[Told]:
    return import_module(f"{__name__}.{name}").measure(given)  # type: ignore[no-any-return]


PARTS: Mapping[str, Callable[[Given], Iterator[Told]]] = {
    name: partial(_load, name) for name in ("match", "verify", "spoilt", "speed", "tasks")
}
"""Name to the part, a module with `measure`; imported when it is asked for."""


def run(argv: Sequence[str]) -> int:
    """Measure the parts; returns 0, or 1 where an expectation does not hold."""
    parser = argparse.ArgumentParser(prog="python -m evals loop", description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), metavar="PART,...", help=", ".join(PARTS))
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="a small scale: so many cases a part")
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
            print(f"{name}: left out: {missing}", file=sys.stderr)
        print(f"{name}: {time.process_time() - started:.0f} CPU seconds", flush=True)
    return 1 if failed else 0
