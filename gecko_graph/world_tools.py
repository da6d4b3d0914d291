"""A world's answers as tool messages, and the tools with which an agent or a `ToolNode` acts on a world."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.prebuilt import ToolRuntime

from .models.conversation import build_complaint_message, build_result_message
from .state import Call, JsonObject, Step
from .toolkit import Toolkit
from .waiting import AT_ONCE, AWAITED, Driver, WaitingLine, finish

WHOLE = 10**9
"""Characters of a result that the agent is shown: all, as by the real tool."""
MOST_MESSAGES = 64
"""Messages of one world whose answers are kept, for a node that runs again after an interrupt."""
INJECTED = "gecko_runtime"
"""The argument that `ToolNode` fills with the runtime: no schema shows it, what a model sends is dropped."""


class WorldTool(BaseTool):
    """A tool that a world answers: it has no real function, so nothing can run for real."""

    desk: Any
    """What has the world answer; all tools of one `as_tools` share it."""

    def func(self, gecko_runtime: ToolRuntime) -> None:
        """Show LangGraph by its annotation what to inject: a JSON Schema has no place for that."""

    @property
    def _injected_args_keys(self) -> frozenset[str]:
        return frozenset((INJECTED,))  # left out of what is traced

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
    """Return the tools of the worlds that `find` returns for the runtime of a call; None where there is no graph."""
    desk = _Desk(find)
    shown = [each["function"] for each in toolkit.as_openai()]
    kinds = [(each["name"], each["description"], each["parameters"]) for each in shown]
    return [
        WorldTool(name=name, description=text, args_schema=schema, handle_tool_error=True, desk=desk)
        for name, text, schema in kinds
    ]


class _Book(NamedTuple):
    """One world's answers, by message and call."""

    line: WaitingLine
    kept: OrderedDict[str, dict[str | None, tuple[ToolCall, Step]]]


class _Desk:
    """Answers the calls of a message in its order: `ToolNode` makes them side by side, and again after an interrupt."""

    def __init__(self, find: Callable[[Any], Any]) -> None:
        self._find = find
        self._books: WeakKeyDictionary[Any, _Book] = WeakKeyDictionary()

    async def answer(self, own: ToolCall, runtime: ToolRuntime | None, driver: Driver) -> Step:
        """Have the first call of a message answer all of it; a call that is in no message is answered alone."""
        world = self._find(runtime)
        key, calls = self._read_message(runtime)
        book = self._books.setdefault(world, _Book(WaitingLine(), OrderedDict()))
        async with driver.turn(book.line):
            if key and key not in book.kept and any(is_same(call, own) for call in calls):
                steps = await driver.do(world.call_all, world.acall_all, world.read_calls(calls))
                book.kept[key] = {call["id"]: (call, step) for call, step in zip(calls, steps, strict=True)}
                while len(book.kept) > MOST_MESSAGES:
                    book.kept.popitem(last=False)
            call, step = book.kept.get(key or "", {}).get(own["id"], (None, None))
            if step is not None and is_same(call, own):
                return step
            (alone,) = await driver.do(world.call_all, world.acall_all, world.read_calls([own]))
            return alone  # type: ignore[no-any-return]

    def _read_message(self, runtime: ToolRuntime | None) -> tuple[str | None, list[ToolCall]]:
        if runtime is None:
            return None, []
        others = {tool.name for tool in runtime.tools if getattr(tool, "desk", None) is not self}
        return find_pending(messages_of(runtime.state), others)


def find_pending(messages: Sequence[AnyMessage], untouched: Collection[str] = ()) -> tuple[str | None, list[ToolCall]]:
    """Return the id of the model's last message, and its calls that are unanswered, without those of some tools."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            calls = [call for call in message.tool_calls if call["id"] not in answered]
            return message.id, [call for call in calls if call["name"] not in untouched]
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
    return None, []


def messages_of(state: Any, key: str = "messages") -> list[AnyMessage]:
    """Return the messages of a graph's state: a list, a mapping or an object."""
    if isinstance(state, list):
        return state
    return (state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)) or []


def is_same(one: Any, other: Any) -> bool:
    """Return whether two calls have the same tool and arguments."""
    return bool(one["name"] == other["name"] and one["args"] == other["args"])


def build_message(call: ToolCall, step: Step) -> ToolMessage:
    """Return a step as the answer to the model's call, with its marks in `additional_kwargs["gecko"]`."""
    named = name_call(call)
    if "outcome" in step:
        message = build_result_message(named, step["outcome"], task="", budget=WHOLE)
    else:
        message = build_complaint_message(named, step["complaints"])
    return add_marks(message, marks_of(step))


def name_call(call: ToolCall) -> Call:
    """Return a LangChain call as ours."""
    return {"id": call["id"] or "", "name": call["name"], "args": call["args"]}


def marks_of(step: Step) -> JsonObject:
    """Return what a simulated answer rests on: its rung, whether that made it up, what could not be checked."""
    if "outcome" not in step:
        return {"simulated": True, "rung": "validator", "made_up": False}
    outcome = step["outcome"]
    marks = {"simulated": outcome["simulated"], "rung": outcome["rung"], "made_up": bool(outcome.get("invented"))}
    return {**marks, **{key: outcome[key] for key in ("unclear", "refused", "violations") if outcome.get(key)}}


def add_marks(message: ToolMessage, marks: JsonObject) -> ToolMessage:
    """Return a message with marks; what it had under that key is gone."""
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, "gecko": marks}})
