"""Models that keep asking a failing endpoint, and what their cases hear of it.

The client repeats a question for minutes. A question that stays unanswered is recorded for its case (`watch`): the case
then counts as not reached, not as wrong, and runs again at the next start.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import LLMResult

from gecko_graph.errors import RunFailure
from gecko_graph.models.factory import chat_model
from gecko_graph.models.failure import failure_of, refuses

FIRST_RETRIES, PAUSE_S = 5, 7.0
"""Retries within the first seconds, and the mean pause of OpenAI's client from then on."""

_DENIED = frozenset({401, 403, 404})
_OWN = ("LengthFinishReason", "ContentFilter")
"""Errors that tell of the reply and not of the endpoint."""


@dataclass(slots=True)
class Trouble:
    """The trouble of a case's models.

    Args:
        given_up: Why questions were never answered, although they were repeated.
        denied: Why the endpoint accepts no question at all: a wrong key or address.
        refused: Why it refused single questions (a 400): too long, or of an unsupported kind.
        answered: The number of answered questions.
    """

    given_up: list[str] = field(default_factory=list)
    denied: str = ""
    refused: list[str] = field(default_factory=list)
    answered: int = 0


_trouble: ContextVar[Trouble | None] = ContextVar("trouble", default=None)


@contextmanager
def watch() -> Iterator[Trouble]:
    """Record the trouble of the models asked in this context, including tasks and threads started in it."""
    heard = Trouble()
    token = _trouble.set(heard)
    try:
        yield heard
    finally:
        _trouble.reset(token)


class _Listener(BaseCallbackHandler):
    run_inline = True

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        (_trouble.get() or Trouble()).answered += 1

    def on_llm_error(self, error: BaseException, **_: Any) -> None:
        heard, status = _trouble.get() or Trouble(), getattr(error, "status_code", None)
        if isinstance(error, RunFailure | NotImplementedError) or any(word in type(error).__name__ for word in _OWN):
            return
        why = failure_of(error) if isinstance(error, Exception) else repr(error)
        if status in _DENIED:
            heard.denied = why
        elif refuses(status) and status != 429:
            heard.refused.append(why)
        else:
            heard.given_up.append(why)


@cache
def patient_model(name: str, *, base_url: str | None = None, patience_s: float = 600.0) -> BaseChatModel:
    """Return a chat model by name whose client repeats a question for about `patience_s` seconds."""
    model: Any = chat_model(name, base_url=base_url)
    given = {key: getattr(model, key) for key in model.model_fields_set if "client" not in key}
    retries = FIRST_RETRIES + round(patience_s / PAUSE_S)
    made: BaseChatModel = type(model)(**{**given, "max_retries": retries, "callbacks": [_Listener()]})
    return made
