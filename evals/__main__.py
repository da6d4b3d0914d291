"""`python -m evals SUITE [options]`: one command for all measurements."""

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
    "fair": "good and bad agents in conversations: do good ones pass and bad ones fail? False claims in answers",
    "undo": "undoing single calls and whole plans on the real classes (--only plans)",
    "loop": "training data: ToolMatch beside the official verdict, made tasks",
    "golden": "results of suites, documents and commands compared with stored rows (--write)",
    "gate": "forward execution, by default and strict, also on a service that answers falsely; refusals by category",
    "speed": "model calls, prompt tokens, own time, throughput, bytes checkpointed, import time",
    "validation": "recorded calls of real models against the argument rules, by error type",
    "tau": "real airline calls of gpt-4o through validator and state",
    "truth": "recorded turns of a strong model: the validator's questions, marks of verdicts (--only PART)",
    "misled": "rehearsals that could be fooled, and legitimate ones that differ by one step",
    "origins": "where the values of ground truths come from, by kind",
    "reality": "an agent on a real service with faults, killed at random: is everything done exactly once?",
    "milestones": "milestones derived from one conversation: successes accepted, failures caught",
    "fidelity": "BFCL's recorded calls by contract compared with the real classes, call by call",
    "learn": "contracts learned from recorded calls, compared with calls of other tasks",
    "policy": "an airline's written policy as contracts: which clause stops which wrong write",
    "scale": "rows by map, processes and Ray: the same bytes, also killed; memory; tasks in parallel",
    "serve": "the server: data after kill -9, forks per second, CPU per request compared with a bare echo server",
    "living": "a state derived from a document compared with the real service, call by call",
    "wild": "published documents of others: operations loaded, calls read back",
    "engines": "schema checks: checks by jsonschema-rs alone, and agreement of both engines",
    "real_model": "a small real model in every role: does anything crash, hang, get lost, or falsely count as done?",
    "retrieval": "the tools that a task needs, found among many: recall beside plain bm25s, and speed",
}
"""What each suite measures. A suite is the attribute `SUITE` of its module, which is imported on demand."""

PACKAGES = {"bfcl", "toolsandbox", "fair", "golden"}
"""Suites that are packages; the others are modules in `suites/`."""

HELP = """usage: python -m evals SUITE [options]

Measures gecko_graph on real tasks, real tools and real models' calls. Suites:

{suites}

  python -m evals validation                                       without a model, a key or a network
  python -m evals bfcl --model openai:gpt-5-mini --limit 20        a model plans and judges 20 tasks
  python -m evals validation --role-model validator=openai:gpt-5-mini      a model for one role

The same command resumes a stopped run and asks no model twice. Cases and report are written to evals/out/.
`python -m evals SUITE --help` lists a suite's options; a suite of your own is `package.module:ClassName`.
Exit code 0: all expectations are met; 1: some are not; 2: the command is wrong or something is missing."""


def main(argv: Sequence[str]) -> int:
    """Run one suite and return its exit code."""
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
    from .harness.command import run  # imported here so that a wrong name is reported at once

    return run(suite, argv[1:], called=argv[0])


def find(name: str) -> type[Suite] | ModuleType:
    """Return the suite of this name, or a module with its own `run(argv)`."""
    if ":" in name:
        module, _, attribute = name.partition(":")
    elif name in SUITES:
        module, attribute = f"evals.{name}" if name in PACKAGES else f"evals.suites.{name}", "SUITE"
    else:
        near = "".join(f"; did you mean {each}?" for each in get_close_matches(name, SUITES, 1))
        raise EvalError(f"unknown suite {name!r}{near}; suites: {', '.join(SUITES)}")
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
