"""The identity of requests: the method that counts (read or write), and the user's credential.

Names of headers and parameters are compared as frameworks do: in lower case, with `_` and `.` as `-`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from email import message_from_bytes
from email.policy import HTTP
from email.utils import collapse_rfc2231_value
from urllib.parse import quote, unquote, unquote_plus

import httpx

from ..tools.openapi.request import FORMS
from ..tools.spec import ToolSpec
from .sessions import HttpRefusal

KEY = "idempotency-key"
READS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that read, unless an operation's declared effect differs."""
_OVERRIDE = re.compile(
    r"-(?:http-?)?method-?|x-(?:(?:http|rest|original|forwarded)-)?(?:method|verb)(?:-override)?|"
    r"(?:http-)?method-override"
)
"""Headers and parameters that frameworks accept as the method: `X-HTTP-Method-Override`, `_method` and others."""
_CREDENTIAL = re.compile(
    r"auth|cookie|token|secret|passw|credential|signature|cert|jwt|saml|oidc|dpop|assertion|principal|identity|apikey|"
    r"(?<![a-z])(?:key|sig|sid|session|user(?!-agent)|user-?id|username|email|account|tenant|customer|merchant|member|"
    r"client-id|subject|org|organi[sz]ation|workspace|ssl|tls|dn|behalf|as|sudo|impersonate|role)(?![a-z])"
)
"""Headers and query parameters that identify the user, also those that a proxy sets for a client certificate."""


def find_method(request: httpx.Request) -> str:
    """Return the method that counts: a write named by an override, else the request's own.

    An override to a read is ignored: a service that does not know it would make the write. Raises HttpRefusal (400) if
    several writes are named.
    """
    named = {value.strip().upper() for name, value in _fields(request) if _OVERRIDE.fullmatch(_plain(name))}
    writes = named - READS - {""}
    if len(writes) > 1:
        raise HttpRefusal(400, "the request names several methods")
    return next(iter(writes), request.method)


def _fields(request: httpx.Request) -> Iterator[tuple[str, str]]:
    """Yield headers, query parameters and body fields, from which a service may read the method."""
    yield from request.headers.multi_items()
    yield from _pairs(request.url.query)
    content, media = request.read(), request.headers.get("content-type", FORMS[0]).lower()
    if FORMS[1] in media:
        given = f"content-type: {request.headers['content-type']}\r\n\r\n".encode()
        for part in message_from_bytes(given + content, policy=HTTP).walk():
            name = collapse_rfc2231_value(part.get_param("name", "", header="content-disposition") or "")
            yield name, bytes(part.get_payload(decode=True) or b"").decode("latin-1")
    elif "json" in media:
        with suppress(ValueError, RecursionError):
            members = json.loads(content)
            yield from ((name, str(value)) for name, value in members.items()) if isinstance(members, dict) else ()
    elif FORMS[0] in media:
        yield from _pairs(content)


def _pairs(content: bytes) -> Iterator[tuple[str, str]]:
    for one in re.split("[&;]", content.decode("latin-1")):
        name, _, value = one.partition("=")
        yield unquote_plus(name), unquote_plus(value)


def key_header(tool: ToolSpec | None) -> str:
    kind, _, header = str(tool.idempotency if tool else "").partition(":")
    return header.lower() if kind == "header" else KEY


def find_credential(request: httpx.Request, tool: ToolSpec | None) -> list[list[str]]:
    """Return the credentials of a request, by name: all headers and parameters that are or may be a credential.

    All names in the operation's security schemes count. A value that changes with each request, such as a fresh
    signature, makes each request a different user's.
    """
    alternatives = tool.binding.security if tool and tool.binding else ()
    known = {_plain(str(scheme.get("name", ""))) for one in alternatives for scheme in one.values()}
    keys = {_plain(key_header(tool)), KEY}
    pairs = [*request.headers.multi_items(), *_pairs(request.url.query)]
    named = [(_plain(name), value) for name, value in pairs]
    found = [(name, value) for name, value in named if name in known or _CREDENTIAL.search(name)]
    return sorted([name, _normal(name, value)] for name, value in found if name not in keys)


def _normal(name: str, value: str) -> str:
    """Return a value with its authentication scheme in lower case and white space normalized."""
    scheme, space, rest = value.strip().partition(" ")
    return f"{scheme.lower()} {rest.strip()}" if name == "authorization" and space else value.strip()


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "-", name.strip().lower())


def normal_path(path: str) -> str:
    """Return a path as lenient services route it: decoded, without duplicate or trailing slashes and parameters."""
    parts = (part.partition(";")[0].strip() for part in unquote(unquote(path)).split("/"))
    return quote("/" + "/".join(filter(None, parts)), safe="/:@!$&'()*+,=~[]")
