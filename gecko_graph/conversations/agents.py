"""The agent of a conversation: a chat model, a server's address, or a factory from tools to anything that runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, ToolException

from ..errors import GeckoError
from ..models.factory import ModelLike, chat_model
from ..models.formatting import text_of
from ..state import JsonObject, Step
from ..world import World
from .batch import answer_batch, show_step

Factory: TypeAlias = Callable[[Sequence[BaseTool]], Runnable[Any, Any]]
AgentLike: TypeAlias = ModelLike | Factory

ADDRESS_MODEL = "agent"
"""The model's name that a server is asked for, where only its address is given."""

TOGETHER_S = 2.0
"""Seconds that the first calls of a message wait for its others: an agent may drop some."""


def read_agent(agent: AgentLike, *, base_url: str | None = None) -> BaseChatModel | Factory:
    """Return a chat model or a factory.

    Raises:
        GeckoError: It is neither: a graph or another Runnable must come as a function from tools to it.
    """
    if isinstance(agent, str) and agent.startswith(("http://", "https://")):
        return chat_model(f"openai:{ADDRESS_MODEL}", base_url=agent)
    if isinstance(agent, str | BaseChatModel):
        return chat_model(agent, base_url=base_url)
    if isinstance(agent, Runnable) or not callable(agent):
        raise GeckoError(
            f"agent: expected a chat model, 'provider:name', an address, or a function from tools to an agent, got "
            f"{type(agent).__name__}: write lambda tools: ..., so that its tools act on the conversation's world"
        )
    return agent


def check_runnable(runnable: object, *, checkpointed: bool) -> Runnable[Any, Any]:
    """Return what a factory has made.

    Raises:
        GeckoError: It cannot run; or it keeps checkpoints of its own, which a fork of the conversation does not go
            back to.
    """
    if not isinstance(runnable, Runnable):
        raise GeckoError(f"agent: expected a Runnable from the function, got {type(runnable).__name__}")
    if checkpointed and getattr(runnable, "checkpointer", None):
        raise GeckoError("agent: it has a checkpointer of its own: leave it out, the conversation's keeps the messages")
    return runnable


@dataclass(frozen=True, slots=True)
class Turn:
    """What an agent made of its turn: its messages, with each call's step in the world, and whether calls raced."""

    messages: list[AnyMessage]
    races: int


async def run_turn(factory: Factory, world: World, view: Sequence[BaseMessage], *, checkpointed: bool) -> Turn:
    """Run an agent on its view of the conversation, its tools over a world, until it answers.

    Returns:
        Its calls, their answers and its text. Where it keeps its calls to itself, they follow from the world's log.

    Raises:
        GeckoError: The factory or its agent cannot be used.
        Exception: Whatever the agent raises.
    """
    desk = _Desk(world)
    first = len(world.log)
    runnable = check_runnable(factory(desk.tools()), checkpointed=checkpointed)
    result = await runnable.ainvoke({"messages": list(view)}, {"callbacks": [_Listener(desk)]})
    return Turn(_read_messages(result, len(view), world, first), desk.races)


def _read_messages(result: Any, known: int, world: World, first: int) -> list[AnyMessage]:
    steps = world.log[first:]
    messages = result.get("messages") if isinstance(result, dict) else [result]
    if not isinstance(messages, list) or not all(isinstance(each, BaseMessage) for each in messages):
        raise GeckoError(f"agent: expected a message, or {{'messages': [...]}}, got {type(result).__name__}")
    new = messages[known:] if isinstance(result, dict) and len(messages) > known else messages[-1:]
    made: list[AnyMessage] = [each for each in new if isinstance(each, AIMessage | ToolMessage)]
    called = sum(len(each.tool_calls) for each in made if isinstance(each, AIMessage))
    if called == len(steps) == sum(isinstance(each, ToolMessage) for each in made):
        return made
    answer = next((each for each in reversed(made) if isinstance(each, AIMessage) and not each.tool_calls), None)
    return [*_replay(world, steps), *([answer] if answer else [])]


def _replay(world: World, steps: Sequence[Step]) -> list[AnyMessage]:
    """Return calls and answers as an agent's messages."""
    shown = (show_step(world, step) for step in steps)
    return [each for call, answer in shown for each in (AIMessage("", tool_calls=[call]), answer)]


class WorldTool(BaseTool):
    """A tool that acts on a conversation's world: all that a call holds reaches it, what is wrong is its answer."""

    desk: Any

    def _run(self, /, **args: Any) -> str:
        call = {"name": self.name, "args": args}
        return self._read(self.desk.world.call(*self.desk.world.read_calls([call])))

    async def _arun(self, /, **args: Any) -> str:
        return self._read(await self.desk.answer({"name": self.name, "args": args}))

    def _read(self, step: Step) -> str:
        _, message = show_step(self.desk.world, step)
        if message.status == "error":
            raise ToolException(text_of(message))
        return text_of(message)


@dataclass(slots=True)
class _Desk:
    """Takes an agent's calls: those of one message are answered together. `expected` is how many it has."""

    world: World
    races: int = 0
    expected: int = 1
    _waiting: list[tuple[JsonObject, asyncio.Future[Step]]] = field(default_factory=list)

    def tools(self) -> list[BaseTool]:
        return [
            WorldTool(
                name=each["function"]["name"],
                description=each["function"].get("description") or each["function"]["name"],
                args_schema=each["function"]["parameters"],
                handle_tool_error=True,
                desk=self,
            )
            for each in self.world.toolkit.as_openai()
        ]

    async def answer(self, call: JsonObject) -> Step:
        future: asyncio.Future[Step] = asyncio.get_running_loop().create_future()
        self._waiting.append((call, future))
        if len(self._waiting) >= self.expected:
            self._answer_all()
        done, _ = await asyncio.wait({future}, timeout=TOGETHER_S)
        if not done and any(each is future for _, each in self._waiting):
            self._answer_all()
        return await future

    def _answer_all(self) -> None:
        waiting, self._waiting, self.expected = self._waiting, [], 1
        calls = self.world.read_calls([call for call, _ in waiting])
        answered = answer_batch(self.world, calls)
        self.races += answered.race
        for (_, future), step in zip(waiting, answered.steps, strict=True):
            future.set_result(step)


class _Listener(AsyncCallbackHandler):
    """Sees the calls of each message of the agent's model: how many the tools get, and those of unknown tools."""

    def __init__(self, desk: _Desk) -> None:
        self._desk = desk

    async def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Note the number of calls, and answer those that no tool gets: the agent's own graph refuses them."""
        messages = [getattr(each, "message", None) for one in response.generations for each in one]
        calls = [call for each in messages for call in getattr(each, "tool_calls", ())]
        toolkit = self._desk.world.toolkit
        unknown = [call for call in calls if toolkit.resolve(call["name"]) not in toolkit]
        for call in self._desk.world.read_calls(unknown):
            self._desk.world.call(call)
        self._desk.expected = max(len(calls) - len(unknown), 1)
