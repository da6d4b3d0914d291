"""The tools of a user's own agent: they act on a conversation's world, the calls of a message together."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Condition, RLock
from typing import Any, Literal
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool, ToolException

from ..errors import GeckoError
from ..models.conversation import sanitize_message
from ..models.formatting import text_of
from ..models.usage import add_all, count
from ..state import JsonObject, RoleUsage, Step
from ..world.world import World
from .tools import answer_batch, show_step

TOGETHER_S = 2.0
"""Seconds that the first calls of a message wait for its others, of which an agent may drop some."""

THREADS = ThreadPoolExecutor(256, thread_name_prefix="gecko-graph agent")
"""Threads for waiting calls, so that no event loop blocks; more than the parallel calls of messages."""

GIVEN = "gecko_given"
"""The metadata key that identifies runs of a `ConversationTool`."""

CALL_ID: ContextVar[str | None] = ContextVar("gecko_call_id", default=None)
"""The id of the call that a `ConversationTool` answers."""


class ConversationTool(BaseTool):
    """A tool on a conversation's world; it gets all arguments of a call, and returns errors as answers."""

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
        return self._answer(self._take(args))

    async def _arun(self, /, **args: Any) -> tuple[Any, JsonObject]:
        return await asyncio.get_running_loop().run_in_executor(THREADS, self._answer, self._take(args))

    def _take(self, args: JsonObject) -> Future[Step]:
        taken: Future[Step] = self.desk.take({"name": self.name, "args": args, "id": CALL_ID.get()})
        return taken

    def _answer(self, taken: Future[Step]) -> tuple[Any, JsonObject]:
        step = self.desk.answer(taken)
        _, message = show_step(self.desk.world, step)
        if message.status == "error":
            raise ToolException(text_of(message))
        return text_of(message), {"structured_content": step["outcome"]["result"]}


def _remember_id(call: Any) -> None:
    CALL_ID.set(call.get("id") if isinstance(call, dict) and call.get("type") == "tool_call" else None)


class TurnOver(GeckoError):
    """A call after the agent's turn is over, or beyond the conversation's limit of calls."""


@dataclass(slots=True)
class Desk:
    """Takes an agent's calls for a turn; those of one message are answered together.

    Args:
        world: The world that they act on.
        most: Most calls of the turn.
        races: Number of messages whose calls depend on their order.
        asked: The usage of each reply of the agent's models.
        names: Names of the world's tools: those that the agent sees, and their own.
        own: Names of the agent's own tools, which are not the world's.
        held: Names of the world's tools that the agent's `ToolNode`s call.
        wrapped: Those of them that it calls by tools of its own.
        aside: Ids of calls of the world's tools that the agent itself has answered.
        outside: Names of tools that ran under a name of the world's without calling the world.
        has_run: Whether any tool of the agent has begun to run.
        config: Callbacks of the world's models: the conversation's, not the agent's with its listener.
    """

    world: World
    most: int
    races: int = 0
    asked: list[RoleUsage] = field(default_factory=list)
    own: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    wrapped: set[str] = field(default_factory=set)
    aside: set[str] = field(default_factory=set)
    outside: set[str] = field(default_factory=set)
    has_run: bool = False
    taken: int = 0
    names: set[str] = field(init=False)
    config: RunnableConfig = field(default_factory=RunnableConfig)
    _first: int = 0
    _over: bool = False
    _expected: set[str] = field(default_factory=set)
    _waiting: dict[Future[Step], JsonObject] = field(default_factory=dict)
    _alone: dict[Future[Step], JsonObject] = field(default_factory=dict)
    _unknown: list[JsonObject] = field(default_factory=list)
    _changed: Condition = field(default_factory=Condition)
    _answering: Any = field(default_factory=RLock)

    def __post_init__(self) -> None:
        self._first, toolkit = len(self.world.log), self.world.toolkit
        self.names = {*toolkit.names, *(each["function"]["name"] for each in toolkit.as_openai())}

    def tools(self) -> list[BaseTool]:
        """Return the world's tools as the agent sees them."""
        return [
            ConversationTool(
                name=each["function"]["name"],
                description=each["function"].get("description") or each["function"]["name"],
                args_schema=each["function"]["parameters"],
                handle_tool_error=True,
                metadata={GIVEN: True},
                desk=self,
            )
            for each in self.world.toolkit.as_openai()
        ]

    def is_own(self, message: ToolMessage) -> bool:
        """Return whether the agent itself answers the call."""
        return message.name in self.own or message.tool_call_id in self.aside

    @property
    def is_full(self) -> bool:
        """Whether the turn has reached its limit of calls."""
        return len(self.steps()) >= self.most

    def steps(self) -> list[Step]:
        """Return the turn's steps so far."""
        return self.world.log[self._first :]

    def replay(self) -> list[AnyMessage]:
        """Return the turn's calls and answers as an agent's messages."""
        shown = (show_step(self.world, step) for step in self.steps())
        return [each for call, answer in shown for each in (AIMessage("", tool_calls=[call]), answer)]

    def expect(self, calls: Sequence[JsonObject], spent: RoleUsage) -> None:
        """Store the calls of a message: those to be answered together, and those without a tool."""
        self._refuse_unknown()
        with self._changed:
            self._unknown = [call for call in calls if not self._has_tool(call["name"])]
            self._expected = {call["id"] for call in calls if self._has_tool(call["name"])}
            self.asked.append(spent)

    def note_tool(self, name: str) -> None:
        """Note a tool that runs or is offered to a model; if it is not the world's, it is the agent's own."""
        if not self._has_tool(name):
            self.own.add(name)

    def _has_tool(self, name: str) -> bool:
        return self.world.toolkit.resolve(name) in self.world.toolkit

    def take(self, call: JsonObject) -> Future[Step]:
        """Take a call, which is answered by `answer`; never blocks, so that an event loop may call it.

        Raises:
            TurnOver: No more calls are taken.
        """
        future: Future[Step] = Future()
        with self._changed:
            self.taken += 1
            if self._over or self.is_full:
                raise TurnOver("agent: its turn is over: it has made as many calls as the conversation has messages")
            if call["id"] in self._expected:
                self._expected.remove(call["id"])
                self._waiting[future] = call
                self._changed.notify_all()
            else:
                self._alone[future] = call
        return future

    def answer(self, taken: Future[Step]) -> Step:
        """Return the step of a call, after waiting some time for the other calls of its message.

        Raises:
            TurnOver: The turn has ended meanwhile.
            Exception: Any exception of the world.
        """
        with self._changed:
            self._changed.wait_for(lambda: taken not in self._waiting or not self._expected, TOGETHER_S)
            together = {taken: self._alone.pop(taken)} if taken in self._alone else {}
            if taken in self._waiting:
                together, self._waiting, self._expected = self._waiting, {}, set()
        self._answer_all(together)
        return taken.result()

    def _answer_all(self, batch: Mapping[Future[Step], JsonObject]) -> None:
        with self._answering:
            token = var_child_runnable_config.set(self.config)
            try:
                if self._over:
                    raise TurnOver("agent: its turn is over")
                steps, race = answer_batch(self.world, self.world.read_calls([*batch.values()]))
                self.races += race
                for future, step in zip(batch, steps, strict=True):
                    future.set_result(step)
            except Exception as error:  # noqa: BLE001 - the agent's own thread raises it
                for future in batch:
                    future.set_exception(error)
            finally:
                var_child_runnable_config.reset(token)

    def begin_again(self) -> None:
        """Forget the calls of a message, none of which has run, since the agent is run again."""
        with self._changed:
            self._expected, self._unknown = set(), []

    def close(self) -> None:
        """End the turn; calls of an abandoned agent change nothing from now on."""
        with self._answering:
            self._over = True
            self._refuse_unknown()

    def _refuse_unknown(self) -> None:
        """Record calls of tools that are neither the world's nor the agent's own."""
        unknown, self._unknown = [call for call in self._unknown if call["name"] not in self.own], []
        with self._answering:
            for call in self.world.read_calls(unknown):
                self.world.call(call)


class Listener(AsyncCallbackHandler):
    """Watches the calls of each message of the agent's models, their usage, and the tools that run.

    Calls that the agent only rehearses do not belong to the conversation.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk, self._rehearsed, self._running = desk, set[UUID](), dict[UUID, tuple[str, int]]()

    async def on_chat_model_start(self, *args: Any, run_id: UUID, **kwargs: Any) -> None:
        """Note the tools that a model is offered, including those for a structured reply."""
        if "gecko_role" in (kwargs.get("metadata") or {}):
            self._rehearsed.add(run_id)
        for tool in kwargs.get("invocation_params", {}).get("tools") or ():
            if isinstance(tool, dict):
                self._desk.note_tool(str((tool.get("function") or tool).get("name", "")))

    async def on_tool_start(
        self, serialized: dict[str, Any] | None, input_str: str, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Note that a tool runs, and the number of the world's calls at that time."""
        name = str((serialized or {}).get("name", ""))
        self._desk.has_run = True
        self._desk.note_tool(name)
        rehearsed = any(each.startswith("rung:") for each in kwargs.get("tags") or ())  # by `trace_calls`
        if not rehearsed and GIVEN not in (kwargs.get("metadata") or {}):
            self._running[run_id] = (name, self._desk.taken)

    async def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note a tool that has run, or failed, outside of the world."""
        name, before = self._running.pop(run_id, ("", 0))
        if name in self._desk.names - self._desk.wrapped and before == self._desk.taken:
            self._desk.outside.add(name)

    on_tool_error = on_tool_end  # type: ignore[assignment]  # ignores the error

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the calls of a message."""
        messages = [getattr(each, "message", None) for one in response.generations for each in one]
        made = () if run_id in self._rehearsed else messages
        stored = [sanitize_message(each) for each in made if isinstance(each, AIMessage)]
        calls: list[JsonObject] = [{**call} for each in stored for call in each.tool_calls]
        self._desk.expect(calls, add_all(map(count, messages)))
