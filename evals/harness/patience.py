"""Models that repeat questions to a failing endpoint: 429, 500, garbage or no answer delay a run, but lose no case.

The client's own retries last seconds, these last minutes. A question that stays unanswered is recorded for the case
(`watch`): the case then counts as not reached, not as wrong, and runs again at the next start.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from gecko_graph.errors import RunFailure
from gecko_graph.models.factory import chat_model
from gecko_graph.models.failure import failure_of

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0

# a garbled reply may be caused by the question itself: only a few more tries, a minute at most
GARBAGE_TRIES = 8

_BUSY = frozenset({408, 409, 425, 429})
_DENIED = frozenset({401, 403, 404})
_TROUBLE = ("Timeout", "Connect", "Network", "RemoteProtocol", "ReadError", "WriteError")


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


@cache
def patient_model(name: str, *, base_url: str | None = None, patience_s: float = 600.0) -> BaseChatModel:
    """Return a chat model by name, of a subclass of its class, that repeats a question for `patience_s` seconds.

    Raises:
        ModelError: It cannot be built.
    """
    model = cast("BaseChatModel", chat_model(name, base_url=base_url))
    made = model.model_copy()
    kind = type(f"Patient{type(model).__name__}", (_Patient, type(model)), {"__module__": __name__})
    object.__setattr__(made, "__class__", kind)
    object.__setattr__(made, "_patience_s", patience_s)
    return made


class _Patient:
    """Mixin before a chat model's class."""

    def _generate(self, messages: list[BaseMessage], **kwargs: Any) -> ChatResult:
        ask: Callable[..., ChatResult] = super()._generate  # type: ignore[misc]
        plan = _Plan(object.__getattribute__(self, "_patience_s"))
        while True:
            try:
                return _answered(ask(messages, **kwargs))
            except Exception as error:  # noqa: BLE001 - models raise anything; other errors are raised again
                time.sleep(plan.pause(error))

    async def _agenerate(self, messages: list[BaseMessage], **kwargs: Any) -> ChatResult:
        ask: Callable[..., Awaitable[ChatResult]] = super()._agenerate  # type: ignore[misc]
        plan = _Plan(object.__getattribute__(self, "_patience_s"))
        while True:
            try:
                return _answered(await ask(messages, **kwargs))
            except Exception as error:  # noqa: BLE001 - models raise anything; other errors are raised again
                await asyncio.sleep(plan.pause(error))


def _answered(result: ChatResult) -> ChatResult:
    if not result.generations:
        raise ValueError("the endpoint's reply has no choices")
    (_trouble.get() or Trouble()).answered += 1
    return result


class _Plan:
    """Decides how long to wait between the tries of one question, and when to give up."""

    def __init__(self, patience_s: float) -> None:
        self._end = time.monotonic() + patience_s
        self._tries = self._unreadable = 0

    def pause(self, error: Exception) -> float:
        """Return the seconds to wait before the next try; raise the error if there is none."""
        heard = _trouble.get() or Trouble()
        kind = trouble_of(error)
        self._tries += 1
        self._unreadable += kind == "garbage"
        pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (self._tries - 1)) * random.uniform(0.5, 1.0)
        if kind == "denied":
            heard.denied = failure_of(error)
        if not kind and isinstance(getattr(error, "status_code", None), int):
            heard.refused.append(failure_of(error))
        if kind not in {"busy", "garbage"}:
            raise error
        late = time.monotonic() + pause > self._end
        if late or (kind == "garbage" and self._unreadable >= GARBAGE_TRIES):
            heard.given_up.append(failure_of(error))
            raise error
        return pause


def trouble_of(error: Exception) -> str:
    """Classify an exception of a model's client: `busy`, `garbage`, `denied`, or empty (waiting does not help)."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status != 200:
        if status in _DENIED:
            return "denied"
        return "busy" if status in _BUSY or (status >= 500 and status != 501) else ""
    names = " ".join(each.__name__ for each in type(error).__mro__)
    if isinstance(error, OSError) or any(part in names for part in _TROUBLE):
        return "busy"
    if isinstance(error, RunFailure) or "LengthFinishReason" in names or "ContentFilter" in names:
        return ""
    readable = isinstance(error, NotImplementedError)
    stumbles = (AttributeError, IndexError, KeyError, TypeError, ValueError)
    return "garbage" if not readable and (isinstance(error, stumbles) or "ResponseValidation" in names) else ""
