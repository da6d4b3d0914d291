"""The calls of one message: where their order matters, the order in which most of them fail is what happens.

ToolSandbox, appendix A.6: calls that were made at once may come in any order, so a race is surfaced wherever there is
one. Orders are tried on forks of the world; they cost nothing where rules answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, permutations
from typing import NamedTuple

from langchain_core.messages import ToolCall, ToolMessage

from ..models.formatting import text_of
from ..state import Json, JsonObject, Step
from ..tools.augment import HIDDEN, find_faces, show_text
from ..values.digest import digest
from ..world.as_tools import build_message
from ..world.world import World

MOST_ORDERS = 24
"""Orders that are tried of one message's calls: all of four."""


class Answered(NamedTuple):
    """The steps of one message's calls, in the order of the message, and whether their order mattered."""

    steps: list[Step]
    race: bool


def answer_batch(world: World, calls: Sequence[JsonObject]) -> Answered:
    """Answer the calls of one message (as `World.read_calls` returns them) in a world, in order where a model may."""
    order: Sequence[int] = range(len(calls))
    race = False
    if len(calls) > 1 and not world.has_models:
        tried = [_try_order(world, calls, each) for each in islice(permutations(order), MOST_ORDERS)]
        _, words, fork = tried[0]
        race = any(other != words or not _is_alike(fork, at) for _, other, at in tried[1:])
        order = max(tried, key=lambda one: sum(word != "ok" for word in one[1]))[0]
    steps = {at: world.call(calls[at]) for at in order}
    return Answered([steps[at] for at in range(len(calls))], race)


def show_step(world: World, step: Step) -> tuple[ToolCall, ToolMessage]:
    """Return a step as the agent sees it: its call, and the answer."""
    own, face = step["call"], find_faces(world.toolkit).get(step["call"]["name"])
    name = face.name if face else own["name"].removeprefix(HIDDEN)
    call = ToolCall(type="tool_call", id=own["id"], name=name, args=own["args"])
    message = build_message(call, step)
    if message.status != "error":  # what a tool returned is data
        return call, message
    text = show_text(world.toolkit, text_of(message)) if face else text_of(message).replace(HIDDEN, "")
    return call, message.model_copy(update={"content": text})


def _try_order(
    world: World, calls: Sequence[JsonObject], order: Sequence[int]
) -> tuple[Sequence[int], list[str], World]:
    """Return an order, what becomes of each call, and the world after it."""
    fork = world.fork()
    words = {at: _word(fork.call(calls[at])) for at in order}
    return order, [words[at] for at in range(len(calls))], fork


def _is_alike(one: World, other: World) -> bool:
    """Return whether two worlds differ in no more than the order of rows."""
    return all(_sort_lists(mine) == _sort_lists(theirs) for mine, theirs in one.find_differences(other))


def _sort_lists(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _sort_lists(each) for key, each in value.items()}
    return sorted(map(_sort_lists, value), key=digest) if isinstance(value, list) else value


def _word(step: Step) -> str:
    return step["outcome"]["status"] if "outcome" in step else "refused"
