"""The real tool of one call: it runs with the checked arguments, or not at all."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from langchain_core.messages import ToolCall, ToolMessage

from ..models.formatting import format_json
from ..tools import Toolkit
from ..tools.real import CLAIMED
from ..values.digest import clone
from ..world.refusals import is_same_call

NOT_CHECKED = (
    "It was not carried out: it was edited after the guard had checked it. To have it checked and made, "
    "call {name} with {args}."
)
UNSENT: dict[str, Any] = {"http": {}}
"""Metadata of an answer without a service's response: it says nothing about other calls."""


def find_tool(request: Any, name: str, toolkit: Toolkit) -> Any:
    tools = [tool for tool in [request.tool, *request.runtime.tools] if tool]
    return next((tool for tool in tools if toolkit.resolve(tool.name) == toolkit.resolve(name)), None)


class Checked:
    """The tool of one checked call; a later middleware may have let a person edit the call since."""

    def __init__(self, tool: Any, call: ToolCall, known: Collection[str]) -> None:
        own = ToolCall(name=call["name"], args=clone(call["args"]), id=call["id"])
        self._tool, self._call, self._known = tool, own, known

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tool, name)

    def invoke(self, given: Any, config: Any = None, **more: Any) -> Any:
        """Run the tool, or refuse a call that was not checked."""
        return self._refuse(given) or self._tool.invoke(given, config, **more)

    async def ainvoke(self, given: Any, config: Any = None, **more: Any) -> Any:
        return self._refuse(given) or await self._tool.ainvoke(given, config, **more)

    def _refuse(self, given: Any) -> ToolMessage | None:
        """Return the answer to a call that was not checked; arguments injected by LangGraph are ignored."""
        args = {key: each for key, each in given["args"].items() if key in self._call["args"] or key in self._known}
        if is_same_call({**given, "args": args}, self._call):
            return None
        if claimed := CLAIMED.get():
            claimed["doubt"] = False
        content = NOT_CHECKED.format(name=given["name"], args=format_json(args))
        answer = ToolMessage(content, tool_call_id=given["id"], name=given["name"], status="error")
        return answer.model_copy(update={"additional_kwargs": UNSENT})
