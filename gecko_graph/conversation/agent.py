"""The node `agent`: the agent under test takes its turn: a chat model, a server's address, or a factory of an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool

from ..errors import GeckoError
from ..models.ask import AnyAsk, FunctionCall, PlannerAsk, QuestionId, Reply
from ..models.client import find_model
from ..models.conversation import read_message, sanitize_message
from ..models.factory import ModelLike, Models, chat_model
from ..models.formatting import text_of
from ..models.node import NodeScope
from ..models.usage import add_all
from ..state import JsonObject, Step
from ..world.provenance import is_planned
from ..world.world import World
from .channels import ConversationState, Party, address, is_answer, read_calls, read_envelope, record_calls, select_view
from .desk import Desk, Listener
from .outside import HOW, LeftWorld, check_built, check_factory, find_aside
from .user import UserEntry

Factory: TypeAlias = Callable[[Sequence[BaseTool]], Runnable[Any, Any]]
AgentLike: TypeAlias = ModelLike | Factory

ADDRESS_MODEL = "agent"
"""The model name for a server of which only the address is given."""


def read_agent(agent: AgentLike, models: Models) -> Runnable[Any, Any] | Factory:
    """Return a chat model or a factory. A model's name is resolved like those of the other roles.

    Raises:
        GeckoError: It is neither (a graph or another Runnable must be wrapped in a function of tools), or the function
            takes no tools.
    """
    if isinstance(agent, str) and agent.startswith(("http://", "https://")):
        return chat_model(f"openai:{ADDRESS_MODEL}", base_url=agent)
    if isinstance(agent, str):
        return models.chat(agent)
    if find_model(agent) is not None:
        return cast("Runnable[Any, Any]", agent)
    if isinstance(agent, Runnable) or not callable(agent):
        raise GeckoError(
            f"agent: expected a chat model, 'provider:name', an address, or a function from tools to an agent, got "
            f"{type(agent).__name__}: write lambda tools: ..., so that its tools act on the conversation's world"
        )
    check_factory(agent)
    return agent


def model_agent(
    state: ConversationState, scope: NodeScope, *, tools: Sequence[JsonObject], spec: UserEntry
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Ask a chat model for its next message, with the toolkit's tools bound."""
    view: list[BaseMessage] = [*select_view(state["messages"], "agent")]
    where = QuestionId(attempt=1, question=state.get("asked", {}).get("planner", 0))
    (reply,) = yield [PlannerAsk(messages=view, tools=list(tools), where=where)]
    if not isinstance(reply.value, AIMessage):
        return {"end": "agent_failed", "reason": f"the agent did not answer: {reply.failure}"}
    log: list[Step] = state["world"]["log"]
    messages = as_sent(state, [reply.value], len(log))
    return {"messages": messages, **_count_silence(state, messages, log, spec)}


def factory_agent(
    state: ConversationState,
    scope: NodeScope,
    *,
    factory: Factory,
    world: World,
    spec: UserEntry,
    timeout_s: float,
    checkpointed: bool,
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Run the user's own agent until it answers; its calls act on the world and are in the world's log."""
    here = world.resume(state["world"], own=True)
    first = len(here.log)
    desk = Desk(here, most=max(spec.max_messages - len(state["messages"]), 1))
    run = partial(run_turn, factory, desk, select_view(state["messages"], "agent"), checkpointed=checkpointed)
    (reply,) = yield [FunctionCall(function=run, timeout_s=timeout_s)]
    desk.close()
    if isinstance(reply.error, LeftWorld):
        raise reply.error
    if desk.outside:
        raise LeftWorld(f"agent: it has called {', '.join(sorted(desk.outside))}, which are not the given tools: {HOW}")
    update: dict[str, Any] = {"races": desk.races, "usage": {"planner": add_all(desk.asked)} if desk.asked else {}}
    if len(here.log) > first:
        update["world"] = record_calls(here, first)
    made = desk.replay() if reply.failure is not None else reply.value
    messages = as_sent(state, made, first, desk)
    if reply.failure is not None:
        failed = {"end": "agent_failed", "reason": f"the agent failed: {reply.failure}"}
        return {**update, "messages": messages, **({"end": "max_messages"} if desk.is_full else failed)}
    silence = _count_silence(state, messages, here.log, spec)
    return {**update, "messages": messages or silence.pop("messages", []), **silence}


async def run_turn(
    factory: Factory, desk: Desk, view: Sequence[BaseMessage], *, checkpointed: bool
) -> list[AnyMessage]:
    """Run an agent on its view of the conversation, its tools over a world, until it answers.

    It runs by itself: not as a part of the conversation's graph, whose checkpoints and interrupts are not its own.

    Returns:
        Its calls, their answers and its text. If it does not return its calls, they follow from the world's log.

    Raises:
        GeckoError: The factory or its agent cannot be used.
        Exception: Any error of the agent.
    """
    # the world's config while it answers: the agent's listener would count its replies as the agent's, and deadlock
    desk.config = {"callbacks": (var_child_runnable_config.get() or {}).get("callbacks")}
    var_child_runnable_config.set(desk.config)
    tools = desk.tools()
    runnable = _check_runnable(factory(tools), tools, checkpointed=checkpointed)
    check_built(runnable, desk)
    return _read_messages(await _invoke(runnable, desk, view), len(view), desk)


async def _invoke(runnable: Runnable[Any, Any], desk: Desk, view: Sequence[BaseMessage]) -> Any:
    """Run an agent; if its middleware has only synchronous hooks, run it in a thread, unless a tool has already run."""
    config: RunnableConfig = {"callbacks": [Listener(desk)]}
    try:
        return await runnable.ainvoke({"messages": [each.model_copy(deep=True) for each in view]}, config)
    except NotImplementedError:
        if desk.has_run:
            raise
    desk.begin_again()
    given = {"messages": [each.model_copy(deep=True) for each in view]}
    return await asyncio.to_thread(runnable.invoke, given, config)


def _check_runnable(made: object, tools: Sequence[BaseTool], *, checkpointed: bool) -> Runnable[Any, Any]:
    """Return a factory's agent; a chat model, with or without bound tools, becomes a Runnable of its next message.

    A checkpointer of the agent's own is rejected, since a fork of the conversation would not go back in it.
    """
    if not isinstance(made, Runnable):
        raise GeckoError(f"agent: expected a Runnable from the function, got {type(made).__name__}")
    if find_model(made) is not None:
        model = made.bind_tools(tools) if isinstance(made, BaseChatModel) else made
        return RunnableLambda(lambda given: given["messages"]) | model
    if checkpointed and getattr(made, "checkpointer", None):
        raise GeckoError("agent: remove its own checkpointer: the conversation's checkpointer stores the messages")
    return made


def _read_messages(result: Any, known: int, desk: Desk) -> list[AnyMessage]:
    if isinstance(result, dict) and result.get("__interrupt__"):
        raise GeckoError("agent: it was interrupted and waits for an answer: leave out its interrupts and approvals")
    messages = result.get("messages") if isinstance(result, dict) else [result]
    if not isinstance(messages, list) or not all(isinstance(each, BaseMessage) for each in messages):
        raise GeckoError(f"agent: expected a message, or {{'messages': [...]}}, got {type(result).__name__}")
    new = messages[known:] if isinstance(result, dict) and len(messages) > known else messages[-1:]
    made = [_as_stored(each) for each in new if isinstance(each, AIMessage | ToolMessage)]
    desk.aside |= find_aside(made, desk)
    answers = [each for each in made if isinstance(each, ToolMessage)]
    called = sum(len(each.tool_calls) for each in made if isinstance(each, AIMessage))
    left = len(made[-1].tool_calls) if made and isinstance(made[-1], AIMessage) else 0
    if called - left == len(answers) and sum(not desk.is_own(each) for each in answers) == len(desk.steps()):
        return made
    answer = next((each for each in reversed(made) if isinstance(each, AIMessage) and not each.tool_calls), None)
    return [*desk.replay(), *([answer] if answer else [])]


def _as_stored(message: AIMessage | ToolMessage) -> AnyMessage:
    """Return a message without values that no checkpoint can store. Raises GeckoError if it is too long."""
    if isinstance(message, ToolMessage):
        text = text_of(message).encode("utf-8", "replace").decode()
        named = {"tool_call_id": message.tool_call_id, "name": message.name, "status": message.status, "id": message.id}
        return ToolMessage(text, **named)
    kept, problem = read_message(sanitize_message(message))
    if kept is None:
        raise GeckoError(f"agent: {problem}")
    return kept


def as_sent(
    state: ConversationState,
    messages: Sequence[AnyMessage],
    steps: int,
    desk: Desk | None = None,
) -> list[AnyMessage]:
    """Return an agent's messages and their answers with envelopes and unique ids.

    A call that the agent itself has answered has no step in the world.
    """
    addressed: list[AnyMessage] = []
    taken = {each.id for each in state["messages"]}
    for message in messages:
        one = message.model_copy(update={"id": None}) if message.id in taken else message
        taken.add(one.id)
        if isinstance(one, ToolMessage):
            steps += desk is None or not desk.is_own(one)
            sender: Party = "agent" if desk and one.tool_call_id in desk.aside else "tools"
            addressed.append(address(one, sender, "agent", steps=steps))
        else:
            recipient: Party = "tools" if read_calls(one) else "user"
            named = _name_calls(one, len(taken)) if isinstance(one, AIMessage) else one
            addressed.append(address(named, "agent", recipient, steps=steps))
    return addressed


def _name_calls(message: AIMessage, number: int) -> AIMessage:
    taken: set[str | None] = {None, ""}
    update: dict[str, list[JsonObject]] = {"tool_calls": [], "invalid_tool_calls": []}
    for key, named in update.items():
        for at, call in enumerate(getattr(message, key)):
            named.append({**call, "id": f"{key}_{number}_{at}" if call["id"] in taken else call["id"]})
            taken.add(call["id"])
    return message.model_copy(update=update)


def _count_silence(
    state: ConversationState, messages: Sequence[AnyMessage], log: Sequence[Step], spec: UserEntry
) -> dict[str, Any]:
    """Count the agent's consecutive turns without text, or with the same text and no successful call."""
    last = messages[-1] if messages else None
    if last is not None and read_envelope(last)["recipient"] != "user":
        return {}
    before = next((text_of(each) for each in reversed(state["messages"]) if is_answer(each)), None)
    text = text_of(last).strip() if last is not None else ""
    silent = state.get("silent", 0) + 1 if not text or (text == before and not _has_worked(state, log)) else 0
    if silent >= spec.max_failures:
        return {"silent": silent, "end": "failures", "reason": f"{silent} turns of the agent in a row had no result"}
    empty = [] if last is not None else [address(AIMessage(""), "agent", "user", steps=len(log))]
    return {"silent": silent, **({"messages": empty} if empty else {})}


def _has_worked(state: ConversationState, log: Sequence[Step]) -> bool:
    sent = (read_envelope(each) for each in reversed(state["messages"]))
    first = next((each["steps"] for each in sent if each["sender"] == "user"), None)
    return any(map(is_planned, log[first or 0 :]))
