"""The agent's state keys that the middleware adds, and their reducers."""

# annotations are evaluated here, because LangGraph re-evaluates textual ones at each compilation
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
    """Start a turn, or update it (reducer): calls that were `told`, that it has `ended`."""
    return new if "id" in new else {**(old or {}), **new, "told": (old or {}).get("told", {}) | new.get("told", {})}


class GuardedState(TypedDict, total=False):
    gecko: NotRequired[Annotated[JsonObject, OmitFromInput, delta(fold_snapshot, dict, begins=is_snapshot)]]
    """The world's snapshot, for `World.restore`; its `state` is the current task state.

    Calls are written one by one.
    """
    gecko_journal: NotRequired[Annotated[list[ExecutedCall], OmitFromInput, add]]
    """The real calls, each with its `drift` and `departure`.

    Complete in each checkpoint, like `messages`: a delta would include the writes of another process at a shared
    checkpoint, and the two must agree on the calls.
    """
    gecko_batch: Annotated[JsonObject | None, PrivateStateAttr]
    """The last message's calls, their simulations, and the approved ones."""
    gecko_turn: Annotated[JsonObject, PrivateStateAttr, fold_turn]
    """The turn, for its claims (`open_turn`)."""
    gecko_done: Annotated[JsonObject, PrivateStateAttr, merge_done]
    """The outcomes of the message's calls, until they are applied."""
