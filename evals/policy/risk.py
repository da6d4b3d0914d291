"""The gate with a risk model on recorded writes: its input for each, and a fake model that mostly knows the truth.

The fake's log-odds are normally distributed around the truth, so that at a threshold of one half it errs at the given
rate; more confident answers err less often. It errs alike with and without evidence: only what contracts decide before
it is asked, and its input, are measured, not the value of evidence to a real model.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any

from langchain_core.decisions import BaseDecisionModel, ClassifierResponse, NoulAnswer
from langchain_core.messages import AnyMessage

from gecko_graph import GeckoContext, Models, Toolkit, World
from gecko_graph.middleware.pending import build_preview
from gecko_graph.models.answer import AT_ONCE, answer, finish
from gecko_graph.models.ask import Ask, QuestionId
from gecko_graph.models.formatting import format_json
from gecko_graph.models.memory import recall_calls
from gecko_graph.models.roles import RiskReply
from gecko_graph.real.policy import ReviewPolicy
from gecko_graph.real.preview import add_undo
from gecko_graph.real.risk import judge_risks
from gecko_graph.state import JsonObject
from gecko_graph.tools.real import drive
from gecko_graph.undo import UndoFinder
from gecko_graph.values.digest import digest
from gecko_graph.world.provenance import trace_with

from ..harness.figures import Record, Table

ERRORS = (0.05, 0.1, 0.2, 0.3)
"""How often the fake errs at a threshold of one half."""
BANDS = ((0.5, 0.5), (0.35, 0.65), (0.2, 0.8), (0.1, 0.9), (0.05, 0.95))
DRAWS = 20
SPREAD = 1.5
UNDO_S = 0.5
EVERY, CALL_CHARS = 8, 6_000
EVIDENCE = ("effect", "undo", "origins")


class Knowing(BaseDecisionModel):
    """Knows whether a write is wrong, except for its error rate."""

    model: str = "knowing"
    is_wrong: bool
    errs: float
    dice: Any

    @property
    def _provider(self) -> str:
        return "evals"

    def _classify(self, state: Any, questions: Any) -> ClassifierResponse:
        answers = {name: NoulAnswer(type="noul", noul=self.draw()) for name in questions}
        return ClassifierResponse(model=self.model, answers=answers)

    def draw(self) -> float:
        """Return a probability that the write is risky."""
        away = SPREAD * NormalDist().inv_cdf(1 - self.errs) * (1 if self.is_wrong else -1)
        return float(1 / (1 + math.exp(-self.dice.gauss(away, SPREAD))))


class RiskGate:
    """The real mechanism at one write, with evidence made as in a guarded agent."""

    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = toolkit.replace(*(replace(tool, real=tool.real or print) for tool in toolkit))
        self._policy = ReviewPolicy.load({"rules": "writes", "risk": True}, self._toolkit)
        self._finder = UndoFinder(self._toolkit)

    def judge(
        self, call: JsonObject, world: World, messages: Sequence[AnyMessage], *, is_wrong: bool, seed: str
    ) -> JsonObject:
        """Return a write's probabilities by error rate; for every eighth write also the size of the model's input."""
        shown = self._look(call, world, messages) if int(digest(seed)[:4], 16) % EVERY == 0 else None
        bare = dict.fromkeys(("policy", *EVIDENCE), "") | {"task": "", "call": format_json(call, budget=CALL_CHARS)}
        asks = [Ask("risk", bare, RiskReply, QuestionId()), *(shown[:1] if shown else ())]
        judged: JsonObject = {"p": {str(errs): _draw(asks, is_wrong, errs, f"{seed} {errs}") for errs in ERRORS}}
        if shown:
            judged |= {"shown": {key: len(shown[0].variables[key]) for key in EVIDENCE}, "undo": shown[1]}
        return judged

    def _look(self, call: JsonObject, world: World, messages: Sequence[AnyMessage]) -> tuple[Ask, str] | None:
        """Return the question of a guarded agent, and the status of the search for an undo."""
        before = world.state
        step = world.fork().call({"name": call["name"], "args": call["args"]})
        preview = build_preview([step], before, self._toolkit, self._policy)
        if preview is None or not preview.get("unjudged"):
            return None
        preview = finish(drive(add_undo(preview, before, self._finder, UNDO_S), AT_ONCE))
        more: Any = {"conversation": recall_calls(messages), "state": before}
        origins = trace_with(self._toolkit, [step], **more).origins
        (ask,) = next(judge_risks(preview, before, messages, GeckoContext(), origins=origins, known={}))
        return ask, str(preview["calls"][0].get("undo", {"status": "none"})["status"])


def _draw(asks: Sequence[Ask], is_wrong: bool, errs: float, seed: str) -> list[float]:
    """Return draws of a fake's probability; the first ones through the client, for each form of the question."""
    model = Knowing(is_wrong=is_wrong, errs=errs, dice=random.Random(seed))
    replies = [answer([ask], Models(risk=model))[0].value for ask in asks]
    found = [reply.p for reply in replies if isinstance(reply, RiskReply) and reply.p is not None]
    return [*found, *(model.draw() for _ in range(DRAWS - len(found)))]


def word_of(p: float, band: tuple[float, float]) -> str:
    """Return the outcome of a write."""
    return "asked" if band[0] <= p <= band[1] else "stopped" if p > band[1] else "made"


def writes_of(talks: Sequence[Record], is_failed: Mapping[str, bool]) -> dict[str, list[JsonObject]]:
    """Return the writes of the curve: all right ones, and the wrong ones of failed conversations."""
    made = [(write, is_failed[one.id]) for one in talks for write in one.values["writes"]]
    return {
        "wrong": [write for write, failed in made if write["right"] is False and failed],
        "right": [write for write, _ in made if write["right"]],
    }


def curve(writes: Mapping[str, Sequence[JsonObject]]) -> Iterator[Table]:
    """Yield the gate's curve, and what the risk model saw."""
    wrong, right = writes["wrong"], writes["right"]
    heads = [f"{kind}: {word}" for kind in ("wrong", "right") for word in ("stopped", "asked", "made")]
    table = Table(
        f"The gate's curve: {len(wrong)} wrong and {len(right)} right writes, shares of {DRAWS} draws each",
        ["the model errs", "band", "", *heads],
        note="With evidence contracts come first, and what they refuse costs no model; the fake errs alike in both.",
    )
    for errs in ERRORS:
        for band in BANDS:
            for kind in ("alone", "evidence"):
                cells = [
                    f"{_share(some, errs, band, kind, word):.1%}"
                    for some in (wrong, right)
                    for word in ("stopped", "asked", "made")
                ]
                table.add(
                    f"{errs:.0%}",
                    f"{band[0]} to {band[1]}",
                    "the call alone" if kind == "alone" else "with evidence",
                    *cells,
                )
    yield table
    seen = [write["risk"] for write in (*wrong, *right) if "shown" in write["risk"]]
    shown = Table("What the risk model is shown, of a sample", ["", "writes"])
    for key in EVIDENCE:
        shown.add(key, f"{sum(bool(each['shown'][key]) for each in seen)} of {len(seen)}")
    for status in sorted({each["undo"] for each in seen}):
        shown.add(f"way back: {status}", sum(each["undo"] == status for each in seen))
    yield shown


def _share(some: Sequence[JsonObject], errs: float, band: tuple[float, float], kind: str, word: str) -> float:
    """Return the share of writes with an outcome, over all draws."""
    total = 0.0
    for write in some:
        if kind == "evidence" and write["clauses"]:
            total += word == "stopped"
        else:
            found = write["risk"]["p"][str(errs)]
            total += sum(word_of(p, band) == word for p in found) / len(found)
    return total / len(some) if some else 0.0
