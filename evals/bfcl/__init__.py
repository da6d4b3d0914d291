"""`python -m evals bfcl --category ...`: one command for the benchmark's single-turn and multi-turn categories."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from ..harness.options import EvalError
from ..harness.suite import Suite

LONG_CONTEXT = "multi_turn_long_context"
MULTI_TURN = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", LONG_CONTEXT)

ALL_MULTI_TURN = "multi_turn"
"""Short for all multi-turn categories in the shared data, that is, all but the long context."""


def run(argv: Sequence[str]) -> int:
    from ..harness.command import run as run_suite

    try:
        kind = suite_of(categories(argv))
    except EvalError as mistake:
        print(f"error: {mistake}", file=sys.stderr)
        return 2
    return run_suite(kind, argv, called="bfcl")


def categories(argv: Sequence[str]) -> list[str]:
    named: list[str] = []
    for index, word in enumerate(argv):
        if word == "--category":
            named += ",".join(argv[index + 1 : index + 2]).split(",")
        elif word.startswith("--category="):
            named += word.partition("=")[2].split(",")
    return [name for name in named if name]


def suite_of(named: Sequence[str]) -> type[Suite]:
    """Return the suite for these categories; by default the multi-turn one."""
    from .single import ALL, CATEGORIES

    for name in named:
        if name not in (*MULTI_TURN, ALL_MULTI_TURN, *CATEGORIES, ALL):
            raise EvalError(
                f"--category {name}: single-turn categories are {', '.join(CATEGORIES)}, or {ALL} for all; multi-turn "
                f"ones {', '.join(MULTI_TURN)}, or {ALL_MULTI_TURN} for the first three"
            )
    multi = [name for name in named if name.startswith("multi_turn")]
    if multi and len(multi) < len(named):
        raise EvalError(
            "--category: single-turn and multi-turn categories are two suites; run the command once for each"
        )
    module = "evals.suites.bfcl_multi_turn" if multi or not named else "evals.suites.bfcl_single_turn"
    kind: type[Suite] = import_module(module).SUITE
    return kind
