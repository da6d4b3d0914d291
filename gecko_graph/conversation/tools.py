"""The world's part: `open_world` begins it, `tools` answers the calls of the agent's last message in it."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

from langchain_core.messages import AnyMessage

from ..models.ask import AnyAsk, Reply, Work
from ..models.node import NodeScope
from ..state import JsonObject
from ..world.world import World
from .batch import answer_batch, show_step
from .channels import ConversationState, record_calls
from .messages import address, read_calls


def open_world(
    state: ConversationState, scope: NodeScope, *, world: World, default: JsonObject | None = None
) -> dict[str, Any]:
    """Return the world's snapshot where there is none yet, of the caller's state, else the default, else its own.

    Raises:
        StateError: The caller's state is not JSON, or breaks the schema or an invariant of the toolkit.
    """
    begun: dict[str, Any] = {"end": "", "reason": "", "silent": 0}
    if state.get("world"):
        return begun
    given = state.get("task_state", default)
    return {**begun, "world": (world if given is None else world.begin(given)).snapshot()}


def tools(
    state: ConversationState, scope: NodeScope, *, world: World, timeout_s: float
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Answer the calls: a bad one by what is wrong with it, several at once in the order that shows a race."""
    here = world.resume(state["world"], own=True)
    first = len(here.log)
    wanted = read_calls(state["messages"][-1])
    calls = here.read_calls(wanted)
    (reply,) = yield [Work(function=partial(answer_batch, here, calls), timeout_s=timeout_s)]
    if reply.failure is not None:
        return {"end": "tools_failed", "reason": f"the tools failed: {reply.failure}"}
    ids = {step["call"]["id"]: call["id"] for call, step in zip(wanted, reply.value.steps, strict=True)}
    messages: list[AnyMessage] = []
    for number, step in enumerate(here.log[first:], first + 1):
        answer = show_step(here, step)[1].model_copy(update={"tool_call_id": ids[step["call"]["id"]]})
        messages.append(address(answer, "tools", "agent", steps=number))
    return {"messages": messages, "world": record_calls(here, first), "races": int(reply.value.race)}
