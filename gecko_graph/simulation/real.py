"""The rung `real`: reads that the user opened, and nothing else."""

from __future__ import annotations

from collections.abc import Generator

from ..models.ask import Reply, Work
from ..toolkit.real import as_answer, run_real
from .rung import Pass, RungRequest, RungResult

__all__ = ["as_answer", "real_rung", "run_real"]


def real_rung(request: RungRequest) -> Generator[list[Work], list[Reply], RungResult]:
    """Run the real function of an opened read. Whatever goes wrong with it is the tool's own error."""
    tool = request.tool
    if tool.real is None or not tool.opened:
        return Pass("no real function was opened for this tool")
    if not tool.reads:
        return Pass("only reads run for real in a rehearsal")
    answer, _ = yield from run_real(tool, request.call["args"], request.context.tool_timeout_s)
    return answer
