"""agent: the agent under test takes its turn on its view of the conversation."""

from __future__ import annotations

from collections.abc import Container, Generator, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage

from ..models.ask import AnyAsk, PlannerAsk, Reply, Where, Work
from ..models.formatting import text_of
from ..models.node import NodeScope
from ..models.usage import add_all
from ..state import JsonObject, Step
from ..world.provenance import is_planned
from ..world.world import World
from .agents import Desk, Factory, run_turn
from .channels import ConversationState, record_calls
from .messages import Party, address, is_answer, name_calls, read_calls, read_envelope, select_view
from .users import UserEntry


def model_agent(
    state: ConversationState, scope: NodeScope, *, tools: Sequence[JsonObject], spec: UserEntry
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Ask a chat model for its next message, the toolkit's tools bound."""
    view: list[BaseMessage] = [*select_view(state["messages"], "agent")]
    where = Where(attempt=1, question=state.get("asked", {}).get("planner", 0))
    (reply,) = yield [PlannerAsk(messages=view, tools=list(tools), where=where)]
    if not isinstance(reply.value, AIMessage):
        return {"end": "agent_failed", "reason": f"the agent did not answer: {reply.failure}"}
    log: list[Step] = state["world"]["log"]
    messages = _address_all(state, [reply.value], len(log))
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
    """Run an agent of a user's own until it answers; its calls act on the world, and follow in its log."""
    here = world.resume(state["world"], own=True)
    first = len(here.log)
    desk = Desk(here, most=max(spec.max_messages - len(state["messages"]), 1))
    run = partial(run_turn, factory, desk, select_view(state["messages"], "agent"), checkpointed=checkpointed)
    (reply,) = yield [Work(function=run, timeout_s=timeout_s)]
    desk.close()
    update: dict[str, Any] = {"races": desk.races, "usage": {"planner": add_all(desk.asked)} if desk.asked else {}}
    if len(here.log) > first:
        update["world"] = record_calls(here, first)
    made = desk.replay() if reply.failure is not None else reply.value
    messages = _address_all(state, made, first, own=desk.own)
    if reply.failure is not None and desk.is_full:
        return {**update, "messages": messages, "end": "max_messages"}
    if reply.failure is not None:
        return {**update, "messages": messages, "end": "agent_failed", "reason": f"the agent failed: {reply.failure}"}
    silence = _count_silence(state, messages, here.log, spec)
    return {**update, "messages": messages or silence.pop("messages", []), **silence}


def _address_all(
    state: ConversationState, messages: Sequence[AnyMessage], steps: int, own: Container[str | None] = ()
) -> list[AnyMessage]:
    """Return an agent's messages and their answers with envelopes, each with an id of its own."""
    addressed: list[AnyMessage] = []
    taken = {each.id for each in state["messages"]}
    for message in messages:
        one = message.model_copy(update={"id": None}) if message.id in taken else message
        taken.add(one.id)
        if isinstance(one, ToolMessage):
            steps += one.name not in own
            addressed.append(address(one, "tools", "agent", steps=steps))
        else:
            recipient: Party = "tools" if read_calls(one) else "user"
            named = name_calls(one, len(taken)) if isinstance(one, AIMessage) else one
            addressed.append(address(named, "agent", recipient, steps=steps))
    return addressed


def _count_silence(
    state: ConversationState, messages: Sequence[AnyMessage], log: Sequence[Step], spec: UserEntry
) -> dict[str, Any]:
    """Count turns that came to nothing: no text, or the same again without a call that worked."""
    last = messages[-1] if messages else None
    if last is not None and read_envelope(last)["recipient"] != "user":
        return {}
    before = next((text_of(each) for each in reversed(state["messages"]) if is_answer(each)), None)
    text = text_of(last).strip() if last is not None else ""
    silent = state.get("silent", 0) + 1 if not text or (text == before and not _has_worked(state, log)) else 0
    if silent >= spec.max_failures:
        return {"silent": silent, "end": "failures", "reason": f"{silent} turns of the agent in a row came to nothing"}
    empty = [] if last is not None else [address(AIMessage(""), "agent", "user", steps=len(log))]
    return {"silent": silent, **({"messages": empty} if empty else {})}


def _has_worked(state: ConversationState, log: Sequence[Step]) -> bool:
    sent = (read_envelope(each) for each in reversed(state["messages"]))
    first = next((each["steps"] for each in sent if each["sender"] == "user"), None)
    return any(map(is_planned, log[first or 0 :]))
