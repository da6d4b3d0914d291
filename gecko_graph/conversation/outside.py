"""Detect an agent under test that uses tools outside of the world: in its objects before it runs, or by its calls.

Only the former prevents harm. The search follows fields, closures and used globals.
"""

from __future__ import annotations

import gc
import inspect
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, CoroutineType, FrameType, FunctionType, GeneratorType, ModuleType, TracebackType
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool

from ..errors import GeckoError
from .desk import ConversationTool, Desk

MOST = 20_000
"""Most objects of an agent that are searched."""

HOW = "build it with the given tools: def build(tools): return create_agent(model, tools)"

_LIBRARIES = ("langchain", "langgraph", "langsmith", "pydantic")
_CODE = (type, ModuleType, CodeType, FrameType, TracebackType, GeneratorType, CoroutineType)
_CLOSED = (str, bytes, int, float, type(None), *_CODE, ConversationTool, Desk)


class LeftWorld(GeckoError):
    """An agent under test uses other tools than the given ones, which are not simulated."""


def check_factory(factory: Callable[..., Any]) -> None:
    """Raise GeckoError for a function that takes no tools: its agent would call its own, for real."""
    try:
        inspect.signature(factory).bind([])
    except ValueError:  # it has no readable signature
        return
    except TypeError as error:
        name = getattr(factory, "__name__", type(factory).__name__)
        raise GeckoError(f"agent: {name}() cannot be called with a list of tools ({error}): {HOW}") from None


def check_built(made: object, desk: Desk) -> None:
    """Check the tools with which an agent was built, before it runs, and note those that it calls by `ToolNode`s.

    Raises:
        LeftWorld: A `ToolNode` has a tool with a name of the world's that does not use a given tool; or the agent uses
            no given tool, but another tool with such a name, or a function of the toolkit.
    """
    from langgraph.prebuilt import ToolNode

    found = list(walk(made))
    nodes = [each for each in found if isinstance(each, ToolNode)]
    called = {name: tool for node in nodes for name, tool in node.tools_by_name.items() if name in desk.names}
    others = {name for name, tool in called.items() if not _leads_to(list(walk(tool)), desk)}
    if not others and not _leads_to(found, desk):
        real = {id(inspect.unwrap(tool.real)): tool.name for tool in desk.world.toolkit if tool.real}
        others |= {each.name for each in found if isinstance(each, BaseTool)} & desk.names
        others |= {real[id(each)] for each in found if id(each) in real}
    if others:
        raise LeftWorld(f"agent: it uses its own tools instead of the given {', '.join(sorted(others))}: {HOW}")
    desk.held |= called.keys()
    desk.wrapped |= {name for name, tool in called.items() if not isinstance(tool, ConversationTool)}


def _leads_to(found: Sequence[object], desk: Desk) -> bool:
    """Return whether a given tool is among these objects, or may be since the search was incomplete."""
    return len(found) >= MOST or any(isinstance(each, ConversationTool) and each.desk is desk for each in found)


def walk(start: object) -> Iterator[object]:
    """Yield an object and the objects reachable from it, breadth first."""
    seen, waiting = {id(start): start}, deque([start])
    while waiting:
        one = waiting.popleft()
        yield one
        for each in _holds(one):
            if id(each) not in seen and len(seen) < MOST:
                seen[id(each)] = each
                waiting.append(each)


def _holds(one: object) -> Sequence[object]:
    if isinstance(one, _CLOSED):
        return ()
    if not isinstance(one, FunctionType):
        return gc.get_referents(one)
    own = [*(one.__closure__ or ()), one.__defaults__, one.__kwdefaults__, one.__dict__]
    if (one.__module__ or "").startswith(_LIBRARIES):
        return own
    return [*own, *(one.__globals__[name] for name in one.__code__.co_names if name in one.__globals__)]


def find_aside(messages: Sequence[BaseMessage], desk: Desk) -> set[str]:
    """Return the ids of calls of the world's tools that the agent's middleware has answered itself.

    Raises:
        LeftWorld: Other calls were answered neither by the world nor by a refusal of the agent.
    """
    answers = {each.tool_call_id: each for each in messages if isinstance(each, ToolMessage)}
    made = [call for each in messages if isinstance(each, AIMessage) for call in each.tool_calls]
    last = getattr(messages[-1], "tool_calls", []) if messages else []  # not answered yet
    calls = [call for call in made if call["name"] in desk.names and call not in last]
    steps = [step["call"] for step in desk.steps()]
    known = {step["id"] for step in steps}
    left = Counter(step["name"] for step in steps)
    left.subtract(desk.world.toolkit.resolve(call["name"]) for call in calls if call["id"] in known)
    aside = set[str]()
    for call in (call for call in calls if call["id"] not in known):
        left[name := desk.world.toolkit.resolve(call["name"])] -= 1
        if left[name] >= 0:  # the agent's own loop may omit a call's id
            continue
        answer = answers.get(str(call["id"]))
        if call["name"] not in desk.held and not (answer and answer.status == "error"):
            raise LeftWorld(f"agent: a call of {call['name']} was not answered by the given tool: {HOW}")
        aside.add(str(call["id"]))
    return aside
