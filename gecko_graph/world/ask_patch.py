"""Asking the model what a call has changed (paper, appendix A.5): for a patch, never for a state."""

from __future__ import annotations

from collections.abc import Generator

from ..errors import PatchConflict, StateError
from ..models.ask import Ask, Reply
from ..models.formatting import cut, format_json
from ..models.roles import StateChange
from ..models.view.view import View
from ..state import Outcome, Patch
from .commit import refuse
from .facts import format_facts, real_facts
from .model_patch import read_patch, view_for
from .rung import NO_ANSWER, RungRequest

TOOL_CHARS = 4_000
VALUE_CHARS = 8_000
PROBLEM_CHARS = 4_000


def ask_patch(request: RungRequest, outcome: Outcome) -> Generator[list[Ask], list[Reply], Outcome]:
    """Ask what a call has changed, once more with the answer and its problem if it cannot be used.

    A write whose change stays unknown becomes an error: its result would promise what the state does not hold.
    """
    patch: Patch = []
    problem = previous = ""
    for _ in range(2):
        shown = view_for(request, patch, outcome["result"])
        (reply,) = yield [build_ask(request, outcome, shown, previous)]
        if not isinstance(reply.value, StateChange):
            problem = f"no model described the call's change: {reply.failure}"
            break
        try:
            return {**outcome, "patch": read_patch(reply.value, request, shown), "supposed": True}
        except (PatchConflict, StateError) as conflict:
            patch, problem = reply.value.patch, str(conflict)
            previous = f"{format_json(patch, budget=PROBLEM_CHARS // 2)}\n{problem}"
    return {**refuse(outcome, problem, "state_update"), "result": NO_ANSWER}


def build_ask(request: RungRequest, outcome: Outcome, shown: View, problem: str) -> Ask:
    """Build the question what a call has changed."""
    call, tool, budget = request.call, request.tool, request.context.view_chars
    return Ask(
        role="state_updater",
        variables={
            "tool": format_json({"name": tool.name, "description": tool.about}, budget=TOOL_CHARS),
            "call": format_json({"name": call["name"], "args": call["args"]}, budget=VALUE_CHARS),
            "result": format_json(outcome["result"], budget=VALUE_CHARS),
            "state": shown.text,
            "real": format_facts(real_facts(request), call=call, state=request.state, budget=budget // 2),
            "facts": format_facts(request.facts.values(), call=call, state=request.state, budget=budget // 2),
            "problems": cut(problem, budget=PROBLEM_CHARS),
        },
        reply=StateChange,
        where=request.where,
    )
