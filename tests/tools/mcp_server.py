"""An MCP server of the tests: a shop, over stdio as a script, in process, or over streamable HTTP on loopback."""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from mcp import types
from mcp.server import Server

COMMAND = [sys.executable, str(Path(__file__).resolve())]
TEXT = {"type": "string"}
ORDER = {
    "name": "order",
    "description": "Order an item.",
    "inputSchema": {"type": "object", "properties": {"item": TEXT}, "required": ["item"]},
    "outputSchema": {"type": "object", "properties": {"id": {"type": "integer"}, "item": TEXT}, "required": ["id"]},
    "annotations": {"readOnlyHint": False},
}
NOTHING = {"type": "object", "properties": {}}
LOOK = {"name": "look", "inputSchema": NOTHING, "annotations": {"readOnlyHint": True}}


class Shop:
    """Its tools, and what they have done: `answers` says what a tool answers in the place of its own."""

    def __init__(self, tools=(ORDER, LOOK), *, page=100, **answers):
        self.tools, self.page, self.answers = list(tools), page, answers
        self.orders: list[str] = []
        self.calls: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.server = Server("shop", on_list_tools=self.list_tools, on_call_tool=self.call_tool)

    async def list_tools(self, context, params):
        start = int((params and params.cursor) or 0)
        tools = [types.Tool.model_validate(tool) for tool in self.tools[start : start + self.page]]
        end = start + self.page
        return types.ListToolsResult(tools=tools, next_cursor=str(end) if end < len(self.tools) else None)

    async def call_tool(self, context, params):
        name, args = params.name, params.arguments or {}
        self.calls.append(name)
        if context.request is not None:
            self.headers.append(dict(context.request.headers))
        answer = self.answers.get(name, getattr(self, name, None))
        given = answer(**args) if callable(answer) else answer
        given = await given if hasattr(given, "__await__") else given
        return given if isinstance(given, types.CallToolResult) else result(given)

    def order(self, item):
        self.orders.append(item)
        return {"id": len(self.orders), "item": item}

    def look(self):
        return {"orders": self.orders, "pid": os.getpid(), "key": os.environ.get("SHOP_KEY"),
                "color": os.environ.get("SHOP_COLOR")}  # fmt: skip

    def die(self):
        self.orders.append("died")
        os._exit(3)


def result(structured=None, *blocks, **more):
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return types.CallToolResult.model_validate({"content": content, "structuredContent": structured, **more})


@contextmanager
def serving(shop):
    """The shop over streamable HTTP; yields its address."""
    import uvicorn

    app = shop.server.streamable_http_app()
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none"))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            thread.join()


async def main():
    from mcp.server.stdio import stdio_server

    server = Shop([ORDER, LOOK, {"name": "die", "inputSchema": NOTHING}]).server
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    import anyio

    anyio.run(main)
