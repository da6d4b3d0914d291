"""simulator: answers calls by the ladder (paper, section 3.2)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ..models.ask import AnyAsk, Reply
from ..models.node import NodeScope
from ..tools import Toolkit
from ..world.answer import answer
from ..world.channels import AttemptState
from ..world.ladder import RUNGS, Rungs


def simulator(
    state: AttemptState, scope: NodeScope, *, toolkit: Toolkit, rungs: Rungs = RUNGS
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Answer the next call, or all of the planner's message: `world.answer`."""
    return answer(state, scope, toolkit=toolkit, rungs=rungs)
