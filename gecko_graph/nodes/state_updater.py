"""state_updater: the only node that changes the task state (paper, section 3.3 and appendix A.5)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ..models.ask import AnyAsk, Reply
from ..models.node import NodeScope
from ..tools import Toolkit
from ..world.book import book
from ..world.channels import AttemptState


def state_updater(
    state: AttemptState, scope: NodeScope, *, toolkit: Toolkit
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Commit what was answered, in the order of the calls: `world.book`."""
    return book(state, scope, toolkit=toolkit)
