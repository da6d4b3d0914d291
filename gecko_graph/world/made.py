"""A call's request, made and gated once for all nodes that look at it."""

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
"""Requests that wait for the node that takes them: those of calls that were refused wait in vain."""


def gated_request(call: Call, state: AttemptState, scope: NodeScope, toolkit: Toolkit) -> Gated:
    """Return the call's request through the `gate`; it is made once for all nodes that look at it in one state."""
    known: tuple[Gated, list[Any]] | None = scope.made.get(id(call))
    now: list[Any] = [call, scope.context, *map(state.get, _AS_IT_WAS)]
    if known is not None and all(map(is_, known[1], now)):
        return known[0]
    while len(scope.made) >= MOST_MADE:
        scope.made.pop(next(iter(scope.made), 0), None)
    gated = gate(request_of(call, state, scope, toolkit))
    scope.made[id(call)] = (gated, now)
    return gated
