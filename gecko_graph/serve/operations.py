"""The document's operations with their own methods and paths; other tools as `POST /{name}`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ..schemas.complaints import describe_complaint
from ..schemas.made_up import Impossible
from ..state import Json, JsonObject, Outcome, Step
from ..tools import Toolkit
from ..tools.openapi.credentials import resolve_server
from ..tools.openapi.fields import find_unsendable
from ..tools.openapi.request_reader import CannotRead, pattern_of, read_request
from ..tools.spec import ToolSpec
from ..values.notes import notes_of, tell
from .identity import READS, find_method, normal_path
from .responses import Responses
from .sessions import HttpRefusal, Sessions
from .shadow import RequestedCall, Upstream

_ALIASES = ("session-id", "set-session-state", "get-session-state", "get-session-history", "update_state")
_MOST_CHARS = 2000
OURS = ("/_gecko", "/mcp", "/s", "/update-state-from-real", *(f"/{name}" for name in _ALIASES))


class _HttpOperation(NamedTuple):
    tool: ToolSpec
    method: str
    pattern: re.Pattern[str]
    variables: int
    base: str
    responses: Responses


class HttpOperations:
    """A toolkit's tools as HTTP operations.

    Args:
        toolkit: The tools.
        prefix: The path prefix, such as `/api`; "" for the root.
        upstream: The real service that answers.
    """

    def __init__(self, toolkit: Toolkit, *, prefix: str = "", upstream: Upstream | None = None) -> None:
        self._upstream, self._prefix = upstream, prefix.rstrip("/")
        self._all = list(_list_operations(toolkit, prefix.rstrip("/")))
        writes = [one for one in self._all if one.method in READS and not one.tool.reads]
        alike = [rf"{one.pattern.pattern.rstrip('/') or '/'}(?:\.\w+)?" for one in writes]
        self._writes_by_read = [re.compile(pattern, re.IGNORECASE) for pattern in alike]
        self.notes = [*_find_notes(self._all, prefix)]

    @property
    def methods(self) -> set[str]:
        return {one.method for one in self._all}

    async def answer(self, request: Request, sessions: Sessions, name: str) -> Response:
        """Answer a request by the session's world. Raises HttpRefusal."""
        near = [one for one in self._all if one.pattern.fullmatch(request.scope["gecko_path"])]
        if self._upstream is not None:
            return await self._pass_on(self._upstream, request, near, sessions, name)
        one = _choose(near, request.method)
        if one is None:
            if not near:
                raise HttpRefusal(404, "no operation has this path")
            allowed = ", ".join(sorted({one.method for one in near}))
            raise HttpRefusal(405, "no operation of this path has this method", {"allow": allowed})
        request.scope["gecko_operation"] = one
        sent = await _read(request)
        _check_credentials(one, sent)
        if "prefer" in sent.headers and (made := _prefer(one, sent.headers["prefer"])):
            return made
        unnamed: list[str] = []
        try:
            args = _arguments(one, sent, unnamed)
        except (CannotRead, ValueError, RecursionError) as error:
            why = str(error) if isinstance(error, CannotRead) else "the body cannot be read"
            if isinstance(error, CannotRead) and error.is_media:
                raise HttpRefusal(415, why) from None
            complaint = {"tool": one.tool.name, "path": "", "expected": "a request of this operation", "got": why}
            raise HttpRefusal(422, why, complaints=[complaint]) from None
        answer = respond(await sessions.call(name, {"name": one.tool.name, "args": args}), one)
        if unnamed:  # members that the schema leaves open may be typing mistakes
            answer.headers["x-gecko-ignored"] = quote(", ".join(unnamed)[:200], safe=", ")
        return answer

    async def _pass_on(
        self, upstream: Upstream, request: Request, near: list[_HttpOperation], sessions: Sessions, name: str
    ) -> Response:
        path, base = request.scope["gecko_path"], self._prefix
        sent = await _read(request)
        method = find_method(sent)
        reads = all(self._reads(near, path, each) for each in {sent.method, method})
        wanted = RequestedCall(None, None, method, reads)
        if one := _choose(near, method):
            base, wanted = one.base, wanted._replace(tool=one.tool)
            try:
                sent.method = method
                wanted = wanted._replace(args=_arguments(one, sent, None))
            except (CannotRead, ValueError, RecursionError):
                upstream.counts["unread"] += 1
        rest = path.removeprefix(base) if base and path.startswith(f"{base}/") else path
        return await upstream.answer(request, rest, wanted, sessions, name)

    def _reads(self, near: list[_HttpOperation], path: str, method: str) -> bool:
        """Return whether a request reads; a `GET` that a lenient service may route to a writing operation does not."""
        if one := _choose(near, method):
            return one.tool.reads
        return method in READS and not any(each.fullmatch(normal_path(path)) for each in self._writes_by_read)


def _choose(near: list[_HttpOperation], method: str) -> _HttpOperation | None:
    """Return the operation of a method whose path has the fewest variables."""
    fits = [one for one in near if one.method == method]
    return min(fits, key=lambda each: each.variables, default=None)


def respond(step: Step, one: _HttpOperation) -> Response:
    """Return a step's outcome as the document describes the response."""
    if "outcome" not in step:
        complaints = step.get("complaints", [])
        lines = list(map(describe_complaint, complaints))
        raise HttpRefusal(422, "; ".join(lines)[:2000], complaints=complaints)
    outcome = step["outcome"]
    made = made_up(outcome)
    told = str(made).lower() if isinstance(made, bool) else quote(", ".join(made), safe=", /~")[:_MOST_CHARS]
    headers = {
        "x-gecko-rung": quote(outcome["rung"], safe=" "),
        "x-gecko-simulated": str(outcome["simulated"]).lower(),
        "x-gecko-made-up": told,
    }
    if kinds := doubts(outcome):
        headers["x-gecko-notes"] = ", ".join(kinds)
    http = outcome.get("http", {})
    headers |= {name: str(each) for name, each in http.get("headers", {}).items()}
    if refused := notes_of(outcome, "refused"):
        raise HttpRefusal(409, tell(refused[0]), headers)
    if outcome["status"] == "ok":
        found, body = one.responses.success(outcome["result"], http.get("status")), outcome["result"]
    else:
        found, body = one.responses.error(outcome["result"], tool=one.tool.name, status=http.get("status"))
    return _write(found.status, found.media, body, headers, is_empty=bool(one.responses.all) and not found.media)


def made_up(outcome: Outcome) -> bool | list[str]:
    """Return whether an answer is made up, or its made-up places as JSON Pointers."""
    filled = outcome.get("filled", {})
    places = [*filled.get("places", {})] if filled.get("invented") else []
    return bool(outcome.get("invented")) or "" in places or places or False


def doubts(outcome: Outcome) -> list[str]:
    """Return the kinds of an outcome's notes."""
    return sorted({each["kind"] for each in notes_of(outcome)})


def refuse(refused: HttpRefusal, one: _HttpOperation) -> Response:
    """Return a refusal in the document's error schema, if it has one."""
    found = one.responses.refusal(refused.status, str(refused), refused.more, tool=one.tool.name)
    return _write(found[0].status, found[0].media, found[1], refused.headers or {}) if found else refused.respond()


def _write(status: int, media: str, body: Json, headers: Mapping[str, str], *, is_empty: bool = False) -> Response:
    if status in (204, 205, 304) or (is_empty and body is None):
        return Response(status_code=status, headers=dict(headers))
    if media and "json" not in media and "*" not in media and isinstance(body, str):
        return Response(body.encode("utf-8", "replace"), status, dict(headers), media)
    return JSONResponse(body, status, headers, media if "json" in media else "application/json")


_url_of = lru_cache(maxsize=1_024)(httpx.URL)  # parsing takes longer than most calls


async def _read(request: Request) -> httpx.Request:
    path, query = request.scope["gecko_path"], request.scope["query_string"].decode("latin-1")
    url, body = f"http://gecko{path}" + (f"?{query}" if query else ""), httpx.ByteStream(await request.body())
    try:
        return httpx.Request(request.method, _url_of(url), headers=request.headers.raw, stream=body)
    except (httpx.InvalidURL, ValueError):
        raise HttpRefusal(400, "the URL cannot be parsed") from None


def _arguments(one: _HttpOperation, sent: httpx.Request, unnamed: list[str] | None) -> JsonObject:
    if one.tool.binding is not None:
        return read_request(one.tool, one.base, sent, unnamed=unnamed)
    content = sent.read()
    args = json.loads(content) if content else {}
    if not isinstance(args, dict):
        raise CannotRead("expected the arguments as a JSON object")
    return args


def _check_credentials(one: _HttpOperation, sent: httpx.Request) -> None:
    """Raise HttpRefusal if the API requires a credential and none is given; any value is accepted, none is stored."""
    security = one.tool.binding.security if one.tool.binding else ()
    if security and not any(all(_has(sent, scheme) for scheme in each.values()) for each in security):
        raise HttpRefusal(401, "a credential is missing; any value is accepted", {"www-authenticate": "Bearer"})


def _has(sent: httpx.Request, scheme: JsonObject) -> bool:
    place, name = scheme.get("in"), str(scheme.get("name"))
    if place == "query":
        return any(key == name for key, _ in parse_qsl(sent.url.query.decode("latin-1"), keep_blank_values=True))
    if place == "cookie":
        pairs = sent.headers.get("cookie", "").split(";")
        return any(pair.strip().partition("=")[0] == name for pair in pairs)
    return (name if place == "header" else "authorization") in sent.headers


def _prefer(one: _HttpOperation, header: str) -> Response | None:
    """Return the response that a `Prefer` header selects, as in Prism; no call is made."""
    wanted = {
        key.strip(): value.strip().strip('"') for key, _, value in (p.partition("=") for p in re.split("[,;]", header))
    }
    code, example = wanted.get("code"), wanted.get("example")
    if code is None and example is None:
        return None
    try:
        found, body = one.responses.prefer(code, example, tool=one.tool.name)
    except (LookupError, ValueError, Impossible):
        raise HttpRefusal(404, "Prefer: the document has no such response") from None
    headers = {
        "x-gecko-rung": "document",
        "x-gecko-simulated": "true",
        "x-gecko-made-up": str(not found.examples).lower(),
    }
    return _write(found.status, found.media, body, headers, is_empty=not found.media)


def _list_operations(toolkit: Toolkit, prefix: str) -> Iterator[_HttpOperation]:
    for tool in toolkit:
        if tool.binding is None:
            pattern = re.compile(f"{re.escape(prefix)}(/tools)?/{re.escape(quote(tool.name))}")  # or as it is exported
            yield _HttpOperation(tool, "POST", pattern, 0, prefix, Responses({}))
            continue
        url = resolve_server(tool.binding.server, None) or str((tool.binding.server or {}).get("url", ""))
        own = urlsplit(url if "{" not in url else "").path.rstrip("/")
        template, responses = re.split("[?#]", tool.binding.path)[0], Responses.of(tool)
        for base in dict.fromkeys((prefix + own, prefix)):
            method, count = tool.binding.method.upper(), template.count("{")
            yield _HttpOperation(tool, method, pattern_of(base + template), count, base, responses)


def _find_notes(operations: list[_HttpOperation], prefix: str) -> Iterator[str]:
    """Yield notes on the parts of the document that cannot be served unchanged."""
    for one in operations:
        path = (one.tool.binding.path if one.tool.binding else f"/{one.tool.name}").rstrip("/")
        if not prefix and any(path == ours or path.startswith(f"{ours}/") for ours in OURS):
            yield f"{one.tool.name}: its path {path} is the server's own: mount the document elsewhere with --prefix"
        if why := find_unsendable(one.tool):
            yield f"{one.tool.name}: {why}"
