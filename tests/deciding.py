"""Decision models with written answers, for tests: langchain-core's, and a stand-in for OpenAI's service."""

from __future__ import annotations

import json
from typing import Any

import httpx
from langchain_core.decisions import BaseDecisionModel, ClassifierResponse, NoulAnswer
from langchain_openai.decisions import OpenAIDecisions
from pydantic import Field


class Decider(BaseDecisionModel):
    """Answers by a function, a number for all, or one after the other from a list; keeps what it was asked."""

    model: str = "gpt-5-mini"
    say: Any = 0.95
    asked: list[tuple[str, str]] = Field(default_factory=list)
    usage: Any = Field(default_factory=lambda: {"input_tokens": 100, "output_tokens": 1})

    @property
    def _provider(self) -> str:
        return "tests"

    def _classify(self, state: Any, questions: dict[str, Any]) -> ClassifierResponse:
        answers = {}
        for name, question in questions.items():
            self.asked.append((str(state), str(question.instructions)))
            p = self.say
            if isinstance(p, list):
                p = p.pop(0)
            elif callable(p):
                p = p(str(state), str(question.instructions))
            if isinstance(p, Exception):
                raise p
            if p is not None:
                answers[name] = NoulAnswer(type="noul", noul=p)
        return ClassifierResponse(model=self.model, answers=answers, usage=self.usage)


def openai(say: float | list[float | None] | None) -> tuple[OpenAIDecisions, list[Any]]:
    """Return langchain-openai's own model over a service that answers so, and the requests that it is sent."""
    sent: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        sent.append(body)
        answers = []
        for each in body["questions"]:
            p = say.pop(0) if isinstance(say, list) else say
            known = {"type": "refusal"} if p is None else {"type": "predicate", "probability": p}
            answers.append({"name": each["name"], **known})
        usage = {"input_tokens": 40, "output_tokens": 2}
        return httpx.Response(200, json={"model": "gpt-5-mini", "answers": answers, "usage": usage})

    client = httpx.Client(transport=httpx.MockTransport(answer))
    return OpenAIDecisions(model="gpt-5-mini", api_key="key", http_client=client), sent
