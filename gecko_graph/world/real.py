"""The rung `real`: reads that the user opened, by name or by `reads="real"`, and nothing else."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from ..context import GeckoContext
from ..models.ask import Reply, Work
from ..state import PassedRung
from ..tools.real import run_real
from ..tools.spec import ToolSpec
from ..values.difference import json_equal
from .observed import Decided, decide, lay_over, mark
from .rung import Answer, Pass, RungRequest, RungResult


def real_rung(request: RungRequest) -> Generator[list[Work], list[Reply], RungResult]:
    """Run the real function of an opened read. Whatever goes wrong with it is the tool's own error."""
    if not runs_for_real(request.tool, request.context):
        return Pass("no real function was opened for this tool")
    timeout_s = request.context.tool_timeout_s
    answer, _ = yield from run_real(request.tool, request.call["args"], timeout_s, call_id=request.call["id"])
    reality = request.reality
    if reality is None or not reality.is_whole:
        return mark(request, answer, stale=reality is not None)
    shown = yield from decide(request)
    without = (yield from decide(replace(request, state=reality.state))) if shown else None
    return show_changes(request, answer, shown, without)


def show_changes(request: RungRequest, real: Answer, shown: Decided, without: Decided) -> Answer:
    """Return a real answer with what the attempt itself has changed, or marked where that is not known.

    `shown` is what the tool's contract or `simulate` says in the attempt's state, `without` what it says without the
    attempt's changes; None where neither decides.
    """
    if shown is None:
        return mark(request, real, stale=None)
    known = without[0].status if without else "error"  # what cannot be evaluated there is not there
    if known != shown[0].status:
        only_here = shown[0].status == "error" or real.status == "error"  # deleted, or made, by the attempt alone
        return laid_over(*shown) if only_here else mark(request, real, stale=True if without else None)
    if without is None or json_equal(shown[0].result, without[0].result):
        return mark(request, real, stale=False)
    laid = lay_over(real, without[0], shown[0])
    return mark(request, real, stale=True) if laid is None else laid_over(laid, shown[1])


def runs_for_real(tool: ToolSpec, context: GeckoContext) -> bool:
    """Return whether a rehearsal may run the tool: a read opened by name, or stated to be one under `reads="real"`."""
    opened = tool.opened or (context.reads == "real" and tool.stated)
    return opened and tool.reads and tool.real is not None


def laid_over(answer: Answer, rung: str) -> Answer:
    """Return an answer that shows what the attempt has changed: as that rung's, which is a simulation."""
    passed: PassedRung = {"rung": "real", "reason": "the attempt's own changes: laid over what is real"}
    more = {"rung": rung, "simulated": True, "passed": [passed]}
    return Answer(answer.status, answer.result, [], more=more)
