"""Judgement-guided label verification (paper, section 4.3): a label beside an output, by rules, then asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..models.answer import answer
from ..models.ask import Ask, Where
from ..models.factory import Models
from ..models.roles import PairReply
from ..values.digest import digest
from .checks import Checker, Verdict, make
from .judging import describe_row, describe_step
from .match import tool_match
from .probe import Output
from .samples import LabelCall, Sample

Outcome = Literal[
    "MASTERED", "PRED_WRONG", "LABEL_WRONG", "BOTH_CORRECT", "BOTH_WRONG", "DISAGREED", "UNDECIDED"
]  # fmt: skip
"""The paper's four, and: the label was met; asked in both orders, the model disagreed; nobody decides."""

_FAILS = frozenset({"tool", "arguments", "refused"})
_MEANING: dict[str, Outcome] = {
    "FIRST_WRONG": "LABEL_WRONG",
    "SECOND_WRONG": "PRED_WRONG",
    "BOTH_CORRECT": "BOTH_CORRECT",
    "BOTH_WRONG": "BOTH_WRONG",
}
_ORDER = "(The first is the label, the second what the model did.)"
_SWAPPED = {"FIRST_WRONG": "SECOND_WRONG", "SECOND_WRONG": "FIRST_WRONG"}


class Judged(NamedTuple):
    """What was found of a row: the outcome, who decided, and what is wrong with the wrong candidate."""

    outcome: Outcome
    by: Literal["rules", "world", "model", "nobody"]
    analysis: str = ""


class Pairs:
    """Judges labels beside outputs.

    Args:
        checker: Makes their calls; both candidates begin from the same fork.
        models: The models by role: `pair_judge` is asked about what rules do not decide.
        turn: The iteration, from 0; where a recorded reply is looked up.
    """

    def __init__(self, checker: Checker, models: Models, turn: int = 0) -> None:
        self._checker, self._models, self._turn = checker, models, turn

    def judge(self, pairs: Sequence[tuple[Sample, Output, Sequence[Sample]]], asked: int) -> tuple[list[Judged], int]:
        """Return what is found of samples, each with its output and those that continue its conversation.

        `asked` is how many were asked about before; the second value is how many are now.
        """
        found = [self.decide(*pair) for pair in pairs]
        open_ = [at for at, each in enumerate(found) if each is None]
        if not self._models.has("pair_judge"):
            return [each or Judged("UNDECIDED", "nobody") for each in found], asked
        asks = [ask for number, at in enumerate(open_, asked) for ask in self._ask(*pairs[at][:2], number)]
        replies = [reply.value for reply in answer(asks, self._models)]
        for at, one, other in zip(open_, replies[::2], replies[1::2], strict=True):
            found[at] = _agree(one, other)
        return [each for each in found if each is not None], asked + len(open_)

    def decide(self, sample: Sample, output: Output, later: Sequence[Sample] = ()) -> Judged | None:
        """Return what rules find; None where it is to be asked."""
        label = sample["label"]
        if is_met(sample, output):
            return Judged("MASTERED", "rules")
        right = self._check(sample, label, sample.get("text", ""), later)
        if problem := output.get("problem"):
            return Judged("BOTH_WRONG" if _fails(right) else "PRED_WRONG", "rules", problem)
        made = self._check(sample, output["calls"], output["text"], later)
        by: Any = "world" if "world" in (right["by"], made["by"]) else "rules"
        if "goal" in sample and (met := [_has_met(each) for each in (right, made)]) and None not in met:
            words: dict[Any, Outcome] = {
                (True, False): "PRED_WRONG",
                (False, True): "LABEL_WRONG",
                (True, True): "BOTH_CORRECT",
                (False, False): "BOTH_WRONG",
            }
            return Judged(words[tuple(met)], "world", _explain(made if met[0] else right))
        if _fails(made):
            return Judged("BOTH_WRONG" if _fails(right) else "PRED_WRONG", by, _explain(made))
        if not _fails(right) and (end := self._play(sample, label)) and end == self._play(sample, output["calls"]):
            return Judged("BOTH_CORRECT", "world")
        return None

    def _check(self, sample: Sample, calls: list[LabelCall], text: str, later: Sequence[Sample]) -> Verdict:
        """Return the verdict on a candidate, whatever the row has recorded of its label's results."""
        candidate: Any = {**sample, "label": calls, "text": text}
        candidate.pop("results", None)
        return self._checker.check(candidate, later)

    def _play(self, sample: Sample, calls: Sequence[LabelCall]) -> tuple[list[str], str] | None:
        """Return the results of calls and where they end; None where nothing decides them, or they come to nothing."""
        if self._checker.toolkit is None or sample.get("state") is None:
            return None
        start = world = self._checker.world_at(sample)
        results: list[Any] = []
        for call in calls:
            if isinstance(world, str):
                return None
            made = make(world, call)
            if not made.is_decided:
                return None
            results.append(made.step["outcome"]["result"])
            world = made.world
        if isinstance(start, str) or isinstance(world, str):
            return None
        end = digest(world.state)
        has_come_to_something = any(each not in (None, "", [], {}) for each in results) or end != digest(start.state)
        return (sorted(map(digest, results)), end) if has_come_to_something else None

    def _ask(self, sample: Sample, output: Output, number: int) -> list[Ask]:
        """Return the question in both orders, so that a preference for a place shows."""
        steps = describe_step(sample["label"], sample.get("text", "")), describe_step(output["calls"], output["text"])
        known = describe_row(sample)
        return [
            Ask("pair_judge", {**known, "first": first, "second": second}, PairReply, Where(self._turn, 0, at))
            for at, (first, second) in enumerate((steps, steps[::-1]), 2 * number)
        ]


def is_met(sample: Sample, output: Output) -> bool:
    """Return whether an output is the row's label (ToolMatch)."""
    is_read = not output.get("problem")
    return is_read and tool_match(output["calls"], sample["label"], sample["tools"], sample.get("also"))


def _agree(one: Any, other: Any) -> Judged:
    if not isinstance(one, PairReply) or not isinstance(other, PairReply):
        return Judged("UNDECIDED", "nobody", "no reply")
    if one.verdict != _SWAPPED.get(other.verdict, other.verdict):
        return Judged("DISAGREED", "model")
    return Judged(_MEANING[one.verdict], "model", f"{_ORDER} {one.analysis}" if one.analysis else "")


def _fails(verdict: Verdict) -> bool:
    return any(each["code"] in _FAILS for each in verdict["reasons"])


def _has_met(verdict: Verdict) -> bool | None:
    """Return whether a candidate meets the row's goal; None where that is not known."""
    if verdict["status"] == "drop":
        return False
    return True if (verdict["status"], verdict["by"]) == ("keep", "world") else None


def _explain(verdict: Mapping[str, Any]) -> str:
    return "; ".join(f"{each['path']}: {each['message']}" for each in verdict["reasons"])
