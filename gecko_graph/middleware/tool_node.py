"""`ToolNode(tools, wrap_tool_call=simulate_with(world))`: the calls of a graph made by hand act on a world."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from langchain_core.messages import ToolCall, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from ..errors import GeckoError
from ..state import Step
from ..waiting import AT_ONCE, AWAITED, Driver, WaitingLine, finish
from ..world import World
from .messages import build_message, check_names, find_pending, is_same, messages_of

Answered = ToolMessage | Command[Any]
WorldOf = World | Callable[[Any], World]

MOST_MESSAGES = 64
"""Messages of one world whose answers are kept, for a node that runs again after an interrupt."""


def simulate_with(
    world: WorldOf, *, untouched: Collection[str] = ()
) -> Callable[[ToolCallRequest, Callable[[ToolCallRequest], Answered]], Answered]:
    """Return a `wrap_tool_call` for LangGraph's `ToolNode`: no real tool runs, the world answers.

    `ToolNode` runs the calls of one message side by side. The first of them has all answered, in the message's order
    and under `GeckoContext.parallel_calls`; a node that runs again is given the same answers.

    Args:
        world: The world, or a function from the node's runtime to one, such as one by thread or worker.
        untouched: Names of tools that run as they are, such as hand-offs between agents.

    Raises:
        GeckoError: `world` is neither.
    """
    answer = _answers_of(world, untouched)

    def wrap(request: ToolCallRequest, execute: Callable[[ToolCallRequest], Answered]) -> Answered:
        untouched_call = request.tool_call["name"] in untouched
        return execute(request) if untouched_call else finish(answer(request, AT_ONCE))

    return wrap


def asimulate_with(
    world: WorldOf, *, untouched: Collection[str] = ()
) -> Callable[[ToolCallRequest, Callable[[ToolCallRequest], Awaitable[Answered]]], Awaitable[Answered]]:
    """Return an `awrap_tool_call`: as `simulate_with`, for graphs that are run by `ainvoke` and `astream`."""
    answer = _answers_of(world, untouched)

    async def wrap(request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Answered]]) -> Answered:
        untouched_call = request.tool_call["name"] in untouched
        return await (execute(request) if untouched_call else answer(request, AWAITED))

    return wrap


class _Book(NamedTuple):
    """One world's answers, by message and call."""

    line: WaitingLine
    kept: OrderedDict[str, dict[str | None, tuple[ToolCall, Step]]]


def _answers_of(given: WorldOf, untouched: Collection[str]) -> Callable[[ToolCallRequest, Driver], Any]:
    check_names(untouched)
    if not isinstance(given, World) and not callable(given):
        raise GeckoError(f"expected a World, or a function from the runtime to one, got {type(given).__name__}")
    books: WeakKeyDictionary[World, _Book] = WeakKeyDictionary()

    async def answer(request: ToolCallRequest, driver: Driver) -> ToolMessage:
        world, own = given if isinstance(given, World) else given(request.runtime), request.tool_call
        key, calls = find_pending(messages_of(request.state), untouched)
        book = books.setdefault(world, _Book(WaitingLine(), OrderedDict()))
        async with driver.turn(book.line):
            if key and key not in book.kept and own in calls:
                steps = await driver.do(world.call_all, world.acall_all, world.read_calls(calls))
                book.kept[key] = {call["id"]: (call, step) for call, step in zip(calls, steps, strict=True)}
                while len(book.kept) > MOST_MESSAGES:
                    book.kept.popitem(last=False)
            known = book.kept.get(key or "", {}).get(own["id"])
            if known is not None and is_same(known[0], own):
                return build_message(own, known[1])
            (step,) = await driver.do(world.call_all, world.acall_all, world.read_calls([own]))
        return build_message(own, step)

    return answer
