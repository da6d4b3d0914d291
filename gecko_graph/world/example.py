"""The rung `example`: a given answer for matching arguments of a read."""

from __future__ import annotations

from ..values.patch import json_equal
from .rung import Answer, Pass, RungRequest, RungResult


def example_rung(request: RungRequest) -> RungResult:
    """Answer a read with the first example whose arguments equal the call's; writes pass."""
    if not request.tool.examples:
        return Pass("the tool has no examples")
    if not request.tool.reads:
        return Pass("examples answer reads only")
    for example in request.tool.examples:
        if json_equal(example.args, request.call["args"]):
            return Answer("ok", example.result, [])
    return Pass("no example has these arguments")
