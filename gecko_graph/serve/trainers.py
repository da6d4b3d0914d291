"""The wires of trainers: `/_gecko/openenv` (OpenEnv 0.10) and `/_gecko/nemo-gym` (a resources server).

Each session is a `GeckoEnv` that begins as a fork of its task's start. Nothing that a policy is shown tells goal or
reward: the reward is 0.0 until the episode ends, then the goal's. A socket is a session; over plain HTTP one is named
by its cookie, or by OpenEnv's `session_id`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from ..conversation.user import Case
from ..errors import GeckoError
from ..state import Json, JsonObject, Step
from ..training.env import GeckoEnv
from .app import body_of, safe
from .guard import MAX_BODY
from .sessions import Refused

OPENENV, NEMO_GYM = "/_gecko/openenv", "/_gecko/nemo-gym"
COOKIES = {OPENENV: "openenv_session", NEMO_GYM: "session"}
RESERVED = {"openenv": ("reset", "step", "state", "close"), "nemo-gym": ("verify", "seed_session")}
_INVALID_REQUEST, _NO_METHOD, _INVALID_PARAMS = -32600, -32601, -32602
_GET, _POST = ("state", "health", "metadata", "schema"), ("reset", "step", "mcp")
_WORDS: JsonObject = {"type": ["string", "null"]}
_SCHEMAS: JsonObject = {
    "action": {
        "title": "CallToolAction",
        "type": "object",
        "properties": {
            "type": {"const": "call_tool", "default": "call_tool", "type": "string"},
            "tool_name": {"type": "string", "description": "Name of the tool to call"},
            "arguments": {"type": "object", "description": "Arguments to pass to the tool"},
            "metadata": {"type": "object"},
        },
        "required": ["tool_name"],
    },
    "observation": {
        "type": "object",
        "properties": {
            **{"done": {"type": "boolean"}, "reward": {"type": ["number", "null"]}, "metadata": {"type": "object"}},
            **{"prompt": _WORDS, "tools": {"type": "array"}, "tool_name": _WORDS, "result": {}},
            "error": {"type": ["object", "null"]},
        },
    },
    "state": {"type": "object", "properties": {"episode_id": _WORDS, "step_count": {"type": "integer"}}},
}


def find_collisions(names: Sequence[str]) -> list[str]:
    """Return what is to be told of tools whose names a wire keeps for itself: it does not serve them."""
    return [
        f"{name} is a word of {wire}'s own: that wire does not offer the tool"
        for wire, words in RESERVED.items()
        for name in names
        if name in words
    ]


class Episode:
    """One session of a trainer."""

    def __init__(self, env: GeckoEnv, finish: str) -> None:
        self._env, self._finish, self._lock = env, finish, threading.Lock()
        self.id, self.task, self.steps, self.done, self._reward = "", "", 0, False, 0.0

    def reset(self, given: Mapping[str, Any]) -> str:
        """Begin an episode: `task` by name or number, `seed`, `episode_id`; returns the user's words.

        Raises:
            GeckoError: There is no such task.
        """
        with self._lock:
            task, seed = given.get("task"), given.get("seed")
            if not isinstance(task, str | int | None) or not isinstance(seed, int | None):
                raise GeckoError("reset: expected a task by name or number, and a seed that is a whole number")
            seen = self._env.reset(task, seed)
            self.id, self.task = str(given.get("episode_id") or uuid4()), self._env.task
            self.steps, self.done = 0, False
            return str(seen["messages"][0]["content"])

    def call(self, name: Any, args: Any) -> tuple[Json, str, float]:
        """Make a call, or finish; returns the result, why it was refused or failed ("" if not), and the reward.

        Raises:
            GeckoError: There was no reset, or the episode is over.
        """
        with self._lock:
            if self.done or not self.id:
                raise GeckoError("the episode is over: reset" if self.done else "there is no episode yet: reset")
            is_end = name == self._finish
            answer = str(args.get("answer", "")) if is_end and isinstance(args, Mapping) else ""
            stepped = self._env.step([], answer=answer) if is_end else self._env.step([{"name": name, "args": args}])
            self.steps, self.done = self.steps + 1, stepped.done
            self._reward = stepped.reward if stepped.done else 0.0
            return (*((None, "") if is_end else _told(self._env.log[-1])), self._reward)

    def score(self, answer: str) -> float:
        """Return what the goal says: at the episode's end, or at this point if it ended here with an answer."""
        with self._lock:
            return self._reward if self.done or not self.id else float(self._env.fork().step([], answer=answer).reward)


def _told(step: Step) -> tuple[Json, str]:
    if "outcome" not in step:
        return None, json.dumps(step["complaints"], ensure_ascii=False)
    result = step["outcome"]["result"]
    return result, "" if step["outcome"]["status"] == "ok" else json.dumps(result, ensure_ascii=False)


class Episodes:
    """What both wires serve.

    Args:
        tasks: Cases with a user and milestones, by `GeckoEnv`'s rules; all have the same tools.
        most: Sessions over plain HTTP at once; the one that was longest without a request gives way.

    Raises:
        GeckoError: A task cannot be played, or the tasks differ in their tools.
    """

    def __init__(self, tasks: Sequence[Case], *, most: int = 10_000) -> None:
        self.env, self._most = GeckoEnv(tasks), most
        cases = list(self.env.tasks.values())
        self.tools = cases[0].tools
        if any(case.tools.names != self.tools.names for case in cases):
            raise GeckoError("--tasks: expected tasks that all have the same tools")
        names = {each["function"]["name"] for each in self.tools.as_openai()} | {*self.tools.names}
        free = ("finish" if number == 1 else f"finish_{number}" for number in count(1))
        self.finish = next(name for name in free if name not in names)
        self._open: OrderedDict[str, Episode] = OrderedDict()

    def begin(self) -> Episode:
        """Return a new session."""
        return Episode(self.env.fork(), self.finish)

    def describe(self) -> list[JsonObject]:
        """Return the tools as a policy of OpenEnv is shown them, `finish` among them."""
        answer = {"type": "string", "description": "What is said to the user."}
        end = {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
        about = "Answer the user; this ends the conversation."
        found = [
            each["function"] for each in self.tools.as_openai() if each["function"]["name"] not in RESERVED["openenv"]
        ]
        found = [*found, {"name": self.finish, "description": about, "parameters": end}]
        return [
            {"name": f["name"], "description": f.get("description", ""), "input_schema": f["parameters"]} for f in found
        ]

    def open(self) -> str:
        """Begin a session that is named in each request; returns its key."""
        key = uuid4().hex
        self._open[key] = self.begin()
        while len(self._open) > self._most:
            self._open.popitem(last=False)
        return key

    def of(self, key: Any) -> Episode:
        """Return the session of a key. Raises Refused."""
        if key not in self._open:
            raise Refused(
                409, "there is no such session: begin one (reset, seed_session), and send its cookie or session_id"
            )
        self._open.move_to_end(key)
        return self._open[key]

    def close(self, key: str) -> None:
        """Forget a session."""
        self._open.pop(key, None)


class Trainers:
    """The routes."""

    def __init__(self, episodes: Episodes) -> None:
        self._episodes = episodes

    def routes(self) -> list[BaseRoute]:
        """Return the routes of both wires."""
        own: list[BaseRoute] = [WebSocketRoute(f"{OPENENV}/ws", self._socket)]
        fixed: dict[str, JsonObject] = {
            "health": {"status": "healthy"},
            "metadata": {"name": "gecko_graph", "description": "Tasks in simulated worlds", "version": "1.0.0"},
            "schema": _SCHEMAS,
            "openapi.json": {
                "openapi": "3.1.0",
                "info": {"title": "gecko_graph", "version": "1.0.0"},
                "paths": {f"/{name}": {"get" if name in _GET else "post": {}} for name in (*_GET, *_POST)},
            },
        }
        own += [Route(f"{OPENENV}/{name}", _constant(value)) for name, value in fixed.items()]
        own.append(Route(f"{OPENENV}/state", safe(self._state)))
        own += [
            Route(f"{wire}/{name}", safe(handler), methods=["POST"])
            for wire, name, handler in (
                (OPENENV, "reset", self._reset),
                (OPENENV, "step", self._step),
                (OPENENV, "mcp", self._mcp),
                (NEMO_GYM, "seed_session", self._seed),
                (NEMO_GYM, "verify", self._verify),
                (NEMO_GYM, "{tool}", self._tool),
            )
        ]
        return own

    # OpenEnv -----------------------------------------------------------------------------------------

    async def _socket(self, socket: WebSocket) -> None:
        """Serve one connection, which is one session: a new one, or that of its `session_id`."""
        await socket.accept()
        try:
            key = socket.query_params.get("session_id")
            episode = self._episodes.of(key) if key else self._episodes.begin()
        except Refused as refused:
            await socket.send_json({"type": "error", "data": {"message": str(refused), "code": "SESSION_ERROR"}})
            await socket.close()
            return
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
                return {"type": "observation", "data": _begin(episode, data)}
            if kind == "step":
                return {"type": "observation", "data": self._act(episode, data)}
            if kind == "state":
                return {"type": "state", "data": _state_of(episode)}
        except GeckoError as error:
            return {"type": "error", "data": {"message": str(error), "code": "EXECUTION_ERROR"}}
        code = "INVALID_JSON" if not message else "UNKNOWN_TYPE"
        return {"type": "error", "data": {"message": "expected reset, step, state or close", "code": code}}

    def _act(self, episode: Episode, action: Mapping[str, Any]) -> JsonObject:
        if action.get("type") == "list_tools":
            return _observe({"tools": self._episodes.describe()}, 0.0, done=episode.done)
        name = action.get("tool_name")
        result, problem, reward = episode.call(
            None if name in RESERVED["openenv"] else name, action.get("arguments", {})
        )
        error = {"error_type": "execution_error", "message": problem} if problem else None
        return _observe({"tool_name": name, "result": result, "error": error}, reward, done=episode.done)

    async def _reset(self, request: Request) -> Response:
        """Begin an episode: in the session that the client names, else in one of its own."""
        body = await body_of(request, None)
        key = _key(request, OPENENV, body) or self._episodes.open()
        begun = await asyncio.to_thread(_begin, self._episodes.of(key), body)
        return _with_cookie({**begun, "metadata": {"session_id": key}}, OPENENV, key)

    async def _step(self, request: Request) -> Response:
        body = await body_of(request, None)
        action, episode = body.get("action"), self._episodes.of(_key(request, OPENENV, body))
        if not isinstance(action, dict):
            raise Refused(422, "action: expected an object")
        return JSONResponse(await asyncio.to_thread(self._act, episode, action))

    async def _state(self, request: Request) -> Response:
        return JSONResponse(_state_of(self._episodes.of(_key(request, OPENENV, request.query_params))))

    async def _mcp(self, request: Request) -> Response:
        """Answer JSON-RPC: sessions, the tools, and calls of them in a session."""
        message = await body_of(request, None)
        method, given = message.get("method"), message.get("params")
        params: JsonObject = given if isinstance(given, dict) else {}
        head, key = {"jsonrpc": "2.0", "id": message.get("id")}, _key(request, OPENENV, params)
        try:
            if method == "tools/list":
                tools = [{**each, "inputSchema": each["input_schema"]} for each in self._episodes.describe()]
                return JSONResponse({**head, "result": {"tools": tools}})
            if method == "openenv/session/create":
                return JSONResponse({**head, "result": {"session_id": self._episodes.open()}})
            if method == "openenv/session/close":
                self._episodes.of(key)
                self._episodes.close(str(key))
                return JSONResponse({**head, "result": {"session_id": key, "closed": True}})
            if method == "tools/call":
                action = {"tool_name": params.get("name"), "arguments": params.get("arguments", {})}
                seen = (await asyncio.to_thread(self._act, self._episodes.of(key), action))["observation"]
                text = seen["error"]["message"] if seen["error"] else json.dumps(seen["result"], ensure_ascii=False)
                content = [{"type": "text", "text": text}]
                return JSONResponse({**head, "result": {"content": content, "isError": seen["error"] is not None}})
        except GeckoError as error:
            return JSONResponse({**head, "error": {"code": _INVALID_PARAMS, "message": str(error)}})
        code, why = (_NO_METHOD, "no such method") if isinstance(method, str) else (_INVALID_REQUEST, "invalid request")
        return JSONResponse({**head, "error": {"code": code, "message": why}})

    # NeMo Gym ----------------------------------------------------------------------------------------

    async def _seed(self, request: Request) -> Response:
        row, key = await body_of(request, None), self._episodes.open()
        await asyncio.to_thread(self._episodes.of(key).reset, {"task": row.get("task", 0)})
        return _with_cookie({}, NEMO_GYM, key)

    async def _tool(self, request: Request) -> Response:
        episode = self._episodes.of(_key(request, NEMO_GYM))
        name, args = request.path_params["tool"], await body_of(request, None)
        result, problem, _ = await asyncio.to_thread(episode.call, name, args)
        return JSONResponse({"error": problem}, 422) if problem else JSONResponse(result)

    async def _verify(self, request: Request) -> Response:
        """Score the episode by the last words of the response, and end it."""
        body, key = await body_of(request, None), _key(request, NEMO_GYM)
        reward = await asyncio.to_thread(self._episodes.of(key).score, _last_words(body.get("response")))
        self._episodes.close(str(key))
        return JSONResponse({**body, "reward": reward})


def _key(request: Request, wire: str, given: Mapping[str, Any] | None = None) -> Any:
    named = given.get("session_id") if given else None
    return named if isinstance(named, str) else request.cookies.get(COOKIES[wire])


def _with_cookie(body: JsonObject, wire: str, key: str) -> Response:
    answer = JSONResponse(body)
    answer.set_cookie(COOKIES[wire], key, httponly=True, samesite="strict", path=wire)
    return answer


def _constant(value: JsonObject) -> Any:
    async def answer(_: Request) -> Response:
        return JSONResponse(value)

    return answer


def _begin(episode: Episode, data: Mapping[str, Any]) -> JsonObject:
    return _observe({"prompt": episode.reset(data)}, None, done=False)


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
