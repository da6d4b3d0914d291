"""Whose a request is, and which method it names: what tells a write from a read, and one user's write from another's.

Names of headers and parameters are compared as frameworks compare them: in lower case, `_` and `.` as `-`.
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
"""Methods that read, unless an operation's declared effect says otherwise."""
_OVERRIDE = re.compile(
    r"-(?:http-?)?method-?|x-(?:(?:http|rest|original|forwarded)-)?(?:method|verb)(?:-override)?|"
    r"(?:http-)?method-override"
)
"""Headers and parameters that frameworks take for the method: `X-HTTP-Method-Override`, `_method` and their kin."""
_CREDENTIAL = re.compile(
    r"auth|cookie|token|secret|passw|credential|signature|cert|jwt|saml|oidc|dpop|assertion|principal|identity|apikey|"
    r"(?<![a-z])(?:key|sig|sid|session|user(?!-agent)|user-?id|username|email|account|tenant|customer|merchant|member|"
    r"client-id|subject|org|organi[sz]ation|workspace|ssl|tls|dn|behalf|as|sudo|impersonate|role)(?![a-z])"
)
"""Headers and parameters of the query that say who asks, also those that a proxy sets for a client's certificate."""


def find_method(request: httpx.Request) -> str:
    """Return the method that a request counts as: a write that an override names, else its own.

    An override that names a read changes nothing: a service that does not know it makes the write. Raises Refused (400)
    where several writes are named.
    """
    named = {value.strip().upper() for name, value in _fields(request) if _OVERRIDE.fullmatch(_plain(name))}
    writes = named - READS - {""}
    if len(writes) > 1:
        raise HttpRefusal(400, "the request names several methods")
    return next(iter(writes), request.method)


def _fields(request: httpx.Request) -> Iterator[tuple[str, str]]:
    """Yield headers, parameters of the query, and the fields of a body, which a method may be read from."""
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
    """Return the credentials of a request, by name: all headers and parameters that are, or may be, a credential.

    What an operation's security schemes name counts, whatever its name is. A value that changes with each request, as
    a fresh signature does, makes each another's.
    """
    alternatives = tool.binding.security if tool and tool.binding else ()
    known = {_plain(str(scheme.get("name", ""))) for one in alternatives for scheme in one.values()}
    keys = {_plain(key_header(tool)), KEY}
    pairs = [*request.headers.multi_items(), *_pairs(request.url.query)]
    named = [(_plain(name), value) for name, value in pairs]
    found = [(name, value) for name, value in named if name in known or _CREDENTIAL.search(name)]
    return sorted([name, _normal(name, value)] for name, value in found if name not in keys)


def _normal(name: str, value: str) -> str:
    """Return a value as it is, but for the case of a scheme and the space behind it."""
    scheme, space, rest = value.strip().partition(" ")
    return f"{scheme.lower()} {rest.strip()}" if name == "authorization" and space else value.strip()


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "-", name.strip().lower())


def normal_path(path: str) -> str:
    """Return an address as lenient services route it: decoded, without doubled and last slashes and parameters."""
    parts = (part.partition(";")[0].strip() for part in unquote(unquote(path)).split("/"))
    return quote("/" + "/".join(filter(None, parts)), safe="/:@!$&'()*+,=~[]")
