"""The agent of a conversation: a chat model, a server's address, or a factory from tools to anything that runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, Literal, TypeAlias
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool, ToolException

from ..errors import GeckoError
from ..models.factory import ModelLike, chat_model
from ..models.formatting import text_of
from ..models.planner_message import read_message, sanitize_message
from ..models.usage import add_all, count
from ..state import JsonObject, RoleUsage, Step
from ..world.world import World
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


def check_runnable(made: object, tools: Sequence[BaseTool], *, checkpointed: bool) -> Runnable[Any, Any]:
    """Return what a factory has made; a chat model, with its tools bound or without, is asked for its next message.

    Raises:
        GeckoError: It cannot run; or it keeps checkpoints of its own, which a fork of the conversation does not go
            back to.
    """
    if not isinstance(made, Runnable):
        raise GeckoError(f"agent: expected a Runnable from the function, got {type(made).__name__}")
    if isinstance(getattr(made, "bound", made), BaseChatModel):
        model = made.bind_tools(tools) if isinstance(made, BaseChatModel) else made
        return RunnableLambda(lambda given: given["messages"]) | model
    if checkpointed and getattr(made, "checkpointer", None):
        raise GeckoError("agent: it has a checkpointer of its own: leave it out, the conversation's keeps the messages")
    return made


async def run_turn(
    factory: Factory, desk: Desk, view: Sequence[BaseMessage], *, checkpointed: bool
) -> list[AnyMessage]:
    """Run an agent on its view of the conversation, its tools over a world, until it answers.

    It runs by itself: not as a part of the conversation's graph, whose checkpoints and interrupts are not its own.

    Returns:
        Its calls, their answers and its text. Where it keeps its calls to itself, they follow from the world's log.

    Raises:
        GeckoError: The factory or its agent cannot be used.
        Exception: Whatever the agent raises.
    """
    desk.config = {"callbacks": (var_child_runnable_config.get() or {}).get("callbacks")}
    var_child_runnable_config.set(desk.config)
    tools = desk.tools()
    runnable = check_runnable(factory(tools), tools, checkpointed=checkpointed)
    messages = [each.model_copy(deep=True) for each in view]
    return _read_messages(
        await runnable.ainvoke({"messages": messages}, {"callbacks": [_Listener(desk)]}), len(view), desk
    )


def _read_messages(result: Any, known: int, desk: Desk) -> list[AnyMessage]:
    if isinstance(result, dict) and result.get("__interrupt__"):
        raise GeckoError("agent: it was interrupted and waits for an answer: leave out its interrupts and approvals")
    messages = result.get("messages") if isinstance(result, dict) else [result]
    if not isinstance(messages, list) or not all(isinstance(each, BaseMessage) for each in messages):
        raise GeckoError(f"agent: expected a message, or {{'messages': [...]}}, got {type(result).__name__}")
    new = messages[known:] if isinstance(result, dict) and len(messages) > known else messages[-1:]
    made = [_as_stored(each) for each in new if isinstance(each, AIMessage | ToolMessage)]
    answers = [each.name for each in made if isinstance(each, ToolMessage)]
    called = sum(len(each.tool_calls) for each in made if isinstance(each, AIMessage))
    left = len(made[-1].tool_calls) if made and isinstance(made[-1], AIMessage) else 0
    if called - left == len(answers) and sum(name not in desk.own for name in answers) == len(desk.steps()):
        return made
    answer = next((each for each in reversed(made) if isinstance(each, AIMessage) and not each.tool_calls), None)
    return [*desk.replay(), *([answer] if answer else [])]


def _as_stored(message: AIMessage | ToolMessage) -> AnyMessage:
    """Return a message without what no checkpoint can hold. Raises GeckoError where it is too long."""
    if isinstance(message, ToolMessage):
        text = text_of(message).encode("utf-8", "replace").decode()
        named = {"tool_call_id": message.tool_call_id, "name": message.name, "status": message.status, "id": message.id}
        return ToolMessage(text, **named)
    kept, problem = read_message(message)
    if kept is None:
        raise GeckoError(f"agent: {problem}")
    return kept


Batch: TypeAlias = list[tuple[JsonObject, Future[Step]]]
"""Calls that are answered together, each with its answer to come."""

CALL_ID: ContextVar[str | None] = ContextVar("gecko_call_id", default=None)
"""The id of the call that a `WorldTool` answers."""


class WorldTool(BaseTool):
    """A tool that acts on a conversation's world: all that a call holds reaches it, what is wrong is its answer."""

    desk: Any
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Answer a call, and remember its id."""
        _remember_id(input)
        return super().invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Answer a call, and remember its id."""
        _remember_id(input)
        return await super().ainvoke(input, config, **kwargs)

    def _run(self, /, **args: Any) -> tuple[Any, JsonObject]:
        future, batch = self._submit(args)
        self.desk.answer(batch)
        try:
            return self._read(future.result(TOGETHER_S))
        except TimeoutError:
            self.desk.answer_waiting()
            return self._read(future.result())

    async def _arun(self, /, **args: Any) -> tuple[Any, JsonObject]:
        future, batch = self._submit(args)
        if batch:  # a model's reply may take its time, and must not stop the event loop
            await asyncio.to_thread(self.desk.answer, batch)
        elif not (await asyncio.wait({asyncio.wrap_future(future)}, timeout=TOGETHER_S))[0]:
            await asyncio.to_thread(self.desk.answer_waiting)
        return self._read(await asyncio.wrap_future(future))

    def _submit(self, args: JsonObject) -> tuple[Future[Step], Batch]:
        desk: Desk = self.desk
        return desk.submit({"name": self.name, "args": args, "id": CALL_ID.get()})

    def _read(self, step: Step) -> tuple[Any, JsonObject]:
        _, message = show_step(self.desk.world, step)
        if message.status == "error":
            raise ToolException(text_of(message))
        return text_of(message), {"structured_content": step["outcome"]["result"]}


def _remember_id(call: Any) -> None:
    CALL_ID.set(call.get("id") if isinstance(call, dict) and call.get("type") == "tool_call" else None)


class TurnOver(GeckoError):
    """A call of an agent whose turn is over, or that has made more calls than a conversation has messages."""


@dataclass(slots=True)
class Desk:
    """Takes an agent's calls for a turn: those of one message are answered together.

    Args:
        world: What they act on.
        most: How many the turn may have.
        races: In how many messages their order mattered.
        asked: What each reply of the agent's models has cost.
        own: Names of the agent's own tools, which are none of the world's.
        config: Callbacks of the world's models: the conversation's, not the agent's with its listener.
    """

    world: World
    most: int
    races: int = 0
    asked: list[RoleUsage] = field(default_factory=list)
    own: set[str] = field(default_factory=set)
    config: RunnableConfig = field(default_factory=RunnableConfig)
    _first: int = 0
    _over: bool = False
    _expected: set[str] = field(default_factory=set)
    _waiting: Batch = field(default_factory=list)
    _unknown: list[JsonObject] = field(default_factory=list)
    _lock: Any = field(default_factory=RLock)

    def __post_init__(self) -> None:
        self._first = len(self.world.log)

    def tools(self) -> list[BaseTool]:
        """Return the world's tools as the agent sees them."""
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

    @property
    def is_full(self) -> bool:
        """Return whether the turn has all the calls that it may have."""
        return len(self.steps()) >= self.most

    def steps(self) -> list[Step]:
        """Return the turn's steps so far."""
        return self.world.log[self._first :]

    def replay(self) -> list[AnyMessage]:
        """Return the turn's calls and answers as an agent's messages."""
        shown = (show_step(self.world, step) for step in self.steps())
        return [each for call, answer in shown for each in (AIMessage("", tool_calls=[call]), answer)]

    def expect(self, calls: Sequence[JsonObject], spent: RoleUsage) -> None:
        """Note the calls of a message: which are answered together, and which no tool gets."""
        with self._lock:
            self._refuse_unknown()
            self._unknown = [call for call in calls if not self._has_tool(call["name"])]
            self._expected = {call["id"] for call in calls if self._has_tool(call["name"])}
            self.asked.append(spent)

    def note_tool(self, name: str) -> None:
        """Note a tool that runs or is offered to a model; one that is not the world's is the agent's own."""
        if not self._has_tool(name):
            self.own.add(name)

    def _has_tool(self, name: str) -> bool:
        return self.world.toolkit.resolve(name) in self.world.toolkit

    def submit(self, call: JsonObject) -> tuple[Future[Step], Batch]:
        """Take a call; return its answer to come, and what is to be answered now: nothing while others are expected.

        Raises:
            TurnOver: No call is taken any more.
        """
        with self._lock:
            if self._over or self.is_full:
                raise TurnOver("agent: its turn is over: it has made as many calls as the conversation has messages")
            future: Future[Step] = Future()
            if call["id"] not in self._expected:
                return future, [(call, future)]
            self._expected.remove(call["id"])
            self._waiting.append((call, future))
            return future, [] if self._expected else self._take()

    def answer_waiting(self) -> None:
        """Answer the calls that wait for others of their message."""
        with self._lock:
            self.answer(self._take())

    def answer(self, batch: Batch) -> None:
        """Answer calls that were taken; whatever their world raises is raised where the answers are awaited."""
        with self._lock:
            token = var_child_runnable_config.set(self.config)
            batch = [one for one in batch if one[1].set_running_or_notify_cancel()]
            try:
                if self._over:
                    raise TurnOver("agent: its turn is over")
                answered = answer_batch(self.world, self.world.read_calls([call for call, _ in batch]))
            except Exception as error:  # noqa: BLE001 - the agent's own thread or task raises it
                for _, future in batch:
                    future.set_exception(error)
                return
            finally:
                var_child_runnable_config.reset(token)
            self.races += answered.race
            for (_, future), step in zip(batch, answered.steps, strict=True):
                future.set_result(step)

    def close(self) -> None:
        """End the turn: an agent that was left behind changes nothing any more."""
        with self._lock:
            self._over = True
            self._refuse_unknown()

    def _take(self) -> Batch:
        waiting, self._waiting, self._expected = self._waiting, [], set()
        return waiting

    def _refuse_unknown(self) -> None:
        """Record calls of tools that are neither the world's nor the agent's own."""
        unknown, self._unknown = [call for call in self._unknown if call["name"] not in self.own], []
        for call in self.world.read_calls(unknown):
            self.world.call(call)


class _Listener(AsyncCallbackHandler):
    """Sees the calls of each message of the agent's models, what they cost, and which tools run.

    Calls that the agent only rehearses are none of the conversation's.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk, self._rehearsed = desk, set[UUID]()

    async def on_chat_model_start(self, *args: Any, run_id: UUID, **kwargs: Any) -> None:
        """Note the tools that a model is offered: those of a structured reply among them."""
        if "gecko_role" in (kwargs.get("metadata") or {}):
            self._rehearsed.add(run_id)
        for tool in kwargs.get("invocation_params", {}).get("tools") or ():
            if isinstance(tool, dict):
                self._desk.note_tool(str((tool.get("function") or tool).get("name", "")))

    async def on_tool_start(self, serialized: dict[str, Any] | None, input_str: str, **kwargs: Any) -> None:
        """Note that a tool runs."""
        self._desk.note_tool(str((serialized or {}).get("name", "")))

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the calls of a message."""
        messages = [getattr(each, "message", None) for one in response.generations for each in one]
        made = () if run_id in self._rehearsed else messages
        stored = [sanitize_message(each) for each in made if isinstance(each, AIMessage)]
        calls: list[JsonObject] = [{**call} for each in stored for call in each.tool_calls]
        self._desk.expect(calls, add_all(map(count, messages)))
