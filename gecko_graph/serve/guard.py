"""Access control and limits: hosts, origins, the token, body sizes; it runs before everything else.

A page of another site can reach a loopback server through a name that resolves to it (DNS rebinding), or directly with
its `Origin`: both headers are checked. No answer allows another origin to read it.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .sessions import HttpRefusal

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
MAX_BODY = 1_000_000
TOKEN = "x-gecko-token"


class BodyTooLarge(ClientDisconnect): ...


class Guard:
    """An ASGI application behind the checks.

    Args:
        app: The application.
        hosts: Accepted names in `Host`, without ports; empty accepts any, if a token is required.
        origins: Further accepted origins, `https://name:port`.
        token: Required in `X-Gecko-Token`, or as Bearer on the server's own paths.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Collection[str] = LOOPBACK,
        origins: Collection[str] = (),
        token: str | None = None,
    ) -> None:
        self._app, self._hosts, self._origins = app, frozenset(hosts), frozenset(origins)
        self._token = token.encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # no websockets are served
            await self._app(scope, receive, send)
            return
        headers = {str(key, "latin-1"): str(one, "latin-1") for key, one in reversed(scope["headers"])}  # first counts
        if fault := self._find_fault(scope, headers):
            await HttpRefusal(*fault).respond()(scope, receive, send)
            return
        left = MAX_BODY

        async def limited() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise BodyTooLarge
            return message

        await self._app(scope, limited, send)

    def _find_fault(self, scope: Scope, headers: Mapping[str, str]) -> tuple[int, str] | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._hosts and _name_of(f"//{host}") not in self._hosts:
            return 403, "Host: this server does not answer to that name"
        if origin is not None and origin not in self._origins and not _is_same(origin, host):
            return 403, "Origin: requests from other sites are refused"
        path = str(scope["path"])
        if headers.get("sec-fetch-site") == "cross-site" and origin is None and path != "/_gecko/":
            return 403, "requests from other sites are refused"  # an image or a link, which sends no Origin
        if self._token and path not in ("/_gecko", "/_gecko/") and not self._has_token(path, headers):
            return 401, "the server's token is missing or wrong (X-Gecko-Token)"
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:20]) > MAX_BODY:
            return 413, f"a body may have at most {MAX_BODY} bytes"
        return None

    def _has_token(self, path: str, headers: Mapping[str, str]) -> bool:
        given = headers.get(TOKEN)
        is_own = path.startswith("/_gecko/") or path == "/mcp" or (path.startswith("/s/") and path.endswith("/mcp"))
        if given is None and is_own:
            kind, _, given = headers.get("authorization", "").partition(" ")
            given = given if kind.lower() == "bearer" else ""
        return hmac.compare_digest((given or "").encode(), self._token or b"")


def _name_of(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def _is_same(origin: str, host: str) -> bool:
    return origin in (f"http://{host}", f"https://{host}")
