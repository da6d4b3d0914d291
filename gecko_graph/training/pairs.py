"""Judgement-guided label verification (paper, section 4.3): a label and an output, by rules, then by a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from ..models.answer import answer
from ..models.ask import Ask, QuestionId
from ..models.factory import Models
from ..state import JsonObject
from ..values.digest import digest
from .checks import Checker, SampleVerdict, make, tell
from .files import write_rows
from .judging import ask_label, describe_step, read_labels
from .probe import AT_ONCE, Output, is_met
from .samples import LabelCall, Sample

Outcome = Literal[
    "MASTERED", "PRED_WRONG", "LABEL_WRONG", "BOTH_CORRECT", "BOTH_WRONG", "DISAGREED", "UNDECIDED"
]  # fmt: skip
"""The paper's four; the output matches the label; the judge contradicts itself in the two orders; undecided."""

Pair: TypeAlias = tuple[Sample, Output, Sequence[Sample]]
"""A sample, the model's output for it, and the later samples of its conversation to the same goal."""

_FAILS = frozenset({"tool", "arguments", "refused"})
_OUTCOMES: Mapping[tuple[bool | None, bool | None], Outcome] = {
    (True, False): "PRED_WRONG",
    (False, True): "LABEL_WRONG",
    (True, True): "BOTH_CORRECT",
    (False, False): "BOTH_WRONG",
}
"""Keyed by whether label and output are right."""
_BOTH = ("first", "second")
_ORDER = "(The first is the label, the second the model's output.)"


class JudgedPair(NamedTuple):
    """The verdict on a pair: the outcome, who decided, and the fault of the wrong candidate."""

    outcome: Outcome
    by: Literal["rules", "world", "model", "nobody"]
    analysis: str = ""


class Pairs:
    """Judges labels against outputs.

    Args:
        checker: Executes their calls; both candidates start from the same fork.
        models: The models by role: `label_judge` decides the pairs that rules leave open.
        turn: The iteration, from 0; part of the key of recorded replies.
        unjudged: Whether labels are kept unverified, and each different output is wrong.
    """

    def __init__(self, checker: Checker, models: Models, *, turn: int = 0, unjudged: bool = False) -> None:
        self._checker, self._models, self._turn, self._unjudged = checker, models, turn, unjudged

    def write(self, pairs: Iterable[Pair], out: Path, tell: Callable[[int], None]) -> dict[str, int]:
        """Write each sample with its verdict; return the counts of outcomes and deciders."""
        counts = Counter[str]()

        def judge() -> Iterator[JsonObject]:
            for done, row in enumerate(self._judge(enumerate(pairs)), 1):
                counts.update((row["verdict"]["outcome"], f"by {row['verdict']['by']}"))
                tell(done)
                yield row

        write_rows(out, judge())
        return dict(sorted(counts.items()))

    def _judge(self, pairs: Iterator[tuple[int, Pair]]) -> Iterator[JsonObject]:
        """Yield each sample with its verdict; a question's number follows from the pair's."""
        can_ask = self._models.has("label_judge")
        while some := list(islice(pairs, AT_ONCE)):
            found = [self.decide(*pair) for _, pair in some]
            open_ = [pair for pair, each in zip(some, found, strict=True) if each is None and can_ask]
            asks = [ask for number, pair in open_ for ask in self._ask(*pair[:2], number)]
            replies = [reply.value for reply in answer(asks, self._models)]
            asked = map(_agree, replies[::2], replies[1::2])
            for (_, (sample, output, _)), each in zip(some, found, strict=True):
                yield self._book(sample, output, each or next(asked, JudgedPair("UNDECIDED", "nobody")))

    def decide(self, sample: Sample, output: Output, later: Sequence[Sample] = ()) -> JudgedPair | None:
        """Return the rules' verdict, None if a model must decide."""
        if is_met(sample, output):
            return JudgedPair("MASTERED", "rules")
        label = self._check(sample, sample["label"], sample.get("text", ""), later)
        made = self._check(sample, output["calls"], output["text"], later)
        if problem := output.get("problem"):
            made = {"status": "drop", "by": "rules", "reasons": [tell("arguments", ("output",), problem)]}
        if "goal" in sample and None not in (met := (_has_met(label), _has_met(made))):
            return JudgedPair(_OUTCOMES[met], "world", _explain(made if met[0] else label))
        if _fails(made):
            by: Any = "world" if "world" in (label["by"], made["by"]) else "rules"
            return JudgedPair(_OUTCOMES[not _fails(label), False], by, _explain(made))
        if not _fails(label) and (end := self._play(sample, sample["label"])):
            return JudgedPair("BOTH_CORRECT", "world") if end == self._play(sample, output["calls"]) else None
        return None

    def _check(self, sample: Sample, calls: list[LabelCall], text: str, later: Sequence[Sample]) -> SampleVerdict:
        """Return the verdict on a candidate, without the recorded results of the row's label."""
        candidate: Any = {**sample, "label": calls, "text": text}
        candidate.pop("results", None)
        return self._checker.check(candidate, later)

    def _play(self, sample: Sample, calls: Sequence[LabelCall]) -> tuple[list[str], str] | None:
        """Return the results and the end state of calls; None if undecided, or if they have no effect and no result."""
        if self._checker.toolkit is None or sample.get("state") is None:
            return None
        world, results = self._checker.world_at(sample), list[Any]()
        if isinstance(world, str):
            return None
        start = digest(world.state)
        for call in calls:
            made = make(world, call)
            if not made.is_decided:
                return None
            results.append(made.step["outcome"]["result"])
            world = made.world
        end = digest(world.state)
        has_effect = end != start or any(each not in (None, "", [], {}) for each in results)
        return (sorted(map(digest, results)), end) if has_effect else None

    def _ask(self, sample: Sample, output: Output, number: int) -> list[Ask]:
        """Return the question in both orders, to detect a preference for a position."""
        steps = describe_step(sample["label"], sample.get("text", "")), describe_step(output["calls"], output["text"])
        return [
            ask_label(sample, dict(zip(_BOTH, both, strict=True)), QuestionId(self._turn, 0, at))
            for at, both in enumerate((steps, steps[::-1]), 2 * number)
        ]

    def _book(self, sample: Sample, output: Output, found: JudgedPair) -> JsonObject:
        """Return a sample with its verdict; a wrong label is replaced by the output."""
        outcome = "PRED_WRONG" if self._unjudged and found.outcome != "MASTERED" else found.outcome
        row: JsonObject = {**sample}
        verdict: JsonObject = {
            "outcome": found.outcome,
            "by": found.by,
            "perplexity": output["perplexity"],
            "reasons": [],
        }
        if outcome in ("MASTERED", "BOTH_CORRECT"):
            return {**row, "verdict": {**verdict, "status": "keep"}}
        wrong, said, status = output["calls"], output["text"], "keep" if outcome == "PRED_WRONG" else "drop"
        if outcome == "LABEL_WRONG":
            wrong, said, status = sample["label"], sample.get("text", ""), "fix"
            row = {key: each for key, each in row.items() if key not in ("results", "also", "text")}
            row |= {"label": output["calls"], **({"text": output["text"]} if output["text"] else {})}
        analysis = "" if self._unjudged else found.analysis
        return {**row, "verdict": {**verdict, "status": status, "wrong": wrong, "said": said, "analysis": analysis}}


def _agree(one: Any, other: Any) -> JudgedPair:
    """Return the verdict of two replies; the second saw the candidates in reverse order."""
    said, swapped = read_labels(one), read_labels(other)
    if not said.keys() & swapped.keys() >= {*_BOTH}:
        return JudgedPair("UNDECIDED", "nobody", "no reply")
    if any(each.unsure or each.status == "unknown" for each in (*said.values(), *swapped.values())):
        return JudgedPair("UNDECIDED", "model")
    right, again = ([found[id_].status == "success" for id_ in _BOTH] for found in (said, swapped))
    if right != again[::-1]:
        return JudgedPair("DISAGREED", "model")
    wrong = [f"The {id_}: {each.reason}" for id_, each in said.items() if each.reason and each.status != "success"]
    return JudgedPair(_OUTCOMES[right[0], right[1]], "model", " ".join([_ORDER, *wrong]) if wrong else "")


def _fails(verdict: SampleVerdict) -> bool:
    return any(each["code"] in _FAILS for each in verdict["reasons"])


def _has_met(verdict: SampleVerdict) -> bool | None:
    """Return whether a candidate meets the row's goal, None if unknown."""
    if verdict["status"] == "drop":
        return False
    return True if (verdict["status"], verdict["by"]) == ("keep", "world") else None


def _explain(verdict: SampleVerdict) -> str:
    return "; ".join(f"{each['path']}: {each['message']}" for each in verdict["reasons"])
