"""open_world: the conversation begins in a world, or goes on in the one that it has."""

from __future__ import annotations

from typing import Any

from ..models.node import NodeScope
from ..state import JsonObject
from ..world import World
from .channels import ConversationState


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
