"""The rung `model`: a helper model answers as the tool would (paper, section 3.2 and appendix A.4)."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from typing import Any

from ..errors import PatchConflict, StateError
from ..models.ask import Ask, Reply
from ..models.roles import SimulatedEffect, SimulatedResponse
from ..models.telling import cut, tell_json
from ..schemas.complaints import faults
from ..state import Patch
from ..task_state.digest import check_json
from ..task_state.patch import apply_patch
from ..toolkit.spec import ToolSpec
from ..view.view import focus_words, view
from .facts import tell_facts
from .rung import Answer, Pass, RungRequest, RungResult

CALL_CHARS = 8_000
TOOL_CHARS = 16_000
PROBLEM_CHARS = 2_000


def model_rung(request: RungRequest) -> Generator[list[Ask], list[Reply], RungResult]:
    """Ask the simulator, once more with the problems if its first answer does not fit, then pass."""
    if not request.has_simulator:
        return Pass("no model simulates")
    problems: list[str] = []
    for _ in range(2):
        (reply,) = yield [ask_simulator(request, problems)]
        if reply.value is None:
            return Pass(f"the simulator gave no answer: {reply.failure}")
        answer = answer_of(request, reply.value)
        problems = problems_of(request, answer)
        if not problems:
            return answer
    return Pass("the simulator's answer does not fit: " + "; ".join(problems[:3]))


def ask_simulator(request: RungRequest, problems: list[str]) -> Ask:
    """The request as the prompt's variables: the tool, the call, a view of the state, and what was supposed before."""
    tool, call, budget = request.tool, request.call, request.context.view_chars
    fused = request.context.simulation == "fused" and not tool.reads
    return Ask(
        role="simulator",
        variables={
            "tool": tell_tool(tool, focus=list(call["args"])),
            "call": tell_json({"name": call["name"], "args": call["args"]}, budget=CALL_CHARS),
            "state": view(request.state, focus=focus_words(call["name"], call["args"]), budget=budget),
            "facts": tell_facts(request.facts.values(), call=call, budget=budget // 2),
            "wants": "effect" if fused else "response",
            "problems": cut("\n".join(problems), budget=PROBLEM_CHARS),
        },
        reply=SimulatedEffect if fused else SimulatedResponse,
        where=request.where,
    )


def tell_tool(tool: ToolSpec, *, focus: Sequence[str]) -> str:
    """What the simulator must know of a tool; of very long schemas the outline, and what the focus finds."""
    said = {"name": tool.name, "description": tool.description, "effect": tool.effect or "unknown"}
    result = {} if tool.result is None else {"result": tool.result}  # null would read as a result that is null
    told = {**said, "parameters": tool.parameters, **result}
    text = json.dumps(told, ensure_ascii=False)
    return text if len(text) <= TOOL_CHARS else view(told, focus=focus, budget=TOOL_CHARS)


def answer_of(request: RungRequest, reply: Any) -> Answer:
    """The reply as an answer. A read and an error change nothing; a separate reply leaves that to the state updater."""
    if request.tool.reads or reply.status == "error":
        return Answer(reply.status, reply.result, [])
    patch: Patch | None = [dict(operation) for operation in reply.patch] if isinstance(reply, SimulatedEffect) else None
    return Answer(reply.status, reply.result, patch)


def problems_of(request: RungRequest, answer: Answer) -> list[str]:
    """What is wrong with an answer: the result against its schema, the patch against the state."""
    try:
        check_json([answer.result, answer.patch], what="the reply")
        if answer.patch:
            apply_patch(request.state, answer.patch)
    except (StateError, PatchConflict) as problem:
        return [str(problem)]
    if answer.status == "error" or request.tool.result is None:
        return []
    return faults(request.tool.result, answer.result)
