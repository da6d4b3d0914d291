"""The real functions of an OpenAPI document's tools: a call is one HTTP request, its answer the tool's result.

- Result: JSON content; text as text; of other content its media type and size. No content is null.
- A 4xx, and any failure of a read, is an error result: the answer's JSON object, else `{"http_status", "body"}`
  or `{"error"}`. Status and `retry_after` (seconds) are in the message's `additional_kwargs["http"]`. A write with an
  unknown effect (5xx, 408, 409, 425, time-out, connection lost, too large an answer) raises `InDoubt`.
- Redirects are followed only within the origin, and for writes only 303, 307 and 308. No cookies are kept, and
  neither proxies nor netrc are taken from the environment; for a proxy pass `client=httpx.Client(proxy=...)`.
- Each call opens its own connection: one that the server has closed meanwhile would leave a write in doubt.
- Credentials are added to the request last, and masked in answers.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from math import ceil
from typing import Any, NamedTuple

import httpx
from langchain_core.messages import ToolMessage

from ...errors import InDoubt, Refused, ToolkitError
from ...models.failure import REFUSED, read_retry_after, refuses
from ...state import CallStatus, Json, JsonObject
from ...values.media import set_media_aside
from ...values.rows import reject_constant
from ..spec import ToolSpec
from .credentials import Auth, Credentials, Secrets, Server, resolve_server
from .fields import find_unsendable
from .request import SEQUENCES, build_request

TIMEOUT_S = 30.0
MAX_BYTES = 5_000_000
MAX_REDIRECTS = 5
_UNSENT = (
    httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
)  # fmt: skip


@cache
def default_client() -> httpx.Client:
    """Return the shared default client: no keep-alive, no settings from the environment."""
    limits, headers = httpx.Limits(max_keepalive_connections=0), {"user-agent": "gecko-graph"}
    return httpx.Client(trust_env=False, timeout=TIMEOUT_S, limits=limits, headers=headers)


class _Failed(Exception):
    """An exchange without an answer; `sent` is False if the server cannot have acted on the request."""

    def __init__(self, why: str, *, sent: bool = True) -> None:
        super().__init__(why)
        self.sent = sent


class _Answer(NamedTuple):
    status: int
    headers: httpx.Headers
    content: bytes
    following: httpx.Request | None
    """The redirected request, if any."""


class HttpFunction:
    """A tool's real function: takes its arguments by name, and `idempotency_key` if a header carries one."""

    def __init__(self, tool: ToolSpec, base: str, credentials: Credentials, client: httpx.Client | None = None) -> None:
        binding = tool.binding
        self.__name__ = tool.name
        self._tool, self._base, self._credentials, self._client = tool, base, credentials, client
        self._where = f"{binding.method.upper()} {binding.path}" if binding else tool.name
        self._security = binding.security if binding else ()

    def of(self, tool: ToolSpec) -> HttpFunction:
        """Return the function of a changed tool; its effect decides on doubt, its idempotency on the key's header."""
        same = (self._tool.trusted, self._tool.idempotency) == (tool.trusted, tool.idempotency)
        return self if same else HttpFunction(tool, self._base, self._credentials, self._client)

    def __repr__(self) -> str:
        return f"<{self.__name__}: {self._where}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HttpFunction) and (self._tool, self._base) == (other._tool, other._base)

    def __hash__(self) -> int:
        return hash((self._where, self._base))

    def __call__(self, /, **args: Any) -> Any:
        """Send the request and return the result; a `ToolMessage` with status `error` if it fails.

        Raises:
            InDoubt: A write may have taken effect.
            NotMade: A credential is missing.
        """
        extra: dict[str, str] = {}
        if self._tool.key_argument == "idempotency_key" and "idempotency_key" in args:
            extra[str(self._tool.idempotency).removeprefix("header:").lower()] = str(args.pop("idempotency_key"))
        secrets = self._credentials.choose(self._security, self._where)
        try:
            answer = self._exchange(build_request(self._tool, self._base, args, extra=extra), secrets)
        except (_Failed, ValueError) as failed:  # ValueError: an argument that cannot be sent
            error: JsonObject = {"error": f"{self._where}: {failed}"}
            in_doubt = getattr(failed, "sent", False)
        else:
            if 200 <= answer.status < 300:
                return secrets.remove(_read_value(answer))
            error, in_doubt = _read_error(answer), not (303 < answer.status < 400 or refuses(answer.status))
        error = secrets.remove(error)
        if in_doubt and not self._tool.trusted:
            raise InDoubt(f"{self._where} may have taken effect: {json.dumps(error, ensure_ascii=False)[:500]}")
        result = error["body"] if isinstance(error.get("body"), dict) else error
        content: list[str | dict[Any, Any]] = [{"type": "text", "text": json.dumps(result, ensure_ascii=False)}]
        more = {"http": error, **({} if in_doubt else REFUSED)}
        return ToolMessage(content, status="error", tool_call_id="", additional_kwargs=more)

    def _exchange(self, request: httpx.Request, secrets: Secrets) -> _Answer:
        """Send the request and follow redirects. Raises _Failed."""
        client = self._client or default_client()
        timeout_s = client.timeout.read or TIMEOUT_S
        deadline = time.monotonic() + timeout_s
        method = request.method
        for name, value in client.headers.items():
            request.headers.setdefault(name, value)
        for _ in range(MAX_REDIRECTS + 1):
            secrets.apply(request)
            request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), timeout_s)
            answer = _send(client, request, deadline)
            following = _follow_redirect(request, answer)
            if following is None:
                if request.method != method and answer.status >= 300:
                    raise _Failed(f"it was accepted, but its redirect was answered with {answer.status}")
                return answer
            request = following
        raise _Failed(f"more than {MAX_REDIRECTS} redirects")


def read_answer(status: int, headers: httpx.Headers, content: bytes) -> tuple[CallStatus, Json]:
    """Return status and result of a call from an HTTP answer, as `HttpFunction` does."""
    answer = _Answer(status, headers, content, None)
    if 200 <= status < 300:
        return "ok", set_media_aside(_read_value(answer))
    error = _read_error(answer)
    return "error", error["body"] if isinstance(error["body"], dict) else error


def add_functions(
    tools: Iterable[ToolSpec], *, server: Server | None, auth: Auth | None, client: httpx.Client | None
) -> list[ToolSpec]:
    """Return the tools with their real functions, if a server is known. Raises ToolkitError."""
    given = list(tools)
    if client is not None and not isinstance(client, httpx.Client):
        raise ToolkitError(f"client: expected an httpx.Client, got {type(client).__name__}")
    variables = {name for tool in given if tool.binding for name in (tool.binding.server or {}).get("variables", {})}
    if isinstance(server, Mapping) and (unknown := {*server} - variables):
        raise ToolkitError(f"server: unknown variables {sorted(unknown)}; the document has {sorted(variables)}")
    credentials = Credentials(auth, given)
    bases = [resolve_server(tool.binding.server if tool.binding else None, server) for tool in given]
    made = [
        replace(tool, real=HttpFunction(tool, base, credentials, client)) if base else tool
        for tool, base in zip(given, bases, strict=True)
    ]
    return [replace(tool, simulate=partial(_refuse, why)) if (why := find_unsendable(tool)) else tool for tool in made]


def _refuse(why: str, _: JsonObject, /, **args: Any) -> Any:
    raise Refused(why)


def _send(client: httpx.Client, request: httpx.Request, deadline: float) -> _Answer:
    try:
        with closing(client.send(request, stream=True, follow_redirects=False)) as response:
            content = _read_content(response, deadline)
            return _Answer(response.status_code, response.headers, content, response.next_request)
    except _Failed:
        raise
    except _UNSENT as error:
        failed = _Failed(f"cannot reach the server ({type(error).__name__})", sent=False)
    except httpx.TimeoutException:
        failed = _Failed("no answer in time")
    except Exception as error:  # noqa: BLE001 - any error of a client; its text may contain credentials
        failed = _Failed(f"the connection was lost, or the answer is broken ({type(error).__name__})")
    raise failed


def _read_content(response: httpx.Response, deadline: float) -> bytes:
    content = b""
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > MAX_BYTES:
            raise _Failed(f"the answer is larger than {MAX_BYTES // 1_000_000} MB")
        if time.monotonic() > deadline:
            raise _Failed("the answer was not complete in time")
    return content


def _follow_redirect(request: httpx.Request, answer: _Answer) -> httpx.Request | None:
    is_read, following = request.method in ("GET", "HEAD"), answer.following
    if following is None or answer.status not in ((301, 302, 303, 307, 308) if is_read else (303, 307, 308)):
        return None
    here, there = request.url, following.url
    if (there.scheme, there.host, there.port) != (here.scheme, here.host, here.port) or there.userinfo:
        return None
    following.headers.update({"cookie": request.headers["cookie"]} if "cookie" in request.headers else {})
    return following


def _read_value(answer: _Answer) -> Json:
    if not answer.content:
        return None
    media, _, options = answer.headers.get("content-type", "").lower().partition(";")
    media, is_latin = media.strip(), "latin-1" in options or "iso-8859-1" in options
    try:
        text = answer.content.decode("latin-1" if is_latin else "utf-8-sig")
        if media in SEQUENCES:
            return [
                json.loads(one, parse_constant=reject_constant) for one in re.split("[\n\x1e]", text) if one.strip()
            ]
        if media.endswith("json") or not media:
            return json.loads(text, parse_constant=reject_constant)
    except (ValueError, RecursionError):
        return _read_file(media, answer.content)
    is_text = media.startswith("text/") or media.endswith(("xml", "javascript", "x-www-form-urlencoded"))
    return text if is_text else _read_file(media, answer.content)


def _read_file(media: str, content: bytes) -> JsonObject:
    """Return an image, audio, video or PDF as a content block, of other files type and size."""
    kind = media.partition("/")[0]
    if kind not in ("image", "audio", "video") and media != "application/pdf":
        return {"content_type": media, "bytes": len(content)}
    text = base64.b64encode(content).decode()
    return {"type": kind if kind != "application" else "file", "base64": text, "mime_type": media}


def _read_error(answer: _Answer) -> JsonObject:
    error: JsonObject = {"http_status": answer.status, "body": _read_value(answer)}
    if (retry_after := read_retry_after(answer.headers.get("retry-after"))) is not None:
        error["retry_after"] = ceil(retry_after)
    if answer.status < 400:
        error["location"] = answer.headers.get("location")
    return error
