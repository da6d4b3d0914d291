"""What a model's exception means, without knowing its client: a refused feature, tokens spent in vain, words for it."""

from __future__ import annotations

import re
from http.client import responses
from typing import Any

from langchain_core.language_models import BaseChatModel

from ..errors import RunFailure
from ..masking import mask
from ..values.paths import shorten
from .doubt import status_of_error
from .usage import is_count

_LONGEST = 300

# what a server answers that knows no response_format or no tools
_REFUSALS = frozenset({400, 415, 422, 501})

# what to look at where a server answers this, whatever is asked
_ADDRESS = "base_url (most servers want /v1 at its end) and the model's name"
_CHECKS = {401: "the key in {keys}", 403: "whether the key in {keys} may use this model", 404: _ADDRESS}
_PAGE = re.compile(r"(?i)<(?:html|!doctype)|^'str' object has no attribute")

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
    return shorten(text, _LONGEST)


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


def find_setup_problem(error: Exception, model: BaseChatModel, *, has_replied: bool) -> str | None:
    """Return what is wrong with key, address or name of a model, in one line; None where asking again may help.

    A page in HTML, or a text over which its client stumbles, is of a wrong address, unless it has replied before.
    """
    status = getattr(error, "status_code", None) or status_of_error(error)
    status = status if isinstance(status, int) else 0
    is_page = not has_replied and _PAGE.search(f"{message_of(error)} {getattr(error, 'body', '')}") is not None
    if status not in _CHECKS and not is_page:
        return None
    code = f"{status} {responses.get(status, '')}".strip() if status else "no model's reply"
    said = "a web page" if is_page else failure_of(error).partition(" - ")[2]
    address = getattr(model, "openai_api_base", None) or getattr(model, "base_url", None)
    asked = f"model {name_of(model)!r}{f' at {address}' if address else ''}"
    keys = " or ".join(model.lc_secrets.values()) or "its settings"
    return f"{asked}: {code}{f' ({said})' if said else ''}: check {_CHECKS.get(status, _ADDRESS).format(keys=keys)}"


def name_of(model: BaseChatModel) -> str:
    """Return a chat model's own name, as the provider knows it."""
    return str(getattr(model, "model_name", "") or getattr(model, "model", ""))


def tokens_of(error: Exception) -> tuple[int, int]:
    """Return input and output tokens of a reply that the client threw away, for example one cut off at its limit."""
    usage: Any = getattr(getattr(error, "completion", None), "usage", None)
    given, made = getattr(usage, "prompt_tokens", 0), getattr(usage, "completion_tokens", 0)
    return (given, made) if is_count(given) and is_count(made) else (0, 0)
