"""Fetching a document that the user allowed to be fetched: at most 10 MB, at most 10 seconds a wait.

By https only, but for what this machine serves to itself.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx

from ...errors import ToolkitError
from ...state import Json
from ...values.documents import parse_document

MAX_BYTES = 10_000_000
TIMEOUT_S = 10.0


def local_origin(url: str) -> str:
    """Return scheme, host and port of a plain http address of this machine; empty for any other."""
    try:
        parts = urlsplit(url)
        is_local = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
        return f"http://{parts.hostname}:{parts.port or 80}" if is_local else ""
    except ValueError:
        return ""


def fetch_document(url: str) -> Json:
    """Return the JSON value of a YAML or JSON document on the web.

    Raises:
        ToolkitError: It is not https, cannot be fetched, is too large or is broken.
    """
    origin = local_origin(url)
    if not origin and not url.lower().startswith("https://"):
        raise ToolkitError(f"{url!r} cannot be read: only https addresses are")

    def check(request: httpx.Request) -> None:
        if local_origin(str(request.url)) != origin or (not origin and request.url.scheme != "https"):
            raise ToolkitError(f"{url}: redirects to {str(request.url)!r}, which is not read")

    raw = bytearray()
    client = httpx.Client(follow_redirects=True, timeout=TIMEOUT_S, event_hooks={"request": [check]})
    try:
        with client, client.stream("GET", url, headers={"User-Agent": "gecko-graph"}) as reply:
            reply.raise_for_status()
            for chunk in reply.iter_bytes():
                raw += chunk
                if len(raw) > MAX_BYTES:
                    raise ToolkitError(f"{url}: larger than {MAX_BYTES // 1_000_000} MB; is this the right address?")
        return parse_document(raw.decode("utf-8-sig"), where=url)
    except UnicodeDecodeError:
        raise ToolkitError(f"{url}: not UTF-8") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ToolkitError(f"{url}: cannot be fetched: {str(error).partition(chr(10))[0]}") from None
