"""Whether a call that raised may have taken effect: it may, but for errors that say that nothing was done."""

from __future__ import annotations

import asyncio
import socket
import sys
import traceback
from collections.abc import Iterable
from operator import attrgetter
from typing import Any
from urllib.error import URLError

from ..errors import InDoubt, NotMade, Refused

MCP_REFUSALS = frozenset((-32601, -32602, -32020, -32021, -32022, -32042))
"""Codes of MCP's errors of the request itself (method, arguments, headers, capabilities, version, URL): not run."""
REFUSED = {"gecko_refused": True}
"""In a message's `additional_kwargs`: the error result was there before anything was done."""
TOO_MANY = 429

_NO_REFUSALS = frozenset((408, 409, 425))  # too late, in conflict with what may be this very call, too early
_MCP_CALL = ("mcp.client.session", "call_tool")
_UNANSWERED = frozenset(("TransportError", "Timeout", "ConnectionError"))
_STATUS = {
    "httpx.HTTPStatusError": "response.status_code", "requests.HTTPError": "response.status_code",
    "openai.APIStatusError": "status_code", "urllib.error.HTTPError": "code",
}  # fmt: skip
"""Errors of HTTP clients that have an answer, and where its status is."""
_HTTPX = ("ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol", "InvalidURL")
_UNOPENED = ("requests.ConnectTimeout", *(f"httpx.{name}" for name in _HTTPX))
"""Errors of HTTP clients whose connection was never opened."""


def is_in_doubt(error: BaseException) -> bool:
    """Return False only for an error that says that nothing was done; all others leave it open.

    Those are `Refused`, `NotMade`, an HTTP status that refuses, a connection that was never opened, MCP's errors of the
    request itself, and arguments that a LangChain tool does not take. Clients' errors are known by their own classes.
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
    """Return whether a read that raised this is made again, because no answer came. Errors are known by name."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_lost, error.exceptions))
    names = {kind.__name__ for kind in type(error).__mro__}
    kinds = InDoubt | TimeoutError | ConnectionError | asyncio.CancelledError
    through_mcp = _MCP_CALL in _frames(error) and is_in_doubt(error)
    return isinstance(error, kinds) or through_mcp or not _UNANSWERED.isdisjoint(names)


def refuses(status: Any) -> bool:
    """Return whether an HTTP status says that nothing was done: a 4xx, but for those that leave it open."""
    return isinstance(status, int) and 400 <= status < 500 and status not in _NO_REFUSALS


def status_of_error(error: BaseException | None) -> Any:
    """Return the HTTP status in an error of a well-known client; None where there is none."""
    kind = _find_kind(error, _STATUS)
    try:
        return attrgetter(_STATUS[kind])(error) if kind else None
    except AttributeError:  # it was made without an answer
        return None


def _find_kind(error: BaseException | None, names: Iterable[str]) -> str | None:
    """Return which of these classes an error has: the packages' own, which are loaded then, and none of that name."""
    for name in names:
        module, _, kind = name.rpartition(".")
        if isinstance(error, getattr(sys.modules.get(module), kind, ())):
            return name
    return None


def _frames(error: BaseException) -> list[tuple[str, str]]:
    """Return module and function of each frame that the error came through, outermost first."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return [(str(frame.f_globals.get("__name__")), frame.f_code.co_name) for frame in frames]


def _is_unbegun(frames: list[tuple[str, str]]) -> bool:
    """Return whether a LangChain tool was still reading its arguments: before that stands no function of a user's."""
    own = (f"{__package__}.", "gecko_graph.tools.functions", "asyncio.")
    for module, name in frames:
        if (module, name) == ("langchain_core.tools.base", "_to_args_and_kwargs"):
            return True
        is_invoked = module.startswith("langchain_core.tools.") and name in ("invoke", "run", "ainvoke", "arun")
        if not is_invoked and not module.startswith(own):
            return False
    return False
