"""A client that asks a decision model a role's yes-or-no questions, each answered by a probability.

It sends the variable part of the role's prompt, and the questions in the prompt file. Langchain-core's
`BaseDecisionModel` and langchain-openai's `OpenAIDecisions` are recognized without importing their packages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from pydantic import BaseModel

from . import roles
from .ask import Ask, Dialogue, ModelCall, Reply
from .client import StructuredClient, find_inner
from .failure import failure_of
from .prompts import BLIND, hide_secrets
from .usage import count_tokens, is_count


class DecisionAnswer(NamedTuple):
    """An answer: the probability of yes (None if the model declined), and yes, no, or None for unsure."""

    p: float | None
    holds: bool | None

    def said(self, **fields: Any) -> dict[str, Any]:
        reason = "" if self.holds else "the decision model did not answer" if self.p is None else f"p {self.p:.2f}"
        return {"p": self.p, "unsure": self.holds is None, "reason": reason, **fields}


def _judge(pairs: Sequence[tuple[str, DecisionAnswer]], all_: Sequence[DecisionAnswer]) -> dict[str, Any]:
    items = [one.said(id=id_, status="success" if one.holds else "failed") for id_, one in pairs]
    return {"items": items, "stopping_was_right": all_[-1].holds is True}


MISFIT = "it does not fit its description, the task or the other arguments"
READ: Mapping[
    type[BaseModel], Callable[[Sequence[tuple[str, DecisionAnswer]], Sequence[DecisionAnswer]], dict[str, Any]]
] = {
    roles.Judgement: _judge,
    roles.LabelReply: _judge,
    roles.SemanticVerdict: lambda pairs, all_: {
        "problems": [one.said(argument=id_, problem=MISFIT) for id_, one in pairs if not one.holds]
    },
    roles.Ranking: lambda pairs, all_: {
        "tools": [
            {"name": id_, "score": 10 * (0.5 if one.p is None else one.p)}
            for id_, one in pairs
            if one.holds is not False
        ]
    },
    roles.ClaimReply: lambda pairs, all_: all_[0].said(met=all_[0].holds is True),
    roles.RiskReply: lambda pairs, all_: all_[0].said(risky=all_[0].holds is not False),
}
"""Reply class to the function that builds its fields from the answers on the ask's ids, and from all answers."""
ROLES = tuple(role for role, replies in roles.REPLIES.items() if not READ.keys().isdisjoint(replies))
"""The roles that may have a decision model."""


def find_decider(runnable: object) -> Any:
    kinds = _kind("langchain_core", "BaseDecisionModel"), _kind("langchain_openai", "OpenAIDecisions")
    return find_inner(runnable, lambda each: isinstance(each, kinds))


def _kind(package: str, name: str) -> Any:
    return getattr(sys.modules.get(f"{package}.decisions.base"), name, ())


class DecisionClient(StructuredClient):
    """One decision model, see `StructuredClient`; not for roles that send messages."""

    _find = staticmethod(find_decider)

    def ask(self, ask: Ask) -> Dialogue:
        """Send all questions in one request; a refused or missing answer counts as unsure."""
        variables = hide_secrets(ask.variables) if ask.role in BLIND else ask.variables
        shown, questions = self._prompts.render(ask.role, variables).user, self._prompts.questions(ask)
        is_core = isinstance(self._inner, _kind("langchain_core", "BaseDecisionModel"))
        forms: Any = import_module(f"langchain_{'core' if is_core else 'openai'}.decisions")
        form = forms.Noul if is_core else forms.Predicate
        asked = {f"q{number}": form(instructions=text) for number, text in enumerate(questions)}
        request = {"state" if is_core else "input": shown, "questions": asked}
        response = self._look((yield ModelCall(self.model, request)))
        if isinstance(response, Exception):
            return Reply(None, failure_of(response), self._count(response))
        given = getattr(response, "answers", None)
        answers = [_read(given.get(name) if isinstance(given, Mapping) else None, ask.band) for name in asked]
        fields = READ[ask.reply]([*zip(ask.ids, answers, strict=False)], answers)
        return Reply(ask.reply.model_validate(fields), usage=self._count_decision(response))

    def _count_decision(self, response: Any) -> Any:
        usage: Any = getattr(response, "usage", None) or {}
        tokens: Any = [dict(usage).get(name) for name in ("input_tokens", "output_tokens")]
        if not all(map(is_count, tokens)):
            return self._count(None)
        return count_tokens(*tokens, model_name=str(response.model), prices=self._prices)


def _read(given: Any, band: tuple[float, float]) -> DecisionAnswer:
    """Return a model's answer; unsure if it is missing, refused, or no number from 0 to 1."""
    p = getattr(given, "noul", getattr(given, "probability", None))
    if not isinstance(p, int | float) or not 0 <= p <= 1:
        return DecisionAnswer(None, None)
    return DecisionAnswer(float(p), None if band[0] <= p <= band[1] else p > band[1])
