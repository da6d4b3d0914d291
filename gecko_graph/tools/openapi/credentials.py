"""Servers and credentials of an OpenAPI document's tools.

Credentials are named by security scheme and read at each call. They appear in no argument, message, repr or error, and
are masked in answers of the server.
"""

from __future__ import annotations

import base64
import inspect
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote_plus, urljoin, urlsplit

import httpx

from ...errors import NotMade, ToolkitError, did_you_mean
from ...masking import MASK
from ...state import Json, JsonObject
from ...values.places import map_texts
from ..spec import VARIABLE, ToolSpec
from .documents import Documents

Credential = str | Callable[[], str]
Auth = Mapping[str, Credential] | str
Server = str | Mapping[str, str]

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BEARER: JsonObject = {"type": "http", "scheme": "bearer"}
_SHORTEST = 6
"""Minimal length of a credential that is masked in answers; a shorter one would match inside ordinary words."""


class _QuietURL(httpx.URL):
    """An address with a key in its query, which logs and reprs do not show."""

    def __str__(self) -> str:
        return str(self.copy_with(query=None))

    __repr__ = __str__


class Secrets:
    """The credentials of one call, each with its security scheme."""

    def __init__(self, chosen: Iterable[tuple[JsonObject, str]] = ()) -> None:
        self._chosen = list(chosen)

    def apply(self, request: httpx.Request) -> None:
        """Set the credentials of a request, replacing values of the same names."""
        request.headers.encoding = "utf-8"  # otherwise httpx guesses from existing headers
        for scheme, value in self._chosen:
            where, name = scheme.get("in"), str(scheme.get("name"))
            if where == "query":
                pairs = [*_others(request.url.query.decode(), "&", name), f"{_quote(name)}={_quote(value)}"]
                request.url = _QuietURL(request.url, query="&".join(pairs).encode())
            elif where == "cookie":
                kept = _others(request.headers.get("cookie", ""), "; ", name)
                request.headers["cookie"] = "; ".join([*kept, f"{name}={value}"])
            else:
                request.headers[name if where == "header" else "authorization"] = _header(scheme, value)

    def remove(self, value: Json) -> Json:
        """Return an answer with echoed credentials masked."""
        spellings = {one for scheme, value in self._chosen for one in _spellings(scheme, value)}
        secrets = sorted((one for one in spellings if len(one) >= _SHORTEST), key=len, reverse=True)
        pattern = re.compile("|".join(map(re.escape, secrets)))
        return map_texts(value, lambda text: pattern.sub(MASK, text), keys=True) if secrets else value


def _others(pairs: str, separator: str, name: str) -> list[str]:
    return [one for one in pairs.split(separator) if one and unquote_plus(one.partition("=")[0]) != name]


def _header(scheme: JsonObject, value: str) -> str:
    if scheme.get("in") == "header":
        return value
    kind = str(scheme.get("scheme", "bearer"))
    if kind.lower() == "basic" and ":" in value:
        value = base64.b64encode(value.encode()).decode()
    return value if value.lower().startswith(f"{kind.lower()} ") else f"{kind.title()} {value}"


def _spellings(scheme: JsonObject, value: str) -> Iterator[str]:
    """Yield the forms of a credential in an answer: verbatim, URL-quoted, as JSON, and as Latin-1."""
    password = value.partition(":")[2] if scheme.get("scheme") == "basic" else value
    for one in {value, _header(scheme, value).rpartition(" ")[2], password}:
        yield from (one, _quote(one), json.dumps(one)[1:-1], one.encode().decode("latin-1"))


def _quote(text: str) -> str:
    return quote(text, safe="")


class Credentials:
    """The sources of the credentials that tools use; `auth` as for `Toolkit.from_openapi`.

    Raises:
        ToolkitError: A scheme is unknown, or its credential is neither text nor a plain function.
    """

    def __init__(self, auth: Auth | None, tools: Iterable[ToolSpec]) -> None:
        requirements = [one for tool in tools if tool.binding for one in tool.binding.security]
        names = sorted({name for one in requirements for name in one})
        if isinstance(auth, str):
            if not re.fullmatch(r"env:\w+", auth):
                raise ToolkitError("auth: expected {'scheme': credential}, or 'env:PREFIX_' for environment variables")
            auth = {name: auth + re.sub(r"\W", "_", name).upper() for name in names}
        self._sources: dict[str, Credential] = dict(auth or {})
        for name, source in self._sources.items():
            if name not in names:
                hint = did_you_mean(name, names) or f"; there are: {', '.join(names) or 'none'}"
                raise ToolkitError(f"auth: no security scheme {name!r} is used{hint}")
            if not (isinstance(source, str) or callable(source)) or inspect.iscoroutinefunction(source):
                raise ToolkitError(f"auth[{name!r}]: expected a text, 'env:NAME' or a plain function")

    def choose(self, security: Iterable[JsonObject], where: str) -> Secrets:
        """Return the credentials of the first alternative of `HttpBinding.security` that is complete.

        Raises:
            NotMade: No alternative is complete; the message names the schemes and their sources.
        """
        alternatives = sorted(security, key=lambda one: not one) or [{}]
        for schemes in alternatives:
            values = {name: read_credential(self._sources.get(name, ""), f"auth[{name!r}]") for name in schemes}
            if all(values.values()):
                return Secrets((schemes[name], value) for name, value in values.items())
        given = {name: one for name, one in self._sources.items() if isinstance(one, str) and one.startswith("env:")}
        wanted = " or ".join(" and ".join(given.get(name, name) for name in schemes) for schemes in alternatives)
        raise NotMade(f"{where} needs a credential (auth=): {wanted}")


def read_credential(source: Any, where: str) -> str:
    """Return a credential from its source: the value, `env:NAME` or a function; "" if it is not set.

    Raises:
        NotMade: The function fails, or the value is not one line of text.
    """
    problem = "expected a text without line breaks"
    try:
        value: Any = source() if callable(source) else source
    except Exception as error:  # noqa: BLE001 - a user's function; its text may contain the credential
        value, problem = None, f"the function raised {type(error).__name__}"
    if isinstance(source, str) and source.startswith("env:"):
        value = os.environ.get(source.removeprefix("env:"), "")
    if not isinstance(value, str) or _CONTROL.search(value.strip()):
        raise NotMade(f"{where}: {problem}")
    return value.strip()


def resolve_server(given: JsonObject | None, server: Server | None) -> str | None:
    """Return the base address of calls; None if the document has no absolute one.

    Args:
        given: The document's server object.
        server: The user's address, which replaces the document's; a document's address that is only a path is appended
            to a user's address without one. Or values for the document's server variables.

    Raises:
        ToolkitError: The user's address is not http(s) or contains credentials, or a variable's value is not allowed.
    """
    chosen = server if isinstance(server, Mapping) else {}
    variables = (given or {}).get("variables", {})
    for name, value in chosen.items():
        if (allowed := variables.get(name, {}).get("enum")) and value not in allowed:
            raise ToolkitError(f"server: {name!r} must be one of {', '.join(allowed)}, got {value!r}")
    values = {name: one["default"] for name, one in variables.items()} | dict(chosen)
    url = VARIABLE.sub(lambda match: str(values.get(match[1], match[0])), str(given.get("url"))) if given else ""
    try:
        if isinstance(server, str):
            url = urljoin(server, url) if urlsplit(server).path in ("", "/") and "://" not in url else server
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and parts.hostname and not parts.query + parts.fragment
        if is_usable and "{" not in url and "@" not in parts.netloc:
            return url.rstrip("/")
    except ValueError:
        pass
    if isinstance(server, str):
        raise ToolkitError(
            "server: expected an address without credentials (they go into auth=) and query, such as "
            f"'https://api.example.com/v1', got {server.rpartition('@')[2].partition('?')[0][:80]!r}"
        )
    return None


class ServerReader:
    """Reads servers, security schemes and requirements. OAuth 2 and OpenID Connect become bearer tokens."""

    def __init__(self, documents: Documents, root: JsonObject) -> None:
        self._root, self._address = root, documents.root.document
        self._schemes: dict[str, JsonObject] = {}
        self.broken: list[tuple[ToolkitError, str]] = []
        """Errors of unreadable schemes, with their names."""
        components, there = documents.part(root, "components", documents.root)
        given, place = documents.part(components, "securitySchemes", there)
        for name, scheme in given.items():
            try:
                self._schemes[name] = _read_scheme(documents.follow(scheme, place / name)[0])
            except ToolkitError as error:
                self.broken.append((error, name))
        self.is_remote = self._address.startswith(("https://", "http://"))

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Location and lower-case name of the parameters that carry API keys."""
        return [(one["in"], one["name"].lower()) for one in self._schemes.values() if one["type"] == "apiKey"]

    def security(self, operation: JsonObject) -> tuple[dict[str, JsonObject], ...]:
        """Return the security alternatives of an operation, as in `HttpBinding`, without client certificates."""
        given = operation.get("security", self._root.get("security"))
        alternatives = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
        known = [{name: self._schemes.get(name, _BEARER) for name in one} for one in alternatives]
        return tuple({name: one for name, one in each.items() if one["type"] != "mutualTLS"} for each in known)

    def server(self, *holders: JsonObject) -> JsonObject | None:
        """Return the first server of the operation, else of its path, else of the document.

        A relative address is resolved against the document's address if that is remote; in a file it stays relative.
        """
        for holder in (*holders, self._root):
            listed = holder.get("servers")
            for one in listed if isinstance(listed, list) else ():
                if isinstance(one, dict) and isinstance(one.get("url"), str):
                    url = urljoin(self._address, one["url"]) if self.is_remote else one["url"]
                    variables = _read_variables(one.get("variables"))
                    return {"url": url, **({"variables": variables} if variables else {})}
        return {"url": urljoin(self._address, "/")} if self.is_remote else None


def _read_variables(given: Any) -> JsonObject:
    read: JsonObject = {}
    for name, one in given.items() if isinstance(given, dict) else ():
        if isinstance(one, dict) and "default" in one:
            enum = one["enum"] if isinstance(one.get("enum"), list) else []
            read[name] = {"default": str(one["default"])} | ({"enum": [*map(str, enum)]} if enum else {})
    return read


def _read_scheme(given: Any) -> JsonObject:
    scheme = given if isinstance(given, dict) else {}
    if scheme.get("type") == "apiKey" and isinstance(scheme.get("name"), str):
        place = scheme.get("in")
        return {"type": "apiKey", "in": place if place in ("query", "cookie") else "header", "name": scheme["name"]}
    if scheme.get("type") == "http" and isinstance(scheme.get("scheme"), str):
        return {"type": "http", "scheme": scheme["scheme"].lower()}
    return {"type": "mutualTLS"} if scheme.get("type") == "mutualTLS" else _BEARER
