"""The rung `python`: the tool's own simulation, on a copy of the task state."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from langchain_core.messages import ToolMessage

from ..errors import StateError
from ..models.ask import Reply, Work
from ..state import JsonObject, Patch
from ..tools.real import as_answer, as_json
from ..values.digest import check_json, clone, pack, unpack
from ..values.patch import make_patch
from .rung import Answer, Pass, RungRequest, RungResult


def python_rung(request: RungRequest) -> Generator[list[Work], list[Reply], RungResult]:
    """Call `simulate(state, **args)` on a copy: its changes there become the patch, what it raises the tool's error.

    As a real function's, a `ToolMessage` with the status "error" is the tool's error too, with its content.
    """
    if request.tool.simulate is None:
        return Pass("the tool has no simulate function")
    before = pack(request.state)
    state = unpack(before)
    work = Work(
        function=request.tool.simulate,
        args=(state,),
        kwargs=clone(request.call["args"]),
        timeout_s=request.context.tool_timeout_s,
        then=_as_answer,
    )
    (reply,) = yield [work]
    if reply.late:
        return Pass(f"the simulate function {reply.failure}")
    if reply.failure is not None:
        return Answer("error", reply.failure, [])
    answer: RungResult = reply.value
    if isinstance(answer, Pass):
        return answer
    try:
        return replace(answer, patch=diff_states(request.state, before, state))
    except StateError as error:
        return Pass(str(error))


def _as_answer(value: Any) -> Answer | Pass:
    return as_answer(value) if isinstance(value, ToolMessage) else as_json(value)


def diff_states(before: JsonObject, packed: bytes, after: JsonObject) -> Patch:
    """Return what a function changed in its copy of the state. Raises StateError where that is not JSON."""
    try:
        if pack(after) == packed:  # a few times faster than the two walks, and most calls diff_states nothing
            return []
    except TypeError:
        pass
    check_json(after, what="the state that the simulate function left")
    return make_patch(before, after)
