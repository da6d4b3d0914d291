"""`ChatDecisionModel`: any chat model as a decision model, by log-probabilities of yes and no, or by samples."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from langchain_core.decisions import BaseDecisionModel, ClassifierResponse, NoulAnswer
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import Field

from ..errors import ModelError
from .answer import AT_ONCE, AWAITED, Driver, finish
from .cache import without_cache
from .client import bind_within, find_model
from .failure import is_refusal, name_of

ASKED = "Answer the question about the text above with one word, yes or no, and nothing else."
_WORD = re.compile(r"^(yes|no)\b|\b(yes|no)$")
"""Yes or no at the start or end of a reply; inside a reply `no` is mostly part of another phrase."""
LEAST = 0.01
"""Least total probability of yes and no if a reply begins with another word."""


class ChatDecisionModel(BaseDecisionModel):
    """Answers `Noul` questions with a chat model that is asked for yes or no.

    The probability is P(yes) / (P(yes) + P(no)) of the first token, if the provider returns log-probabilities; else the
    share of yes among `samples` replies, which needs a temperature above 0. Without a usable reply there is no answer.

    Args:
        chat: The chat model; it may have retries or fallbacks.
        samples: Number of replies without log-probabilities, at least 1.
        more: Further fields of the model.

    Raises:
        ModelError: `chat` is no chat model.
    """

    model: str = ""
    chat: Any
    samples: int = Field(default=5, ge=1)

    def __init__(self, chat: Any, samples: int = 5, **more: Any) -> None:
        if (inner := find_model(chat)) is None:
            raise ModelError(f"expected a chat model, got {type(chat).__name__}")
        super().__init__(**{"model": name_of(inner), "chat": chat, "samples": samples, **more})

    @property
    def _provider(self) -> str:
        return str(getattr(find_model(self.chat), "_llm_type", "chat"))

    def _classify(self, state: Any, questions: Mapping[str, Any]) -> ClassifierResponse:
        return finish(self._decide(state, questions, AT_ONCE))  # type: ignore[no-any-return]

    async def _aclassify(self, state: Any, questions: Mapping[str, Any]) -> ClassifierResponse:
        return await self._decide(state, questions, AWAITED)

    async def _decide(self, state: Any, questions: Mapping[str, Any], driver: Driver) -> ClassifierResponse:
        answers, spent = dict[str, Any](), list[Any]()
        for name, question in questions.items():
            if question.type != "noul":
                raise ValueError(f"{name}: a chat model answers Noul questions, not {question.type}")
            criteria = question.criteria.model_dump() if question.criteria else ""
            instructions = SystemMessage(f"{ASKED} {question.instructions} {criteria}".strip())
            p, replies = await self._ask([instructions, HumanMessage(f"{state}")], driver)
            spent += [getattr(each, "usage_metadata", None) for each in replies]
            answers |= {} if p is None else {name: NoulAnswer(type="noul", noul=p)}
        tokens = ("input_tokens", "output_tokens")
        usage: Any = {key: sum(each[key] for each in spent) for key in tokens} if all(spent) else None
        return ClassifierResponse(model=self.model, answers=answers, usage=usage)

    async def _ask(self, asked: Any, driver: Driver) -> tuple[float | None, list[Any]]:
        """Return the probability of yes (None if no reply says yes or no), and the replies."""
        replies = list[Any]()
        if hasattr(find_model(self.chat), "logprobs"):
            model = bind_within(self.chat, lambda each: each.bind(logprobs=True, top_logprobs=20))
            try:
                replies.append(await driver.do(model.invoke, model.ainvoke, asked))
            except Exception as error:
                if not is_refusal(error):
                    raise
            if replies and (p := read_logprobs(replies[0].response_metadata)) is not None:
                return p, replies
        model = bind_within(self.chat, without_cache)  # LangChain's cache gives equal prompts the same reply
        left = [asked] * (self.samples - len(replies))
        replies += await driver.do(model.batch, model.abatch, left) if left else []
        votes = [found[0] == "yes" for each in replies if (found := _WORD.search(_said(each.text)))]
        return (sum(votes) / len(votes) if votes else None), replies


def read_logprobs(metadata: Mapping[str, Any]) -> float | None:
    """Return P(yes) / (P(yes) + P(no)) at the first token after reasoning and punctuation; None if unknown.

    An unlisted word is at most as likely as the least likely listed one.
    """
    tokens = (metadata.get("logprobs") or {}).get("content") or ()
    thoughts = [at for at, each in enumerate(tokens, 1) if "</think>" in each["token"]]
    for token in (each for each in tokens[thoughts[-1] if thoughts else 0 :] if _said(each["token"])):
        listed = [token, *(token.get("top_logprobs") or ())]
        seen = {each["token"]: math.exp(each["logprob"]) for each in listed}
        yes, no = (sum(seen[each] for each in seen if _said(each) == word) for word in ("yes", "no"))
        if yes + no < LEAST:
            break
        unlisted = max(0.0, min(*seen.values(), 1 - sum(seen.values())))
        return (yes or unlisted) / ((yes or unlisted) + (no or unlisted))
    return None


def _said(text: Any) -> str:
    return str(text).rpartition("</think>")[2].strip(" \n\"'*.,▁Ġ").casefold()
