"""The routes of trainers: `/_gecko/openenv` (OpenEnv 0.10) and `/_gecko/nemo-gym` (a resources server)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from ..errors import GeckoError
from ..state import JsonObject
from .app import body_of, safe
from .episodes import Episode, Episodes, told
from .guard import MAX_BODY
from .sessions import Refused

OPENENV, NEMO_GYM = "/_gecko/openenv", "/_gecko/nemo-gym"
COOKIE = "session"
RESERVED = {"openenv": ("reset", "step", "state", "close"), "nemo-gym": ("verify", "seed_session")}
_INVALID_REQUEST, _NO_METHOD = -32600, -32601
_GET, _POST = ("state", "health", "metadata", "schema"), ("reset", "step", "mcp")
_CALL: JsonObject = {
    "title": "CallToolAction",
    "type": "object",
    "properties": {
        "type": {"const": "call_tool", "default": "call_tool", "type": "string"},
        "tool_name": {"type": "string", "description": "Name of the tool to call"},
        "arguments": {"type": "object", "description": "Arguments to pass to the tool"},
        "metadata": {"type": "object"},
    },
    "required": ["tool_name"],
}
_OBSERVATION: JsonObject = {
    "type": "object",
    "properties": {
        "done": {"type": "boolean"},
        "reward": {"type": ["number", "null"]},
        "metadata": {"type": "object"},
        "prompt": {"type": "string"},
        "tools": {"type": "array"},
        "tool_name": {"type": "string"},
        "result": {},
        "error": {"type": ["object", "null"]},
    },
}
_STATE: JsonObject = {
    "type": "object",
    "properties": {"episode_id": {"type": ["string", "null"]}, "step_count": {"type": "integer"}},
}


def find_collisions(names: list[str]) -> list[str]:
    """Return what is to be told of tools whose names a wire keeps for itself: it does not serve them."""
    return [
        f"{name} is a word of {wire}'s own: that wire does not offer the tool"
        for wire, words in RESERVED.items()
        for name in names
        if name in words
    ]


class Trainers:
    """The routes."""

    def __init__(self, episodes: Episodes) -> None:
        self._episodes, self._one = episodes, episodes.begin()

    def routes(self) -> list[BaseRoute]:
        """Return the routes of both wires."""
        own: list[BaseRoute] = [WebSocketRoute(f"{OPENENV}/ws", self._socket)]
        fixed: dict[str, JsonObject] = {
            "health": {"status": "healthy"},
            "metadata": {"name": "gecko_graph", "description": "Tasks in simulated worlds", "version": "1.0.0"},
            "schema": {"action": _CALL, "observation": _OBSERVATION, "state": _STATE},
            "openapi.json": {
                "openapi": "3.1.0",
                "info": {"title": "gecko_graph", "version": "1.0.0"},
                "paths": {f"/{name}": {"get" if name in _GET else "post": {}} for name in (*_GET, *_POST)},
            },
        }
        own += [Route(f"{OPENENV}/{name}", _constant(value)) for name, value in fixed.items()]
        own += [
            Route(f"{OPENENV}/{name}", safe(handler), methods=[method])
            for method, name, handler in (
                ("POST", "reset", self._reset),
                ("POST", "step", self._step),
                ("GET", "state", self._state),
                ("POST", "mcp", self._mcp),
            )
        ]
        for name, handler in (("seed_session", self._seed), ("verify", self._verify), ("{tool}", self._tool)):
            own.append(Route(f"{NEMO_GYM}/{name}", safe(handler), methods=["POST"]))
        return own

    # OpenEnv -----------------------------------------------------------------------------------------

    async def _socket(self, socket: WebSocket) -> None:
        """Serve one connection, which is one session."""
        await socket.accept()
        episode = self._episodes.begin()
        while (frame := await socket.receive())["type"] == "websocket.receive":
            text = frame.get("text") or ""
            try:
                found = json.loads(text) if len(text) <= MAX_BODY else None
            except (ValueError, RecursionError):
                found = None
            message = found if isinstance(found, dict) else {}
            if message.get("type") == "close":
                await socket.close()
                return
            await socket.send_json(await asyncio.to_thread(self._answer, episode, message))

    def _answer(self, episode: Episode, message: Mapping[str, Any]) -> JsonObject:
        kind, data = message.get("type"), message.get("data") or {}
        try:
            if not isinstance(data, Mapping):
                raise GeckoError("data: expected an object")
            if kind == "reset":
                return {"type": "observation", "data": self._begin(episode, data)}
            if kind == "step":
                return {"type": "observation", "data": self._act(episode, data)}
            if kind == "state":
                return {"type": "state", "data": _state_of(episode)}
        except GeckoError as error:
            return {"type": "error", "data": {"message": str(error), "code": "EXECUTION_ERROR"}}
        code = "INVALID_JSON" if not message else "UNKNOWN_TYPE"
        return {"type": "error", "data": {"message": "expected reset, step, state or close", "code": code}}

    def _begin(self, episode: Episode, data: Mapping[str, Any]) -> JsonObject:
        return _observe({"prompt": episode.reset(data)}, None, done=False)

    def _act(self, episode: Episode, action: Mapping[str, Any]) -> JsonObject:
        if action.get("type") == "list_tools":
            return _observe({"tools": self._tools()}, 0.0, done=episode.done)
        name, args = action.get("tool_name"), action.get("arguments", {})
        if name in RESERVED["openenv"]:
            name = None
        step, reward, done = episode.call(name, args)
        result, problem = told(step)
        error = {"error_type": "execution_error", "message": problem} if problem else None
        return _observe({"tool_name": action.get("tool_name"), "result": result, "error": error}, reward, done=done)

    def _tools(self) -> list[JsonObject]:
        return [each for each in self._episodes.describe() if each["name"] not in RESERVED["openenv"]]

    async def _reset(self, request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(self._begin, self._one, await body_of(request, None)))

    async def _step(self, request: Request) -> Response:
        action = (await body_of(request, None)).get("action")
        if not isinstance(action, dict):
            raise Refused(422, "action: expected an object")
        return JSONResponse(await asyncio.to_thread(self._act, self._one, action))

    async def _state(self, request: Request) -> Response:
        return JSONResponse(_state_of(self._one))

    async def _mcp(self, request: Request) -> Response:
        """Answer JSON-RPC of the one session of HTTP: the tools, and calls of them."""
        message = await body_of(request, None)
        method, params = message.get("method"), message.get("params") or {}
        head = {"jsonrpc": "2.0", "id": message.get("id")}
        if method == "tools/list":
            shown = [{**each, "inputSchema": each["input_schema"]} for each in self._tools()]
            return JSONResponse({**head, "result": {"tools": shown}})
        if method == "tools/call" and isinstance(params, dict):
            action = {"tool_name": params.get("name"), "arguments": params.get("arguments", {})}
            seen = (await asyncio.to_thread(self._act, self._one, action))["observation"]
            text = seen["error"]["message"] if seen["error"] else json.dumps(seen["result"], ensure_ascii=False)
            content = [{"type": "text", "text": text}]
            return JSONResponse({**head, "result": {"content": content, "isError": seen["error"] is not None}})
        code, why = (_NO_METHOD, "no such method") if isinstance(method, str) else (_INVALID_REQUEST, "invalid request")
        return JSONResponse({**head, "error": {"code": code, "message": why}})

    # NeMo Gym ----------------------------------------------------------------------------------------

    async def _seed(self, request: Request) -> Response:
        key = await asyncio.to_thread(self._episodes.seed, await body_of(request, None))
        answer = JSONResponse({})
        answer.set_cookie(COOKIE, key, httponly=True, samesite="strict")
        return answer

    async def _tool(self, request: Request) -> Response:
        episode = self._episodes.of(request.cookies.get(COOKIE))
        args = await body_of(request, None)
        step, _, _ = await asyncio.to_thread(episode.call, request.path_params["tool"], args)
        result, problem = told(step)
        return JSONResponse({"error": problem}, 422) if problem else JSONResponse(result)

    async def _verify(self, request: Request) -> Response:
        """Score the episode by the last words of the response, and end it."""
        body, key = await body_of(request, None), request.cookies.get(COOKIE)
        episode = self._episodes.of(key)
        reward = await asyncio.to_thread(episode.score, _last_words(body.get("response")))
        self._episodes.close(str(key))
        return JSONResponse({**body, "reward": reward})


def _constant(value: JsonObject) -> Any:
    async def answer(_: Request) -> Response:
        return JSONResponse(value)

    return answer


def _observe(seen: JsonObject, reward: float | None, *, done: bool) -> JsonObject:
    return {"observation": {"done": done, "reward": reward, "metadata": {}, **seen}, "reward": reward, "done": done}


def _state_of(episode: Episode) -> JsonObject:
    return {"episode_id": episode.id or None, "step_count": episode.steps, "task": episode.task or None}


def _last_words(response: Any) -> str:
    """Return what an answer of the Responses API says last."""
    output = response.get("output") if isinstance(response, dict) else None
    for item in reversed(output if isinstance(output, list) else []):
        content = item.get("content") if isinstance(item, dict) and item.get("type") == "message" else None
        if isinstance(content, str):
            return content
        if isinstance(content, list):
            return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return ""
