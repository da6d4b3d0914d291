"""`python -m evals SUITE [options]`: one small command for everything that is measured."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType

from .harness.options import EvalError
from .harness.suite import Suite

SUITES = {
    "bfcl": "BFCL's single-turn and multi-turn tasks, checked by the official checker (--category)",
    "toolsandbox": "conversations on the phone; --scores: the scorer beside ToolSandbox's public code",
    "fair": "good and bad agents in conversations: do good ones pass, bad ones fail? Lies in answers",
    "undo": "ways back on the real classes, and plans that are undone (--only PART,...)",
    "loop": "training data: ToolMatch, verify, spoilt labels, speed (--only PART,...)",
    "golden": "what must not move: suites, documents and commands, beside the stored rows (--write)",
    "gate": "forward execution, to the letter, without P or Q, on a lying service; refusals by category",
    "speed": "model calls, prompt tokens, own time, throughput, bytes checkpointed, import time",
    "validation": "recorded calls of real models against the argument rules, by error type",
    "tau": "real airline calls of gpt-4o through validator and state",
    "truth": "recorded turns of a strong model: the validator's questions, marks of verdicts (--only PART)",
    "misled": "rehearsals that could be fooled, and legitimate ones that differ by one step",
    "origins": "where the values of ground truths come from, by kind",
    "reality": "an agent on a real service with faults, killed at random: is all done, and done once?",
    "milestones": "milestones derived from one conversation: successes accepted, failures caught",
    "fidelity": "BFCL's recorded calls by contract beside the real classes, call by call",
    "learn": "contracts learned from recorded calls, held beside calls of other tasks",
    "policy": "an airline's written policy as contracts: which clause stops which wrong write",
    "scale": "rows by map, processes and Ray: the same bytes, also killed; memory; tasks in parallel",
    "serve": "the server: what kill -9 leaves, forks a second, CPU a request beside a bare echo",
    "living": "a state derived from a document beside the real service, call by call; --documents: coverage",
    "wild": "documents of others as published: operations that are loaded, calls that are read back",
    "engines": "schema checks: where jsonschema-rs tells at once, and that both engines say the same",
    "real_model": "a small real model in every role: does anything crash, hang, get lost, or is said done that is not?",
    "retrieval": "the tools that a task needs, found among many: recall beside plain bm25s, and speed",
}
"""What each suite measures. Its module, imported when it is asked for, holds it as `SUITE`."""

PACKAGES = {"bfcl", "toolsandbox", "fair", "undo", "loop", "golden"}
"""Suites that are packages of their own; the others stand in `suites/`."""

HELP = """usage: python -m evals SUITE [options]

Measures gecko_graph on real tasks, real tools and real models' calls. Suites:

{suites}

  python -m evals validation                                       without a model, a key or a network
  python -m evals bfcl --model openai:gpt-5-mini --limit 20        a model plans and judges twenty tasks
  python -m evals validation --role-model validator=openai:gpt-5-mini      a model for one role

A run that was stopped asks no model twice when the same command is given again. Cases and report lie under evals/out/.
`python -m evals SUITE --help` lists a suite's options; a suite of your own is `package.module:ClassName`.
Exit code 0: all holds; 1: an expectation of the suite does not; 2: something is missing or wrong in the command."""


def main(argv: Sequence[str]) -> int:
    """Run one suite; returns its exit code."""
    if not argv or argv[0] in {"-h", "--help"}:
        width = max(map(len, SUITES))
        print(HELP.format(suites="\n".join(f"  {name:<{width}}  {about}" for name, about in SUITES.items())))
        return 0
    try:
        suite = find(argv[0])
    except EvalError as mistake:
        print(f"error: {mistake}", file=sys.stderr)
        return 2
    if isinstance(suite, ModuleType):
        return int(suite.run(list(argv[1:])))
    from .harness.command import run  # here, because a wrong name should be reported at once

    return run(suite, argv[1:], called=argv[0])


def find(name: str) -> type[Suite] | ModuleType:
    """Return the suite of this name, or a module with a `run(argv)` of its own.

    Raises:
        EvalError: No suite has this name.
    """
    if ":" in name:
        module, _, attribute = name.partition(":")
    elif name in SUITES:
        module, attribute = f"evals.{name}" if name in PACKAGES else f"evals.suites.{name}", "SUITE"
    else:
        near = "".join(f"; {each} is" for each in get_close_matches(name, SUITES, 1))
        raise EvalError(f"no suite is called {name!r}{near}. Suites: {', '.join(SUITES)}")
    try:
        loaded = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise EvalError(f"there is no module {module}") from None
        raise EvalError(f"suite {name} needs the package {error.name}, which is not installed") from None
    found = getattr(loaded, attribute, None)
    if isinstance(found, type) and issubclass(found, Suite):
        return found
    if ":" in name or not hasattr(loaded, "run"):
        raise EvalError(f"{module} has no suite {attribute}")
    return loaded


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
