"""Return a world's answers as tool messages; tools by which an agent or a `ToolNode` acts on a world."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.prebuilt import ToolRuntime

from ..events import RESULT_MARKS
from ..models.answer import AT_ONCE, AWAITED, Driver, WaitingLine, finish
from ..models.conversation import build_step_message
from ..state import Call, JsonObject, Step
from ..tools import Toolkit
from .refusals import is_same_call

WHOLE = 10**9
"""Characters of a result that the agent sees: all of them, as from the real tool."""
MOST_MESSAGES = 64
"""Most messages whose answers are kept, for a node that runs again after an interrupt."""
INJECTED = "gecko_runtime"
"""The argument in which `ToolNode` injects the runtime; no schema shows it, and a model's value for it is dropped."""


class WorldTool(BaseTool):
    """A tool that a world answers; it has no real function."""

    desk: Any
    """The `_Desk` that all tools of one `as_tools` share."""

    def func(self, gecko_runtime: ToolRuntime) -> None:
        """Declare the injected argument to LangGraph by annotation, since a JSON Schema cannot."""

    @property
    def _injected_args_keys(self) -> frozenset[str]:
        return frozenset((INJECTED,))  # not traced

    def _run(self, /, **args: Any) -> Any:
        return finish(self._answer(args, AT_ONCE))

    async def _arun(self, /, **args: Any) -> Any:
        return await self._answer(args, AWAITED)

    async def _answer(self, given: JsonObject, driver: Driver) -> Any:
        runtime, args = given.get(INJECTED), {key: each for key, each in given.items() if key != INJECTED}
        own = ToolCall(name=self.name, args=args, id=runtime.tool_call_id if runtime else None)
        message = build_message(own, await self.desk.answer(own, runtime, driver))
        if runtime is None and message.status == "error":
            raise ToolException(message.text)
        return message if runtime else message.content


def build_tools(toolkit: Toolkit, find: Callable[[Any], Any]) -> list[WorldTool]:
    """Return tools for the world that `find` returns for a call's runtime (None outside of a graph)."""
    desk = _Desk(find)
    shown = [dict(each["function"]) for each in toolkit.as_openai()]
    return [WorldTool(args_schema=each.pop("parameters"), handle_tool_error=True, desk=desk, **each) for each in shown]


class _Desk:
    """Answers a message's calls in order; `ToolNode` makes them in parallel, and again after an interrupt."""

    def __init__(self, find: Callable[[Any], Any]) -> None:
        self._find = find
        self._lines: WeakKeyDictionary[Any, WaitingLine] = WeakKeyDictionary()
        self._kept: OrderedDict[str, list[tuple[ToolCall, Step]]] = OrderedDict()

    async def answer(self, own: ToolCall, runtime: ToolRuntime | None, driver: Driver) -> Step:
        """Return the step of a call; the first call of a message answers all its calls.

        A call in no message runs alone.
        """
        world, (key, calls) = self._find(runtime), self._read_message(runtime)
        async with driver.turn(self._lines.setdefault(world, WaitingLine())):
            if key and key not in self._kept and any(is_same_call(call, own) for call in calls):
                steps = await driver.do(world.call_all, world.acall_all, world.read_calls(calls))
                self._kept[key] = list(zip(calls, steps, strict=True))
                while len(self._kept) > MOST_MESSAGES:
                    self._kept.popitem(last=False)
            for call, step in self._kept.get(key or "", ()):
                if call["id"] == own["id"] and is_same_call(call, own):
                    return step
            (alone,) = await driver.do(world.call_all, world.acall_all, world.read_calls([own]))
            return alone  # type: ignore[no-any-return]

    def _read_message(self, runtime: ToolRuntime | None) -> tuple[str | None, list[ToolCall]]:
        if runtime is None:
            return None, []
        others = {tool.name for tool in runtime.tools if getattr(tool, "desk", None) is not self}
        return find_pending(messages_of(runtime.state), others)


def find_pending(
    messages: Sequence[AnyMessage], exclude_tools: Collection[str] = ()
) -> tuple[str | None, list[ToolCall]]:
    """Return the id of the model's last message, and its unanswered calls, without those of `exclude_tools`."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            calls = [call for call in message.tool_calls if call["id"] not in answered]
            return message.id, [call for call in calls if call["name"] not in exclude_tools]
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
    return None, []


def messages_of(state: Any) -> list[AnyMessage]:
    """Return the messages of a graph's state: a list, a mapping or an object."""
    if isinstance(state, list):
        return state
    return (state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)) or []


def build_message(call: ToolCall, step: Step) -> ToolMessage:
    """Return a step as a message that answers the model's call, with marks in `additional_kwargs["gecko"]`."""
    named: Step = {**step, "call": name_call(call)}
    return add_marks(build_step_message(named, task="", budget=WHOLE), marks_of(step))


def name_call(call: ToolCall) -> Call:
    """Convert a LangChain call to a `Call`."""
    return {"id": call["id"] or "", "name": call["name"], "args": call["args"]}


def marks_of(step: Step) -> JsonObject:
    """Return the evidence marks of a simulated answer: its rung, whether it is made up, notes on unchecked points."""
    if "outcome" not in step:
        return {"simulated": True, "rung": "validator", "made_up": False}
    outcome = step["outcome"]
    marks = {"simulated": outcome["simulated"], "rung": outcome["rung"], "made_up": bool(outcome.get("invented"))}
    return {**marks, **{key: outcome[key] for key in RESULT_MARKS if outcome.get(key)}}  # type: ignore[literal-required]


def add_marks(message: ToolMessage, marks: JsonObject) -> ToolMessage:
    """Return a message with marks; earlier marks are replaced."""
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, "gecko": marks}})
