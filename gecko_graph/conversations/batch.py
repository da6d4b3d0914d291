"""The calls of one message: where their order matters, the order in which most of them fail is what happens.

ToolSandbox, appendix A.6: calls that were made at once may come in any order, so a race is surfaced wherever there is
one. Orders are tried on forks of the world; they cost nothing where rules answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, permutations
from typing import NamedTuple

from langchain_core.messages import ToolCall, ToolMessage

from ..middleware.messages import build_message
from ..models.formatting import text_of
from ..state import Json, JsonObject, Step
from ..task_state.digest import digest
from ..toolkit.augment import HIDDEN, find_faces, show_text
from ..world import World

MOST_ORDERS = 24
"""Orders that are tried of one message's calls: all of four."""


class Answered(NamedTuple):
    """The steps of one message's calls, in the order of the message, and whether their order mattered."""

    steps: list[Step]
    race: bool


def answer_batch(world: World, calls: Sequence[JsonObject]) -> Answered:
    """Answer the calls of one message.

    Args:
        world: The world that they act on; it is changed.
        calls: The calls, as `World.read_calls` returns them. Where a model may answer, they keep their own order.
    """
    order, race = list(range(len(calls))), False
    if len(calls) > 1 and not world.has_models:
        tried = list(_try_orders(world, calls))
        race = _differ([outcome for _, _, outcome in tried])
        order = max(tried, key=lambda one: one[1])[0]
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


def _try_orders(world: World, calls: Sequence[JsonObject]) -> Iterator[tuple[list[int], int, JsonObject]]:
    """Yield orders with the number of calls that fail, and what they come to."""
    for order in islice(permutations(range(len(calls))), MOST_ORDERS):
        fork = world.fork()
        steps = {at: fork.call(calls[at]) for at in order}
        words = {str(at): _word(steps[at]) for at in order}
        yield list(order), sum(word != "ok" for word in words.values()), {"words": words, "state": fork.state}


def _differ(outcomes: Sequence[JsonObject]) -> bool:
    """Return whether outcomes differ in more than the order of rows."""
    if len({digest(each) for each in outcomes}) == 1:
        return False
    return len({digest(_sort_lists(each)) for each in outcomes}) > 1


def _sort_lists(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _sort_lists(each) for key, each in value.items()}
    return sorted(map(_sort_lists, value), key=digest) if isinstance(value, list) else value


def _word(step: Step) -> str:
    return step["outcome"]["status"] if "outcome" in step else "refused"
