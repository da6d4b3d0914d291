"""Servers and credentials of an OpenAPI document's tools: where calls go, and who is calling.

Credentials are named by security scheme and are looked up at each call; they appear in no argument, message, repr or
error, and are removed from what the server sends back.
"""

from __future__ import annotations

import base64
import inspect
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote_plus, urljoin, urlsplit

from ...contracts.language.syntax import did_you_mean
from ...errors import GeckoError, ToolkitError
from ...masking import MASK
from ...state import Json, JsonObject
from ..spec import ToolSpec

if TYPE_CHECKING:
    import httpx

Credential = str | Callable[[], str]
Auth = Mapping[str, Credential] | str
Server = str | Mapping[str, str]

_VARIABLE = re.compile(r"\{([^{}]+)\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SHORTEST = 4
"""Characters of a credential that is removed from answers: shorter ones are part of too many words."""


class Secrets:
    """The credentials of one call, each with its scheme."""

    def __init__(self, chosen: Iterable[tuple[JsonObject, str]] = ()) -> None:
        self._chosen = list(chosen)

    def apply(self, request: httpx.Request) -> None:
        """Put the credentials on a request, in the place of what stands there under their names."""
        for scheme, value in self._chosen:
            where, name = scheme.get("in"), str(scheme.get("name"))
            if where == "query":
                given = [one for one in request.url.query.decode().split("&") if one]
                kept = [one for one in given if unquote_plus(one.partition("=")[0]) != name]
                query = "&".join([*kept, f"{_quote(name)}={_quote(value)}"])
                request.url = request.url.copy_with(query=query.encode())
            elif where == "cookie":
                given = [one for one in request.headers.get("cookie", "").split("; ") if one]
                kept = [one for one in given if one.partition("=")[0] != name]
                request.headers["cookie"] = "; ".join([*kept, f"{name}={value}"])
            else:
                request.headers[name if where == "header" else "authorization"] = _header(scheme, value)

    def remove(self, value: Json) -> Json:
        """Return an answer without the credentials that it echoes."""
        spellings = [one for scheme, value in self._chosen for one in _spellings(scheme, value)]
        return _remove(value, sorted({one for one in spellings if len(one) >= _SHORTEST}, key=len, reverse=True))


def _header(scheme: JsonObject, value: str) -> str:
    if scheme.get("in") == "header":
        return value
    kind = str(scheme.get("scheme", "bearer"))
    if kind.lower() == "basic" and ":" in value:
        value = base64.b64encode(value.encode()).decode()
    return value if value.lower().startswith(f"{kind.lower()} ") else f"{kind.title()} {value}"


def _spellings(scheme: JsonObject, value: str) -> list[str]:
    plain = [value, _header(scheme, value).rpartition(" ")[2], value.partition(":")[2]]
    return [spell(one) for one in plain for spell in (str, _quote, _escape, _misread)]


def _quote(text: str) -> str:
    return quote(text, safe="")


def _escape(text: str) -> str:
    return json.dumps(text)[1:-1]


def _misread(text: str) -> str:
    """Return what a server that reads headers as Latin-1 makes of it."""
    return text.encode().decode("latin-1")


def _remove(value: Json, secrets: list[str]) -> Json:
    if isinstance(value, str):
        for one in secrets:
            value = value.replace(one, MASK)
        return value
    if isinstance(value, dict):
        return {_remove(key, secrets): _remove(member, secrets) for key, member in value.items()}
    return [_remove(one, secrets) for one in value] if isinstance(value, list) else value


class Credentials:
    """Where the credentials of a toolkit come from.

    Args:
        auth: Security scheme to its credential: the value (`user:password` for basic), `env:NAME` for an environment
            variable, or a function that returns it. `env:PREFIX_`: all from variables `PREFIX_<SCHEME>`, in capitals.
        tools: The tools whose schemes these are.

    Raises:
        ToolkitError: A scheme is unknown, or its credential neither a text nor a plain function.
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
                there = f"; there are {', '.join(names)}" if names else "; the document has none"
                raise ToolkitError(f"auth: no security scheme {name!r} is used{did_you_mean(name, names) or there}")
            if not (isinstance(source, str) or callable(source)) or inspect.iscoroutinefunction(source):
                raise ToolkitError(f"auth[{name!r}]: expected a text, 'env:NAME' or a plain function")

    def choose(self, security: Iterable[JsonObject], where: str) -> Secrets:
        """Return the credentials of the first alternative that has all of its own.

        Args:
            security: The alternatives, as an `HttpBinding` has them.
            where: The operation, for the message.

        Raises:
            GeckoError: No alternative has all; the message names the schemes and where their credentials come from.
        """
        alternatives = sorted(security, key=lambda one: not one) or [{}]
        for schemes in alternatives:
            values = {name: self._value(name) for name in schemes}
            if all(values.values()):
                return Secrets((schemes[name], value) for name, value in values.items())
        wanted = " or ".join(" and ".join(map(self._wanted, schemes)) for schemes in alternatives)
        raise GeckoError(f"{where} needs a credential: {wanted}")

    def _value(self, name: str) -> str:
        source: Any = self._sources.get(name, "")
        failed = None
        if callable(source):
            try:
                source = source()
            except Exception as error:  # noqa: BLE001 - a user's function; its text may hold the credential
                failed = type(error).__name__
        elif source.startswith("env:"):
            source = os.environ.get(source.removeprefix("env:"), "")
        value = source.strip() if isinstance(source, str) else None
        if failed or value is None or _CONTROL.search(value):
            raise GeckoError(f"auth[{name!r}]: {failed or 'expected a text without line breaks'}")
        return value

    def _wanted(self, name: str) -> str:
        source = self._sources.get(name)
        if isinstance(source, str) and source.startswith("env:"):
            return f"set the environment variable {source.removeprefix('env:')}"
        return f"pass from_openapi(..., auth={{{name!r}: ...}})"


def resolve_server(given: JsonObject | None, server: Server | None) -> str | None:
    """Return the address that calls go to; None where the document names none that is absolute.

    Args:
        given: The document's server object.
        server: What the user says: an address, which replaces the document's; where it has no path of its own, and the
            document's address is a path, that path follows it. Or values for the document's server variables.

    Raises:
        ToolkitError: It is not an http(s) address, holds credentials, or is a value that the document does not allow.
    """
    chosen = dict(server) if isinstance(server, Mapping) else {}
    variables = (given or {}).get("variables", {})

    def fill(match: re.Match[str]) -> str:
        variable = variables.get(match[1], {})
        value = str(chosen.get(match[1], variable.get("default", match[0])))
        if variable.get("enum") and value not in variable["enum"]:
            raise ToolkitError(f"server: {match[1]!r} must be one of {', '.join(variable['enum'])}, got {value!r}")
        return value

    url = _VARIABLE.sub(fill, given["url"]) if given else ""
    if isinstance(server, str):
        is_bare = urlsplit(server).path in ("", "/") and "://" not in url
        url = urljoin(server, url) if is_bare else server
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ToolkitError("server: an address must not hold credentials; pass them in auth={'scheme': ...}")
    if parts.scheme in ("http", "https") and parts.hostname and "{" not in url and not parts.query + parts.fragment:
        return url.rstrip("/")
    if isinstance(server, str):
        raise ToolkitError(f"server: expected an address such as 'https://api.example.com/v1', got {server[:80]!r}")
    return None
