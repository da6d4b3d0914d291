"""The agent's keys that the middleware adds, and how writes to one come together."""

# annotations are evaluated here: LangGraph evaluates those that are texts again at each compilation
from operator import add
from typing import Annotated, NotRequired

from langchain.agents.middleware.types import OmitFromInput, PrivateStateAttr
from typing_extensions import TypedDict

from ..state import JsonObject
from ..world.calls import fold_snapshot, is_snapshot
from ..world.records import ExecutedCall
from ..world.reducers import delta


def merge_done(old: JsonObject | None, new: JsonObject | None) -> JsonObject:
    """Reducer of the outcomes of a message's calls, by their numbers in the world's log; None clears it."""
    return {**(old or {}), **new} if new is not None else {}


def fold_turn(old: JsonObject | None, new: JsonObject) -> JsonObject:
    """Begin a turn, or add to the one that there is (reducer): calls that were `told`, that it has ended."""
    return new if "id" in new else {**(old or {}), **new, "told": (old or {}).get("told", {}) | new.get("told", {})}


class GuardedState(TypedDict, total=False):
    """The agent's keys that are added."""

    gecko: NotRequired[Annotated[JsonObject, OmitFromInput, delta(fold_snapshot, dict, begins=is_snapshot)]]
    """The world's snapshot, for `World.restore`; its `state` is the task state now. Calls are written as they come."""
    gecko_journal: NotRequired[Annotated[list[ExecutedCall], OmitFromInput, add]]
    """The real calls, with the `drift` and the `departure` of each. Whole in each checkpoint, as `messages` are: a
    delta takes over what another process writes at one that both share, and the two must agree on what was called."""
    gecko_batch: Annotated[JsonObject | None, PrivateStateAttr]
    """The last message's calls, the simulation of each, and the approved ones."""
    gecko_turn: Annotated[JsonObject, PrivateStateAttr, fold_turn]
    """The turn, for its claims (`open_turn`)."""
    gecko_done: Annotated[JsonObject, PrivateStateAttr, merge_done]
    """The outcomes of its calls, until they are booked."""
