"""`python -m evals SUITE [options]`: one small command for everything that is measured."""

from __future__ import annotations

import sys
from importlib import import_module

SUITES = {
    "speed": "model calls, prompt tokens, own time, throughput, bytes checkpointed, import time",
    "contracts": "recorded calls of BFCL's file system against the example's contracts: outcome, result, state, by tool",
    "validation": "recorded calls of real models against the argument rules: false refusals, recall by error type",
    "view": "what a prompt's view of a padded state still holds of what the real tools touch",
}


def main(argv: list[str]) -> int:
    """Run one suite; returns its exit code, 2 for a suite that does not exist."""
    if not argv or argv[0] in {"-h", "--help"}:
        print("usage: python -m evals SUITE [options]\n")
        print("\n".join(f"  {name:<11} {about}" for name, about in SUITES.items()))
        print("\n`python -m evals SUITE --help` tells a suite's options.")
        return 0
    if argv[0] not in SUITES:
        print(f"no suite is called {argv[0]!r}; suites: {', '.join(SUITES)}", file=sys.stderr)
        return 2
    code = import_module(f"evals.{argv[0]}").run(argv[1:])
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
