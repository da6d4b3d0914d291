"""The methods that the rehearsal is compared with, each a small graph over the same toolkit and the same tools.

They take what `create_gecko` takes and give what it gives, so that one loop plays
all of them: `evals/baselines/contest.py`.
A tool's own argument rules hold for every method, as a real tool refuses what it cannot take; the questions that a
rehearsal asks a model about arguments, and its judge, are the rehearsal's alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from .best_of_n import create_best_of_n
from .merge_to_one import create_merged
from .reflexion import create_reflexion
from .self_refine import create_self_refine
from .trials import Create, create_plain

BASELINES: Mapping[str, Create] = {
    "plain": create_plain,
    "reflexion": create_reflexion,
    "self-refine": create_self_refine,
    "best-of-n": create_best_of_n,
    "merge-to-one": create_merged,
}
"""From a baseline's name to what builds its graph; `plain` is the planner alone, one attempt."""

CRITICAL = frozenset({"reflexion", "self-refine", "best-of-n"})
"""Those that ask a critic as well as the planner."""

__all__ = ["BASELINES", "CRITICAL", "Create"]
