"""The world's nodes: `open_world` creates its state, `tools` answers the calls of the agent's last message.

Parallel calls are tried in several orders on forks of the world, since they might run in any of them (ToolSandbox,
appendix A.6); the order with most failures is used, so that a race shows. If a model would be asked, the calls are made
in the message's order.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from itertools import islice, permutations
from typing import Any, TypeAlias

from langchain_core.messages import AnyMessage, ToolCall, ToolMessage

from ..models.ask import AnyAsk, FunctionCall, Reply
from ..models.formatting import text_of
from ..models.node import NodeScope
from ..state import Json, JsonObject, Step
from ..values.digest import digest
from ..world.as_tools import build_message
from ..world.world import ModelNeeded, World
from .augment import HIDDEN, find_faces, show_text
from .channels import ConversationState, address, read_calls, record_calls
from .faults import FAULTS

MOST_ORDERS = 24
"""Most orders of a message's calls that are tried: all orders of four calls."""


def open_world(state: ConversationState, scope: NodeScope, *, world: World, default: JsonObject) -> dict[str, Any]:
    """Return a new world's snapshot unless there is one; its state is the caller's, else the default.

    Raises:
        StateError: The caller's state is not JSON, or violates the schema or an invariant of the toolkit.
    """
    begun: dict[str, Any] = {"end": "", "reason": "", "silent": 0}
    if state.get("world"):
        return begun
    return {**begun, "world": world.begin(state.get("task_state", default)).snapshot()}


def tools(
    state: ConversationState, scope: NodeScope, *, world: World, timeout_s: float
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Answer the calls: an invalid one by its error, parallel ones in the order that shows a race."""
    here = world.resume(state["world"], own=True)
    first = len(here.log)
    wanted = read_calls(state["messages"][-1])
    calls = here.read_calls(wanted)
    (reply,) = yield [FunctionCall(function=partial(answer_batch, here, calls), timeout_s=timeout_s)]
    if reply.failure is not None:
        return {"end": "tools_failed", "reason": f"the tools failed: {reply.failure}"}
    steps, race = reply.value
    ids = {step["call"]["id"]: call["id"] for call, step in zip(wanted, steps, strict=True)}
    messages: list[AnyMessage] = []
    for number, step in enumerate(here.log[first:], first + 1):
        answer = show_step(here, step)[1].model_copy(update={"tool_call_id": ids[step["call"]["id"]]})
        messages.append(address(answer, "tools", "agent", steps=number))
    return {"messages": messages, "world": record_calls(here, first), "races": int(race)}


def answer_batch(world: World, calls: Sequence[JsonObject]) -> tuple[list[Step], bool]:
    """Return the steps of a message's calls, in the message's order, and whether the order matters."""
    order: Sequence[int] = range(len(calls))
    race = False
    if tried := _try_orders(world, calls) if len(calls) > 1 else []:
        _, words, fork = tried[0]
        race = any(other != words or not _is_alike(fork, at) for _, other, at in tried[1:])
        order = max(tried, key=lambda one: sum(word != "ok" for word in one[1]))[0]
    steps = {at: world.call(calls[at]) for at in order}
    return [steps[at] for at in range(len(calls))], race


_REFUSED: Any = {"status": "refused", "rung": ""}
Tried: TypeAlias = tuple[Sequence[int], list[str], World]


def _try_orders(world: World, calls: Sequence[JsonObject]) -> list[Tried]:
    """Return the results of each order, the message's own first; [] if rules do not answer all calls.

    Also if a fault occurs: which call it hits is not a race.
    """
    orders = islice(permutations(range(len(calls))), MOST_ORDERS)
    try:
        tried = [_try_order(world, calls, each) for each in orders]
    except ModelNeeded:
        return []
    return [] if any({*words} & {*FAULTS} for _, words, _ in tried) else tried


def _try_order(world: World, calls: Sequence[JsonObject], order: Sequence[int]) -> Tried:
    fork = world.fork(by_rules=True)
    steps = {at: fork.call(calls[at]) for at in order}
    ends = [steps[at].get("outcome", _REFUSED) for at in range(len(calls))]
    return order, [end["rung"] if end["rung"] in FAULTS else end["status"] for end in ends], fork


def _is_alike(one: World, other: World) -> bool:
    """Return whether two worlds differ at most in the order of rows."""
    return all(_sort_lists(mine) == _sort_lists(theirs) for mine, theirs in one.find_differences(other))


def _sort_lists(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _sort_lists(each) for key, each in value.items()}
    return sorted(map(_sort_lists, value), key=digest) if isinstance(value, list) else value


def show_step(world: World, step: Step) -> tuple[ToolCall, ToolMessage]:
    """Return a step as the agent sees it: its call, and the answer."""
    own, face = step["call"], find_faces(world.toolkit).get(step["call"]["name"])
    name = face.name if face else own["name"].removeprefix(HIDDEN)
    call = ToolCall(type="tool_call", id=own["id"], name=name, args=own["args"])
    message = build_message(call, step)
    if message.status != "error":  # a tool's result is data
        return call, message
    text = show_text(world.toolkit, text_of(message)) if face else text_of(message).replace(HIDDEN, "")
    return call, message.model_copy(update={"content": text})
