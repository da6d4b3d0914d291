"""The rung `real`: reads that the user opened, and nothing else."""

from __future__ import annotations

from collections.abc import Generator

from ..models.ask import Reply, Work
from ..task_state.digest import clone
from .python import as_json
from .rung import Answer, Pass, RungRequest, RungResult


def real_rung(request: RungRequest) -> Generator[list[Work], list[Reply], RungResult]:
    """Run the real function of an opened read. What it raises is the tool's own error."""
    tool = request.tool
    if tool.real is None or not tool.opened:
        return Pass("no real function was opened for this tool")
    if not tool.reads:
        return Pass("only reads run for real in a rehearsal")
    args, timeout_s = clone(request.call["args"]), request.context.tool_timeout_s
    (reply,) = yield [Work(function=tool.real, kwargs=args, timeout_s=timeout_s, then=as_json)]
    if reply.absent:
        return Pass(f"the real function {reply.failure}")
    if reply.failure is not None:
        return Answer("error", reply.failure, [])
    said: RungResult = reply.value
    return said
