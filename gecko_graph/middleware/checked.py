"""The real tool of one call: it runs with the checked arguments, or not at all."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from functools import wraps
from typing import Any

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.tools import StructuredTool

from ..models.formatting import format_json
from ..tools import Toolkit
from ..tools.check import find_fault
from ..tools.real import CLAIMED, as_json
from ..values.digest import clone, open_json
from ..world.refusals import is_same_call
from ..world.rung import Answer

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
        if refused := self._refuse(given):
            return refused
        values = list[Any]()
        return with_value(_watched(self._tool, values).invoke(given, config, **more), values)

    async def ainvoke(self, given: Any, config: Any = None, **more: Any) -> Any:
        if refused := self._refuse(given):
            return refused
        values = list[Any]()
        return with_value(await _watched(self._tool, values).ainvoke(given, config, **more), values)

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


def _watched(tool: Any, values: list[Any]) -> Any:
    """Return a copy of the tool that adds its function's value to `values`; other tools than functions as they are."""
    if type(tool) is not StructuredTool or tool.response_format != "content":  # a subclass may keep state
        return tool
    functions = {"func": tool.func, "coroutine": tool.coroutine}
    plain = {name: one for name, one in functions.items() if inspect.isfunction(one) or inspect.ismethod(one)}
    return tool.model_copy(update={name: _watch(one, values) for name, one in plain.items()})


def _watch(function: Callable[..., Any], values: list[Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(*args: Any, **more: Any) -> Any:
        value = function(*args, **more)
        values.append(value)
        return value

    @wraps(function)
    async def arun(*args: Any, **more: Any) -> Any:
        value = await function(*args, **more)
        values.append(value)
        return value

    return arun if inspect.iscoroutinefunction(function) else run


def with_value(result: Any, values: list[Any]) -> Any:
    """Return a tool's message with the function's value as artifact, in MCP's form, if its text does not have it.

    LangChain writes a value that `json` cannot write (a Pydantic model, a date in a dict) by `str`, which shows the
    model something, but is no value to check.
    """
    is_text = isinstance(result, ToolMessage) and result.status != "error" and isinstance(result.content, str)
    if not is_text or result.artifact is not None or len(values) != 1 or isinstance(values[0], str | Iterator):
        return result
    found = as_json(values[0]) if open_json(result.content) == result.content else None
    if not isinstance(found, Answer) or find_fault(found.result, what="the result"):
        return result
    return result.model_copy(update={"artifact": {"structured_content": found.result}})
