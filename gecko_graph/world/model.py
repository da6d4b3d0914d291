"""The rung `model`: a helper model answers as the tool would (paper, section 3.2 and appendix A.4)."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..errors import PatchConflict, StateError
from ..models.ask import Ask, Reply
from ..models.formatting import cut, format_json
from ..models.roles import SimulatedEffect, SimulatedResponse, SimulatedWrite
from ..models.view.view import View, view
from ..schemas.complaints import find_faults
from ..state import Json, JsonObject
from ..tools.spec import ToolSpec
from ..values.digest import check_json
from .facts import format_facts, real_facts
from .model_patch import read_patch, view_for
from .reply_schema import reply_schema
from .rung import Answer, Pass, RungRequest, RungResult

CALL_CHARS = 8_000
TOOL_CHARS = 16_000
PROBLEM_CHARS = 4_000
NAMES_CHARS = 600


def model_rung(request: RungRequest) -> Generator[list[Ask], list[Reply], RungResult]:
    """Ask the simulator, once more with its answer and the problem if that does not fit, then pass.

    Where it fails for a write, the call is an error: what another rung makes up would promise what the state does not
    hold. A result that fits is kept while its patch is repaired.
    """
    if not request.has_simulator:
        return Pass("no model configured for role 'simulator'")
    kept: Answer | None = None
    problem = last = ""
    for _ in range(2):
        shown = view_for(request, kept.patch or [] if kept else [])
        (reply,) = yield [build_ask(request, shown.text, last)]
        if reply.value is None:
            problem = f"no reply: {reply.failure}"
            break
        answer, wrong, wrong_patch = answer_of(request, reply.value, shown)
        if kept is not None and answer.status == "ok":
            answer, wrong = replace(answer, result=kept.result), ""
        problem = wrong or wrong_patch
        if not problem:
            return answer
        kept = None if wrong else answer
        keep = "Keep status and result, correct the patch: " if kept else ""
        last = f"{format_json(reply.value.model_dump(exclude_unset=True), budget=PROBLEM_CHARS // 2)}\n{keep}{problem}"
    return Pass(f"the simulator gave no usable answer: {problem}", final=not request.tool.reads)


def build_ask(request: RungRequest, state: str, problem: str) -> Ask:
    """Build the question: the tool, the call, a view of the state, what is real and what was supposed before.

    Of a write without a contract it asks for the tool's own rules as well, beside the names of the other tools that
    write; never with the task in view: shown that, a model confirms what the user claims.
    """
    tool, call, budget = request.tool, request.call, request.context.view_chars
    fused = request.context.simulation == "fused" and not tool.reads
    reply = SimulatedResponse if tool.reads else SimulatedEffect if fused else SimulatedWrite
    return Ask(
        role="simulator",
        variables={
            "tool": format_tool(tool, focus=list(call["args"]), writes=request.writes),
            "call": format_json({"name": call["name"], "args": call["args"]}, budget=CALL_CHARS),
            "state": state,
            "real": format_facts(real_facts(request), call=call, state=request.state, budget=budget // 2),
            "facts": format_facts(request.facts.values(), call=call, state=request.state, budget=budget // 2),
            "wants": "effect" if fused else "response",
            "rules": "" if tool.reads or tool.contract else "ask",
            "problems": cut(problem, budget=PROBLEM_CHARS),
        },
        reply=reply,
        where=request.where,
        schema=reply_schema(reply, tool.result),
    )


def format_tool(tool: ToolSpec, *, focus: Sequence[str], writes: Sequence[str] = ()) -> str:
    """Return what the simulator must know of a tool; of a very long schema a view of what the focus finds.

    Of its parameters that is what each means: the call has them, and they are valid.
    """
    result = {} if tool.result is None else {"result": tool.result}  # null would read as a result that is null
    others = cut(", ".join(name for name in writes if name != tool.name), budget=NAMES_CHARS)
    shown: JsonObject = {"name": tool.name, "description": tool.about, "effect": tool.effect or "unknown"}
    parameters = tool.parameters if "$defs" in tool.parameters else tool.parameters.get("properties", {})
    shown |= {"parameters": parameters, **result, **({"other writes": others} if others else {})}
    text = json.dumps(shown, ensure_ascii=False)
    return text if len(text) <= TOOL_CHARS else view(shown, focus=focus, budget=TOOL_CHARS)


def answer_of(request: RungRequest, reply: Any, shown: View) -> tuple[Answer, str, str]:
    """Return the reply as an answer, with what is wrong with its result and with its patch.

    A read and an error change nothing; a separate reply leaves the change to the state updater.
    """
    result, wrong = read_result(request.tool, reply)
    if request.tool.reads or reply.status == "error":
        return Answer(reply.status, result, []), wrong, ""
    more: JsonObject = {}
    if reply.may_refuse and not request.tool.contract and (request.tool.effect or getattr(reply, "patch", True)):
        more["may_refuse"] = [reply.may_refuse]
    if not isinstance(reply, SimulatedEffect):
        return Answer(reply.status, result, more=more), wrong, ""
    try:
        return Answer(reply.status, result, read_patch(reply, request, shown), more=more), wrong, ""
    except (PatchConflict, StateError) as problem:
        return Answer(reply.status, result, reply.patch, more=more), wrong, str(problem)


def read_result(tool: ToolSpec, reply: Any) -> tuple[Json, str]:
    """Return the reply's result, also where it is JSON written as a text, with what is wrong with it."""
    wrong = result_problem(tool, reply.status, reply.result)
    if wrong and isinstance(reply.result, str):
        with suppress(ValueError, RecursionError):
            inner = json.loads(reply.result)
            if not result_problem(tool, reply.status, inner):
                return inner, ""
    return reply.result, wrong


def result_problem(tool: ToolSpec, status: str, result: Json) -> str:
    """Return what is wrong with a result: not JSON, or not of the tool's schema; empty if it fits."""
    try:
        check_json(result, what="the result")
    except StateError as problem:
        return str(problem)
    return "" if status == "error" or tool.result is None else "\n".join(find_faults(tool.result, result))
