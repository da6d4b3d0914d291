"""validator: refuses calls before they run (paper, section 3.1 and appendix A.3)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from ..models.ask import Ask, Reply
from ..models.node import NodeScope
from ..tools.spec import ToolSpec
from ..world.channels import AttemptState
from ..world.check import Tools, check


def validator(
    state: AttemptState, scope: NodeScope, *, toolkit: Tools, gated: Sequence[ToolSpec] = ()
) -> Generator[list[Ask], list[Reply], dict[str, Any]]:
    """Check all calls of the planner's message: `world.check`."""
    return check(state, scope, toolkit=toolkit, gated=gated)
