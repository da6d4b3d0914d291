"""What a model's exception means, without knowing its client: a refused feature, tokens spent in vain, words for it."""

from __future__ import annotations

from typing import Any

from ..errors import RunFailure
from ..masking import mask
from .usage import is_count

_LONGEST = 300

# what a server answers that knows no response_format or no tools
_REFUSALS = frozenset({400, 415, 422, 501})

# what clients raise that trip over a reply which is not what they expect
_STUMBLES = (AttributeError, IndexError, KeyError, TypeError)


def failure_of(error: Exception) -> str:
    """Return an exception as one short line, without keys."""
    text = " ".join(mask(message_of(error)).split())
    if type(error).__name__ == "LengthFinishReasonError":
        text = "the model's reply was cut off at its length limit"
    elif isinstance(error, _STUMBLES):
        text = f"the model's reply could not be read ({type(error).__name__}: {text})"
    elif not isinstance(error, RunFailure):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def message_of(error: BaseException) -> str:
    """Return an exception's message as text that can be kept; empty where its own `__str__` raises."""
    try:
        return str(error).encode("utf-8", "replace").decode("utf-8")
    except Exception:  # noqa: BLE001 - the boundary to models and users' tools: an error's text is foreign code, too
        return ""


def is_refusal(error: Exception) -> bool:
    """Return whether the server may accept the same question without structured output.

    Too long a prompt is refused with the same status, and stays too long.
    """
    if isinstance(error, NotImplementedError):
        return True
    status = getattr(error, "status_code", None)
    if not isinstance(status, int) or status not in _REFUSALS:
        return False
    text = f"{getattr(error, 'code', '')} {message_of(error)}".lower()
    return not ("context_length" in text or "context length" in text or "maximum context" in text)


def tokens_of(error: Exception) -> tuple[int, int]:
    """Return input and output tokens of a reply that the client threw away, for example one cut off at its limit."""
    usage: Any = getattr(getattr(error, "completion", None), "usage", None)
    given, made = getattr(usage, "prompt_tokens", 0), getattr(usage, "completion_tokens", 0)
    return (given, made) if is_count(given) and is_count(made) else (0, 0)
