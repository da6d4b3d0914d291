"""Fetching a document that the user allowed to be fetched: https only, at most 10 MB, at most 10 seconds a wait."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from typing import IO

from ...documents import parse_document
from ...errors import ToolkitError
from ...state import Json

MAX_BYTES = 10_000_000
TIMEOUT_S = 10.0


class _HttpsOnly(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never away from https."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """As urllib's, refusing other schemes."""
        if not newurl.lower().startswith("https://"):
            raise ToolkitError(f"{req.full_url}: redirects to {newurl!r}; only https addresses are read")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetch_document(url: str) -> Json:
    """Return the JSON value of a YAML or JSON document on the web.

    Raises:
        ToolkitError: It is not https, cannot be fetched, is too large or is broken.
    """
    if not url.lower().startswith("https://"):
        raise ToolkitError(f"{url!r} cannot be read: only https addresses are")
    opener = urllib.request.build_opener(_HttpsOnly)
    try:
        with opener.open(
            urllib.request.Request(url, headers={"User-Agent": "gecko-graph"}), timeout=TIMEOUT_S
        ) as reply:
            raw: bytes = reply.read(MAX_BYTES + 1)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ToolkitError(f"{url}: cannot be fetched: {error}") from None
    if len(raw) > MAX_BYTES:
        raise ToolkitError(f"{url}: larger than {MAX_BYTES // 1_000_000} MB; is this the right address?")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ToolkitError(f"{url}: not UTF-8") from None
    return parse_document(text, where=url)
