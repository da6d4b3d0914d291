"""The server's routes: its own below `/_gecko/`, those of the original Gecko, MCP, and the document's operations."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ..conversation.played import score_world
from ..conversation.scenario import Scenario
from ..conversation.score import find_status
from ..errors import GeckoError
from ..state import Json, JsonObject
from ..tools.real import Answer
from ..tools.spec import HttpBinding
from ..values.difference import make_patch
from .guard import BodyTooLarge
from .operations import OURS, HttpOperations, refuse
from .sessions import DEFAULT, HttpRefusal, Session, Sessions

Handler = Callable[[Request], Awaitable[Response]]
METHODS = ("GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "QUERY")
_BEAT_S = 15.0
_OPERATION = re.compile(rf"/s/(?P<session>[^/]+)/(?!mcp$).*|(?!(?:{'|'.join(map(re.escape, OURS))})(?:/|$))/.*")
_STYLE = (Path(__file__).parents[1] / "page.css").read_text(encoding="utf-8")
_PAGE = Path(__file__).with_name("page.html").read_text(encoding="utf-8").replace("/* page.css */", _STYLE)


@dataclass(frozen=True, slots=True)
class Server:
    """The data of the routes.

    Args:
        sessions: The sessions.
        operations: The document's operations.
        case: A scenario, by whose milestones `result` is scored.
        notes: Notes on the tools for the start page.
    """

    sessions: Sessions
    operations: HttpOperations
    case: Scenario | None = None
    notes: Sequence[str] = ()

    def build(self, more: Sequence[BaseRoute] = (), lifespan: Any = None) -> ASGIApp:
        """Return the application; `more` routes, at MCP's paths, stand before the document's."""
        one = "/_gecko/sessions/{id}"
        own: list[tuple[str, str, Handler]] = [
            ("GET", "/_gecko/", _show_page),
            ("GET", "/_gecko/operations", self._name),
            ("GET", "/_gecko/events", self._watch),
            ("GET", "/_gecko/sessions", self._list),
            ("POST", "/_gecko/sessions", self._create),
            ("DELETE", one, self._close),
            ("GET", f"{one}/state", self._read_state),
            ("PUT", f"{one}/state", self._replace_state),
            ("GET", f"{one}/history", self._read_history),
            ("POST", f"{one}/fork", self._fork),
            ("POST", f"{one}/reset", self._reset),
            ("GET", f"{one}/difference", self._difference),
            ("GET", f"{one}/snapshot", self._snapshot),
            ("POST", f"{one}/result", self._score),
            ("POST", "/_gecko/snapshots", self._take_snapshot),
            # of the original Gecko
            ("GET", "/session-id", self._create_named),
            ("POST", "/set-session-state", self._replace_state),
            ("GET", "/get-session-state", self._read_state),
            ("GET", "/get-session-history", self._read_history),
            ("POST", "/update_state", self._replace_state),
            ("POST", "/update-state-from-real", self._record),
        ]
        routes: list[BaseRoute] = [Route(path, safe(handler), methods=[method]) for method, path, handler in own]
        answer, methods = safe(self._answer), sorted({*METHODS, *self.operations.methods})
        paths = ("/s/{session}/{rest:path}", "/{rest:path}")
        session, anything = (Route(path, answer, methods=methods) for path in paths)
        routed = Starlette(routes=[*more, session, *routes, anything], lifespan=lifespan)

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            found = _OPERATION.fullmatch(scope["path"]) if scope.get("method") in methods else None
            if found:  # past middleware and routes, which take longer than many calls
                scope["path_params"] = found.groupdict()
            await (await answer(Request(scope, receive)) if found else routed)(scope, receive, send)

        return application

    async def _answer(self, request: Request) -> Response:
        path = request.scope["raw_path"].decode("latin-1").partition("?")[0]
        if request.path_params.get("session"):
            path = "/" + path.split("/", 3)[3]
        if path == "/_gecko" or path.startswith("/_gecko/"):
            raise HttpRefusal(404, "no such route, or not with this method")
        request.scope["gecko_path"] = path
        try:
            return await self.operations.answer(request, self.sessions, name_of(request))
        except HttpRefusal as refused:
            if one := request.scope.get("gecko_operation"):
                return refuse(refused, one)
            raise

    async def _name(self, request: Request) -> Response:
        toolkit = self.sessions.base.toolkit
        bound = [(tool.name, tool.binding or HttpBinding("post", f"/{tool.name}")) for tool in toolkit]
        shown = {name: f"{each.method.upper()} {each.path}" for name, each in bound}
        notes = {"notes": [*self.notes]} if self.notes else {}
        return JSONResponse({"title": toolkit.title, "operations": shown, **notes})

    async def _list(self, request: Request) -> Response:
        return JSONResponse({"sessions": await self.sessions.list()})

    async def _create(self, request: Request) -> Response:
        body = await body_of(request, {"id", "state"})
        return _tell(await self.sessions.create(body.get("id"), state=body.get("state")), 201)

    async def _create_named(self, request: Request) -> Response:
        name = (await self.sessions.create(str(uuid4()))).name
        return JSONResponse({"session_id": name}, headers={"x-session-id": name})

    async def _read_state(self, request: Request) -> Response:
        session = await self.sessions.get(name_of(request))
        state = session.world.state
        return JSONResponse(state if "id" in request.path_params else {"session_id": session.name, "state": state})

    async def _replace_state(self, request: Request) -> Response:
        body = await _json(request)
        name = name_of(request)
        if "id" not in request.path_params:
            body = body.get("state", body.get("new_state")) if isinstance(body, dict) else None
        session = await self.sessions.replace(name, body)
        return JSONResponse({"session_id": session.name, "state": session.world.state})

    async def _read_history(self, request: Request) -> Response:
        session = await self.sessions.get(name_of(request))
        return JSONResponse({"session_id": session.name, "history": session.log})

    async def _fork(self, request: Request) -> Response:
        body = await body_of(request, {"id"})
        return _tell(await self.sessions.fork(name_of(request), body.get("id")), 201)

    async def _reset(self, request: Request) -> Response:
        body = await body_of(request, {"step"})
        return _tell(await self.sessions.reset(name_of(request), body.get("step", 0)))

    async def _difference(self, request: Request) -> Response:
        mine = await self.sessions.get(name_of(request))
        other = await self.sessions.get(request.query_params.get("other", ""))
        return JSONResponse({"patch": make_patch(mine.world.state, other.world.state)})

    async def _snapshot(self, request: Request) -> Response:
        return JSONResponse((await self.sessions.get(name_of(request))).world.snapshot())

    async def _take_snapshot(self, request: Request) -> Response:
        body = await body_of(request, {"id", "snapshot"})
        return _tell(await self.sessions.take(body.get("snapshot"), body.get("id")), 201)

    async def _score(self, request: Request) -> Response:
        if self.case is None or not (self.case.goal.milestones or self.case.goal.minefields):
            raise HttpRefusal(409, "no goal to score: start with --scenario FILE that has milestones")
        answer = (await body_of(request, {"answer"})).get("answer")
        if answer is not None and not isinstance(answer, str):
            raise HttpRefusal(422, "answer: expected a text")
        world = (await self.sessions.get(name_of(request))).world.fork()
        score = await asyncio.to_thread(score_world, self.case, world, answer)
        return JSONResponse({"status": find_status(score, "ended", []), "score": score})

    async def _record(self, request: Request) -> Response:
        body = await body_of(request, None)
        call = {"id": body.get("id", ""), "name": body.get("name", body.get("tool_name")), "args": body.get("args", {})}
        if not isinstance(call["name"], str) or not isinstance(call["args"], dict) or "result" not in body:
            raise HttpRefusal(422, "expected {'name': ..., 'args': {...}, 'result': ...}")
        status: Literal["ok", "error"] = "error" if body.get("status") == "error" else "ok"
        name = name_of(request)
        entry = await self.sessions.record(name, call, Answer(status=status, result=body["result"]))
        return JSONResponse({"session_id": name, "call": entry, "state": (await self.sessions.get(name)).world.state})

    async def _close(self, request: Request) -> Response:
        await self.sessions.close(name_of(request))
        return Response(status_code=204)

    async def _watch(self, request: Request) -> Response:

        async def events() -> AsyncIterator[str]:
            async with self.sessions.listen() as queue:
                yield ": here\n\n"
                while True:
                    try:
                        event = await asyncio.wait_for(queue.get(), _BEAT_S)
                        yield f"data: {json.dumps(event, ensure_ascii=True)}\n\n"
                    except TimeoutError:
                        yield ": beat\n\n"

        return StreamingResponse(events(), media_type="text/event-stream", headers={"cache-control": "no-store"})


def _tell(session: Session, status: int = 200) -> Response:
    return JSONResponse({"id": session.name, "steps": session.steps}, status)


def safe(handler: Handler) -> Handler:
    """Return a handler that turns every exception into an answer, without traceback or secrets."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except GeckoError as error:
            refused = error if isinstance(error, HttpRefusal) else HttpRefusal(422, str(error))
        except BodyTooLarge:
            refused = HttpRefusal(413, "the body is too large")
        except RecursionError:
            refused = HttpRefusal(422, "the body is nested too deeply")
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary to clients
            sys.stderr.write(f"gecko-graph serve: {type(error).__name__} at {request.method} {request.url.path}\n")
            refused = HttpRefusal(500, "internal error of the server")
        return refused.respond()

    return answer


def name_of(request: Request) -> str:
    """Return a request's session: our own routes' id, `X-Session-ID`, the path, else `default`."""
    given = request.path_params.get("id") or request.headers.get("x-session-id")
    return str(given or request.path_params.get("session") or DEFAULT)


async def _json(request: Request) -> Json:
    content = await request.body()
    try:
        return json.loads(content) if content else {}
    except ValueError:
        raise HttpRefusal(400, "the body is not JSON") from None


async def body_of(request: Request, keys: set[str] | None) -> JsonObject:
    """Return a request's JSON object; `keys` are the allowed keys, None for any. Raises HttpRefusal."""
    body = await _json(request)
    if not isinstance(body, dict):
        raise HttpRefusal(422, "expected a JSON object")
    if keys is not None and (unknown := body.keys() - keys):
        raise HttpRefusal(422, f"unknown key {sorted(unknown)[0][:80]!r}; known: {', '.join(sorted(keys))}")
    return body


async def _show_page(request: Request) -> Response:
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
    return HTMLResponse(_PAGE, headers={"content-security-policy": policy, "x-frame-options": "DENY"})
