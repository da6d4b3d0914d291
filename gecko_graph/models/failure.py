"""The meaning of an exception: whether a call may have taken effect, and what is wrong with a model's setup."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
import traceback
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import responses
from operator import attrgetter
from typing import Any
from urllib.error import URLError

from ..errors import InDoubt, NotMade, Refused, RunFailure
from ..masking import mask
from ..values.places import shorten

MCP_REFUSALS = frozenset((-32601, -32602, -32020, -32021, -32022, -32042))
"""MCP error codes of invalid requests (method, arguments, headers, capabilities, version, URL): nothing ran."""
REFUSED = {"gecko_refused": True}
"""In a message's `additional_kwargs`: the call was refused before anything was done."""
TOO_MANY = 429

_NO_REFUSALS = frozenset((408, 409, 425))  # timeout, a conflict possibly with this very call, too early
_MCP_CALL = ("mcp.client.session", "call_tool")
_UNANSWERED = frozenset(("TransportError", "Timeout", "ConnectionError"))
_STATUS = {
    "httpx.HTTPStatusError": "response.status_code", "requests.HTTPError": "response.status_code",
    "openai.APIStatusError": "status_code", "urllib.error.HTTPError": "code", "aiohttp.ClientResponseError": "status",
}  # fmt: skip
"""HTTP clients' errors with a response, and the attribute of its status."""
_HTTPX = ("ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol", "InvalidURL")
_UNOPENED = ("requests.ConnectTimeout", *(f"httpx.{name}" for name in _HTTPX))
"""HTTP clients' errors without an opened connection."""


def is_in_doubt(error: BaseException) -> bool:
    """Return False only for an error which states that nothing was done.

    These are `Refused`, `NotMade`, a refusing HTTP status, a connection that was never opened, MCP's invalid requests,
    and arguments that a LangChain tool rejects. Clients' errors are recognized without importing their packages.
    """
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_in_doubt, error.exceptions))
    frames = _frames(error)
    if _MCP_CALL in frames:
        return getattr(getattr(error, "error", None), "code", None) not in MCP_REFUSALS
    if isinstance(error, URLError) and isinstance(error.reason, BaseException):
        return is_in_doubt(error.reason)
    said = isinstance(error, Refused | NotMade | ConnectionRefusedError | socket.gaierror)
    return not (said or _find_kind(error, _UNOPENED) or refuses(status_of_error(error)) or _is_unbegun(frames))


def is_lost(error: BaseException) -> bool:
    """Return whether a read that raised this error is repeated, because no answer came. Errors are known by name."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_lost, error.exceptions))
    names = {kind.__name__ for kind in type(error).__mro__}
    kinds = InDoubt | TimeoutError | ConnectionError | asyncio.CancelledError
    through_mcp = _MCP_CALL in _frames(error) and is_in_doubt(error)
    return isinstance(error, kinds) or through_mcp or not _UNANSWERED.isdisjoint(names)


def refuses(status: Any) -> bool:
    """Return whether an HTTP status states that nothing was done: most 4xx."""
    return isinstance(status, int) and 400 <= status < 500 and status not in _NO_REFUSALS


def status_of_error(error: BaseException | None) -> Any:
    """Return the HTTP status in an error of a well-known client, None if there is none."""
    kind = _find_kind(error, _STATUS)
    try:
        return attrgetter(_STATUS[kind])(error) if kind else None
    except AttributeError:  # created without a response
        return None


def retry_after_of_error(error: BaseException | None) -> float:
    """Return the seconds to wait before a retry by a well-known client's error, 0 if it has none."""
    headers: Any = getattr(getattr(error, "response", error), "headers", None)
    return read_retry_after(headers.get("retry-after") if headers else None) or 0.0


def read_retry_after(text: Any) -> float | None:
    """Return the seconds of a Retry-After header, a number or an HTTP date; None if it is neither."""
    text = str(text or "").strip()
    if text.isdecimal() and len(text) < 10:
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return max((at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)


def _find_kind(error: BaseException | None, names: Iterable[str]) -> str | None:
    """Return the first of these class names that an error has; packages that are not loaded are skipped."""
    for name in names:
        module, _, kind = name.rpartition(".")
        if isinstance(error, getattr(sys.modules.get(module), kind, ())):
            return name
    return None


def _frames(error: BaseException) -> list[tuple[str, str]]:
    """Return module and function of each frame of the traceback, outermost first."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return [(str(frame.f_globals.get("__name__")), frame.f_code.co_name) for frame in frames]


def _is_unbegun(frames: list[tuple[str, str]]) -> bool:
    """Return whether a LangChain tool was still parsing its arguments, so that no user's function had started."""
    own = (f"{__package__}.", "gecko_graph.tools.functions", "gecko_graph.tools.typed", "asyncio.")
    for module, name in frames:
        if (module, name) == ("langchain_core.tools.base", "_to_args_and_kwargs"):
            return True
        is_invoked = module.startswith("langchain_core.tools.") and name in ("invoke", "run", "ainvoke", "arun")
        if not is_invoked and not module.startswith(own):
            return False
    return False


_LONGEST = 300

# status codes of servers without support for response_format or tools
_REFUSALS = frozenset({400, 415, 422, 501})

# phrases of OpenAI, llama.cpp, vLLM, Anthropic and LiteLLM
_TOO_LONG = re.compile(
    r"(?i)context[_ ]?(?:length|size|window)|maximum context|prompt is too long|input tokens exceed|too many tokens"
)

# what to check if a server answers with this status
_ADDRESS = "base_url (most servers want /v1 at its end) and the model's name"
_CHECKS = {401: "the key in {keys}", 403: "whether the key in {keys} may use this model", 404: _ADDRESS}
_PAGE = re.compile(r"(?i)<(?:html|!doctype)|^'str' object has no attribute")

# errors of clients for a reply of unexpected form
_STUMBLES = (AttributeError, IndexError, KeyError, TypeError)


def failure_of(error: Exception) -> str:
    """Return an exception as one short line, without secrets."""
    text = " ".join(mask(message_of(error)).split())
    if type(error).__name__ == "LengthFinishReasonError":
        text = "the model's reply was truncated at its length limit"
    elif isinstance(error, _STUMBLES):
        text = f"the model's reply could not be read ({type(error).__name__}: {text})"
    elif not isinstance(error, RunFailure):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return shorten(text, _LONGEST)


def message_of(error: BaseException) -> str:
    """Return an exception's message as storable text; "" if its `__str__` raises."""
    try:
        return str(error).encode("utf-8", "replace").decode("utf-8")
    except Exception:  # noqa: BLE001 - the boundary to models and users' tools: `__str__` is foreign code
        return ""


def is_refusal(error: Exception) -> bool:
    """Return whether the server may accept the question without structured output.

    A prompt that is too long is rejected with the same status, and stays too long.
    """
    if isinstance(error, NotImplementedError):
        return True
    status = getattr(error, "status_code", None)
    if not isinstance(status, int) or status not in _REFUSALS:
        return False
    return not _TOO_LONG.search(f"{getattr(error, 'code', '')} {message_of(error)}")


def find_setup_problem(error: Exception, model: object, *, has_replied: bool) -> str | None:
    """Return what is wrong with a model's key, address or name, in one line; None if a retry may help.

    An HTML page, or a text on which the client fails, is a sign of a wrong address, unless the model replied before.
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
    keys = " or ".join(getattr(model, "lc_secrets", {}).values()) or "its settings"
    return f"{asked}: {code}{f' ({said})' if said else ''}: check {_CHECKS.get(status, _ADDRESS).format(keys=keys)}"


def name_of(model: object) -> str:
    return str(getattr(model, "model_name", "") or getattr(model, "model", ""))
