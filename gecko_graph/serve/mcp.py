"""The tools over MCP, old and new protocol, on the official low-level server, since schemas are known at run time only.

Over HTTP the session is named by `X-Session-ID` or the path `/s/{id}/mcp`, else it is `default`: not by the old
protocol's `Mcp-Session-Id`, since some clients open a connection for each call.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from langchain_core.messages import HumanMessage
from mcp import MCPError, types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from .. import __version__
from ..create import create_gecko
from ..errors import GeckoError, NotMade, RunFailure
from ..graph import Gecko
from ..models.factory import ModelsLike
from ..schemas.complaints import describe_complaint
from ..schemas.subschemas import rebuild
from ..state import Complaint, Json, JsonObject, Step
from ..tools.check import check_by_rule
from ..tools.openapi.request import CannotSend
from ..tools.spec import ToolSpec
from ..values.media import as_mcp, show_media
from ..values.notes import notes_of, tell
from .guard import MAX_BODY
from .operations import doubts, made_up
from .sessions import DEFAULT, HttpRefusal, Sessions
from .shadow import IN_DOUBT, MAY_HAVE, Passed, Upstream

META_KEY = "gecko/idempotency-key"
"""Key in a call's `_meta`: the idempotency key of a real write."""
REHEARSE_S = 600.0
"""Time limit of a rehearsal in seconds."""

_CALLS: JsonObject = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "args": {"type": "object"}},
    },
}
_TASK: JsonObject = {"type": "string", "description": "The user's task."}
_OWN = {
    "gecko_preview": ("Try calls on a copy: their answers and changes. Nothing is kept.", {"calls": _CALLS}),
    "gecko_state": ("The simulated task state as it is now.", {}),
    "gecko_undo": ("Take the last answered call back.", {}),
    "gecko_reset": ("Go back to the start.", {}),
    "gecko_rehearse": ("Plan a task on a copy: calls that were seen to work, judged.", {"task": _TASK}),
}


class McpFace:
    """An MCP server over sessions.

    Args:
        sessions: The sessions.
        own: Whether to add the `gecko_...` tools.
        model: The model of `gecko_rehearse`, which is omitted without it.
        upstream: The real service that calls are forwarded to.
    """

    def __init__(
        self,
        sessions: Sessions,
        *,
        own: bool = False,
        model: ModelsLike = None,
        upstream: Upstream | None = None,
    ) -> None:
        self._sessions, self._model, self._upstream = sessions, model, upstream
        self._works = set[asyncio.Future[Passed]]()
        names = [name for name in _OWN if own and (model is not None or name != "gecko_rehearse")]
        self._own = [name for name in names if name not in sessions.base.toolkit]
        handlers: Any = {"on_list_tools": self._list, "on_call_tool": self._call}
        self._server: Server[Any] = Server("gecko-graph", version=__version__, **handlers)
        stateless = sessions.store.is_shared  # another process does not know the old protocol's sessions
        self.manager = StreamableHTTPSessionManager(self._server, max_request_body_size=MAX_BODY, stateless=stateless)

    def routes(self) -> list[Route]:
        """Return the routes of streamable HTTP; `manager.run()` must be active while they are used."""
        return [Route(path, endpoint=self) for path in ("/mcp", "/s/{session}/mcp")]

    async def run_stdio(self) -> None:
        """Serve standard input until it ends, as one session."""
        async with stdio_server() as (reading, writing):
            await self._server.run(reading, writing, self._server.create_initialization_options())
        if self._upstream is not None:
            await asyncio.gather(*self._works, return_exceptions=True)  # calls at the service are completed
            await self._upstream.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            named = scope.get("path_params", {}).get("session")
            if named is not None:
                await self._sessions.get(named)
        except HttpRefusal as refused:
            await refused.respond()(scope, receive, send)
            return
        await self.manager.handle_request(scope, receive, send)

    async def _list(self, context: Any, params: Any) -> types.ListToolsResult:
        tools = [_describe(tool, is_real=self._upstream is not None) for tool in self._sessions.base.toolkit]
        for name in self._own:
            about, given = _OWN[name]
            schema = {"type": "object", "properties": given, "required": [*given]}
            tools.append({"name": name, "description": about, "inputSchema": schema})
        return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in tools])

    async def _call(self, context: Any, params: Any) -> types.CallToolResult:
        name, args = params.name, dict(params.arguments or {})
        try:
            session = _named_session(context.request)
            if name in self._own:
                return await self._call_own(context, session, name, args)
            if name not in self._sessions.base.toolkit:
                raise MCPError(types.INVALID_PARAMS, f"unknown tool: {name[:80]}")
            if self._upstream is not None:
                return await self._pass_on(context, self._upstream, session, params)
            return _as_result(await self._sessions.call(session, {"name": name, "args": args}))
        except (GeckoError, RunFailure, CannotSend, NotMade) as refused:
            return _result(str(refused), is_error=True)
        except TimeoutError:
            return _result("timed out; nothing was changed", is_error=True)

    async def _pass_on(self, context: Any, upstream: Upstream, session: str, params: Any) -> types.CallToolResult:
        """Make a call at the real service.

        It continues if the client disconnects; its result is stored under the key.
        """
        name, args = params.name, dict(params.arguments or {})
        tool, key = self._sessions.base.toolkit[name], (params.meta or {}).get(META_KEY, "")
        if META_KEY in (params.meta or {}) and not (isinstance(key, str) and key.strip()):
            return _result(f"{META_KEY}: expected a text that is not empty", is_error=True)
        if complaints := check_by_rule({"id": "", "name": name, "args": args}, tool):
            return _refuse(complaints)
        work = asyncio.ensure_future(upstream.call(tool, args, self._sessions, session, key.strip()))
        self._works.add(work)
        work.add_done_callback(self._works.discard)
        passed = await asyncio.shield(work)
        meta = {name.replace("x-gecko-", "gecko/"): value for name, value in passed.note.items()}
        real = {"gecko/rung": "real", "gecko/simulated": False}
        result = _result(passed.answer.result, is_error=passed.answer.status == "error", meta=real | meta)
        if IN_DOUBT in passed.note:
            result.content.append(types.TextContent(type="text", text=MAY_HAVE))
        return result

    async def _call_own(self, context: Any, session: str, name: str, args: JsonObject) -> types.CallToolResult:
        held = await self._sessions.get(session)
        if name == "gecko_state":
            return _result(held.world.state)
        if name == "gecko_preview":
            calls = args.get("calls")
            if not isinstance(calls, list) or len(calls) > 50:
                return _result("calls: expected a list of at most 50 calls", is_error=True)
            world, state = held.world.fork(), held.world.state
            async with asyncio.timeout(self._sessions.call_s):
                return _result({"steps": await world.acall_all(calls), "changed": world.state != state})
        if name == "gecko_rehearse":
            async with asyncio.timeout(REHEARSE_S):
                return await self._rehearse(context, held.world.state, args.get("task"))
        last = max((at for at, step in enumerate(held.world.log) if "outcome" in step), default=0)
        reset = await self._sessions.reset(session, 0 if name == "gecko_reset" else last)
        return _result({"steps": reset.steps})

    @cached_property
    def _gecko(self) -> Gecko:
        return create_gecko(self._sessions.base.toolkit, model=self._model)

    async def _rehearse(self, context: Any, state: JsonObject, task: Json) -> types.CallToolResult:
        if not isinstance(task, str) or not task.strip():
            return _result("task: expected a text, the user's task", is_error=True)
        given: Any = {"messages": [HumanMessage(task)], "task_state": state}
        found: Any = {}
        count = 0
        async for mode, part in self._gecko.astream(given, stream_mode=["updates", "values"]):
            if mode == "values":
                found = part
                continue
            count += 1
            await context.session.report_progress(count, message=", ".join(part))
        kept = {key: found["rehearsal"].get(key) for key in ("plan", "verdict", "answer", "changes")}
        return _result(kept)


def _named_session(request: Request | None) -> str:
    if request is None:
        return DEFAULT
    return str(request.headers.get("x-session-id") or request.scope.get("path_params", {}).get("session") or DEFAULT)


def _describe(tool: ToolSpec, *, is_real: bool) -> JsonObject:
    """Return a tool as MCP lists it.

    A client discards a result that breaks its output schema. So the tools of a real service, which may differ from its
    document, have none.
    """
    described: JsonObject = {
        "name": tool.name,
        "description": tool.about,
        "inputSchema": {"type": "object"} | tool.parameters,
    }
    if isinstance(tool.result, dict) and tool.result.get("type") == "object" and not is_real:
        described["outputSchema"] = _opened(tool.result)
    if tool.effect is not None:
        described["annotations"] = {"readOnlyHint": tool.effect == "read", "openWorldHint": False}
    return described


def _opened(schema: Any) -> Any:
    """Return a schema that allows further members: nothing fits an `allOf` of closed parts, as documents often have."""
    if not isinstance(schema, dict):
        return schema
    closing = ("additionalProperties", "unevaluatedProperties")
    return {key: one for key, one in rebuild(schema, _opened).items() if key not in closing or one is not False}


def _as_result(step: Step) -> types.CallToolResult:
    if "outcome" not in step:
        return _refuse(step.get("complaints", []))
    outcome = step["outcome"]
    meta: JsonObject = {"gecko/rung": outcome["rung"], "gecko/simulated": outcome["simulated"]}
    meta |= {"gecko/made-up": made_up(outcome), "gecko/notes": doubts(outcome)}
    if refused := notes_of(outcome, "refused"):
        return _result(tell(refused[0]), is_error=True, meta=meta)
    return _result(outcome["result"], is_error=outcome["status"] == "error", meta=meta)


def _refuse(complaints: Sequence[Complaint]) -> types.CallToolResult:
    lines = list(map(describe_complaint, complaints))
    return _result("\n".join(lines), is_error=True)


def _result(value: Json, *, is_error: bool = False, meta: JsonObject | None = None) -> types.CallToolResult:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    content = [{"type": "text", "text": text}, *map(as_mcp, show_media(value))]
    given: JsonObject = {"content": content, "isError": is_error, "_meta": meta}
    if isinstance(value, dict):
        given["structuredContent"] = value
    return types.CallToolResult.model_validate(given)
