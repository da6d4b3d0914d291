"""Make and gate a call's request once for all nodes."""

from __future__ import annotations

from operator import is_
from typing import Any

from ..models.node import NodeScope
from ..state import Call
from ..tools import Toolkit
from .channels import AttemptState
from .rung import Gated, gate, request_of

_AS_IT_WAS = ("task_state", "steps", "before", "facts")
MOST_MADE = 64
"""Most requests that wait for the node that takes them; those of refused calls are never taken."""


def gated_request(call: Call, state: AttemptState, scope: NodeScope, toolkit: Toolkit) -> Gated:
    """Return the call's request through the `gate`; cached as long as the attempt's state is the same."""
    known: tuple[Gated, list[Any]] | None = scope.made.get(id(call))
    now: list[Any] = [call, scope.context, *map(state.get, _AS_IT_WAS)]
    if known is not None and all(map(is_, known[1], now)):
        return known[0]
    while len(scope.made) >= MOST_MADE:
        scope.made.pop(next(iter(scope.made), 0), None)
    gated = gate(request_of(call, state, scope, toolkit))
    scope.made[id(call)] = (gated, now)
    return gated
