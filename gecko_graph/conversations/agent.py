"""agent: the agent under test takes its turn on its view of the conversation."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage

from ..models.ask import AnyAsk, PlannerAsk, Reply, Where, Work
from ..models.formatting import text_of
from ..models.node import NodeScope
from ..state import JsonObject
from ..world import World
from .agents import Factory, run_turn
from .channels import ConversationState, record_calls
from .messages import address, read_envelope, select_view


def model_agent(
    state: ConversationState, scope: NodeScope, *, tools: Sequence[JsonObject], most_silent: int
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Ask a chat model for its next message, the toolkit's tools bound."""
    view: list[BaseMessage] = [*select_view(state["messages"], "agent")]
    where = Where(attempt=1, question=state.get("asked", {}).get("planner", 0))
    (reply,) = yield [PlannerAsk(messages=view, tools=list(tools), where=where)]
    if not isinstance(reply.value, AIMessage):
        return {"end": "agent_failed", "reason": f"the agent did not answer: {reply.failure}"}
    steps = len(state["world"]["log"])
    message = address(reply.value, "agent", "tools" if reply.value.tool_calls else "user", steps=steps)
    return {"messages": [message], **_count_silence(state, [message], most_silent)}


def factory_agent(
    state: ConversationState,
    scope: NodeScope,
    *,
    factory: Factory,
    world: World,
    most_silent: int,
    timeout_s: float,
    checkpointed: bool,
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Run an agent of a user's own until it answers; its calls act on the world, and follow in its log."""
    here = world.resume(state["world"])
    first = len(here.log)
    view = select_view(state["messages"], "agent")
    run = partial(run_turn, factory, here, view, checkpointed=checkpointed)
    (reply,) = yield [Work(function=run, timeout_s=timeout_s)]
    update: dict[str, Any] = {"world": record_calls(here, first)} if len(here.log) > first else {}
    if reply.failure is not None:
        return {**update, "end": "agent_failed", "reason": f"the agent failed: {reply.failure}"}
    messages = _address_all(reply.value.messages, first)
    return {**update, "messages": messages, "races": reply.value.races, **_count_silence(state, messages, most_silent)}


def _address_all(messages: Sequence[AnyMessage], steps: int) -> list[AnyMessage]:
    addressed: list[AnyMessage] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            steps += 1
            addressed.append(address(message, "tools", "agent", steps=steps))
        else:
            recipient = "tools" if getattr(message, "tool_calls", ()) else "user"
            addressed.append(address(message, "agent", recipient, steps=steps))  # type: ignore[arg-type]
    return addressed


def _count_silence(state: ConversationState, messages: Sequence[AnyMessage], most: int) -> dict[str, Any]:
    """Count turns that came to nothing: no message, an empty one, or the same text again."""
    last = messages[-1] if messages else None
    if last is not None and read_envelope(last)["recipient"] != "user":
        return {}
    before = next((text_of(each) for each in reversed(state["messages"]) if _is_answer(each)), None)
    text = text_of(last).strip() if last is not None else ""
    silent = state.get("silent", 0) + 1 if not text or text == before else 0
    if silent < most:
        empty = [] if last is not None else [address(AIMessage(""), "agent", "user", steps=len(state["world"]["log"]))]
        return {"silent": silent, **({"messages": empty} if empty else {})}
    return {"silent": silent, "end": "failures", "reason": f"{silent} turns of the agent in a row came to nothing"}


def _is_answer(message: AnyMessage) -> bool:
    envelope = read_envelope(message)
    return (envelope["sender"], envelope["recipient"]) == ("agent", "user")
