"""The text of `bfcl --help` where no category selects one of its two suites: both."""

from __future__ import annotations

from argparse import Action, ArgumentParser
from collections.abc import Iterator, Mapping, Sequence

from gecko_graph.state import JsonObject

from ..bfcl import ALL_MULTI_TURN, MULTI_TURN
from ..bfcl.single_tasks import ALL, CATEGORIES
from ..harness.suite import Case, Record, Suite, Summary
from .bfcl_multi_turn import MultiTurn
from .bfcl_single_turn import SingleTurn

KINDS: Mapping[str, type[Suite]] = {"single-turn": SingleTurn, "multi-turn": MultiTurn}

CATEGORY = (
    f"single-turn: {', '.join(CATEGORIES)}, or {ALL} for all ten; "
    f"multi-turn: {', '.join(MULTI_TURN)}, or {ALL_MULTI_TURN} for the first three"
)


class Bfcl(Suite):
    """BFCL's tasks, single-turn and multi-turn: plans of the rehearsal, checked by the official checkers.

    The categories choose the kind, one kind a run; without any, multi_turn_base is run.

    Single-turn tasks: tools have no state; calls are checked by the argument rules, a model or made-up values answer,
    and the official evaluator scores the plans. Multi-turn tasks: the benchmark's executable classes answer, or
    simulated tools (--tools), each user turn is a rehearsal on one thread, and the official checker runs the plan on
    the real classes.

    The planner is the ground truth, a file of real models' recorded calls (alone, or as the first attempt with --then
    MODEL after it), or a model. The official package is needed: pip install --no-deps bfcl-eval==2026.3.23 mpmath
    `--category A --help` describes only A's kind.
    """

    name = "bfcl"
    planner = "ground-truth"
    examples = (*SingleTurn.examples, *MultiTurn.examples)

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add the options of both kinds, each with the kind that it is for."""
        parser.add_argument("--category", default=MULTI_TURN[0], metavar="A,B", help=CATEGORY)
        by_flag: dict[str, dict[str, Action]] = {}
        for kind, suite in KINDS.items():
            for action in suite.own_options():
                by_flag.setdefault(action.option_strings[-1], {})[kind] = action
        del by_flag["--category"]
        for kinds in by_flag.values():
            helps = {kind: str(action.help) for kind, action in kinds.items()}
            action = next(iter(kinds.values()))
            if len(kinds) < len(KINDS) or len(set(helps.values())) > 1:
                action.help = "; ".join(f"{kind}: {each}" for kind, each in helps.items())
            parser._add_action(action)

    def cases(self) -> Iterator[Case]:
        """Refuse: one of the two suites is run instead."""
        raise NotImplementedError

    def run_case(self, case: Case) -> JsonObject:
        """Refuse: one of the two suites is run instead."""
        raise NotImplementedError

    def passed(self, record: Record) -> bool:
        """Refuse: one of the two suites is run instead."""
        raise NotImplementedError

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Refuse: one of the two suites is run instead."""
        raise NotImplementedError


SUITE = Bfcl
