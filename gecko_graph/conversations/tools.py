"""tools: answers the calls of the agent's last message in the world."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage

from ..models.ask import AnyAsk, Reply, Work
from ..models.node import NodeScope
from ..world import World
from .batch import answer_batch, show_step
from .channels import ConversationState, record_calls
from .messages import address


def tools(
    state: ConversationState, scope: NodeScope, *, world: World, timeout_s: float
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Answer the calls: a bad one by what is wrong with it, several at once in the order that shows a race."""
    here = world.resume(state["world"])
    first = len(here.log)
    last = state["messages"][-1]
    wanted = last.tool_calls if isinstance(last, AIMessage) else []
    calls = here.read_calls(wanted)
    (reply,) = yield [Work(function=partial(answer_batch, here, calls), timeout_s=timeout_s)]
    if reply.failure is not None:
        return {"end": "tools_failed", "reason": f"the tools failed: {reply.failure}"}
    answered = reply.value
    messages: list[AnyMessage] = []
    for number, (call, step) in enumerate(zip(wanted, answered.steps, strict=True), first + 1):
        answer = show_step(here, step)[1].model_copy(update={"tool_call_id": call["id"]})
        messages.append(address(answer, "tools", "agent", steps=number))
    return {"messages": messages, "world": record_calls(here, first), "races": int(answered.race)}
