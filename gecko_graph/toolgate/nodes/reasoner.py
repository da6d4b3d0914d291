"""reasoner: says what is needed next, or answers (ToolGate, section 3.3 and algorithm 1).

It sees the request, the conversation, a summary of the trusted state, and the committed calls with their results; what
was rejected is gone. Of more than `max_tools` tools it does not know what there is.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from ...errors import ModelError
from ...models.ask import Ask, Reply, Where
from ...models.formatting import format_conversation, format_policy, format_steps, format_tool_lines
from ...models.node import NodeScope
from ...models.roles import Reasoning
from ...models.view.view import focus_words, view
from ...state import Role
from ...tools import Toolkit
from ...tools.spec import ToolSpec
from ...values.origins import trusted_part
from ...world.contract import find_closed, format_closed
from ...world.provenance import is_planned
from ...world.turn import earlier, spent_budget, stop, untrusted_of
from ..channels import ForwardState

NEEDED: tuple[Role, ...] = ("reasoner", "planner")


def reasoner(
    state: ForwardState, scope: NodeScope, *, toolkit: Toolkit, gated: Sequence[ToolSpec]
) -> Generator[list[Ask], list[Reply], dict[str, Any]]:
    """Ask for the next need, or end with the answer or the reason.

    After the last call that `max_steps` allows it is asked once more, for its answer. `gated` are the tools that a task
    state may not admit, whatever their arguments.

    Raises:
        ModelError: It has no model, or the planner, which writes the arguments, has none.
    """
    for role in NEEDED:
        if not scope.has_model(role):
            raise ModelError(f"no model configured for role {role!r}: pass model=... or models={{{role!r}: ...}}")
    if spent := spent_budget(state, scope.context):
        return stop(spent["code"], spent["message"])
    (reply,) = yield [build_ask(state, scope, toolkit, gated)]
    if not isinstance(reply.value, Reasoning):
        return stop("reasoner_failed", f"the reasoner did not answer: {reply.failure}")
    if need := reply.value.need.strip():
        if len(state.get("steps", [])) >= scope.context.max_steps:
            return stop("max_steps", f"max_steps: {scope.context.max_steps} calls were tried")
        return {"need": need}
    return {"need": "", **stop("answered", "answered", reply.value.answer.strip())}


def build_ask(state: ForwardState, scope: NodeScope, toolkit: Toolkit, gated: Sequence[ToolSpec]) -> Ask:
    """Return the question, from what is known to be true."""
    budget, now = scope.context.view_chars, state["task_state"]
    steps, untrusted = state.get("steps", []), untrusted_of(state)
    closed = find_closed(gated, now, seed=scope.context.seed, steps=steps, untrusted=untrusted)
    known = trusted_part(now, untrusted())
    committed = [step for step in steps if is_planned(step)]
    lines = [(tool.name, tool.about) for tool in toolkit] if len(toolkit) <= scope.context.max_tools else []
    variables = {
        "task": state["task"],
        "policy": format_policy(state["conversation"], budget=budget),
        "conversation": format_conversation(earlier(state["conversation"]), budget=budget // 2),
        "tools": format_tool_lines(lines, budget=budget // 2) if lines else "",
        "state": view(known, focus=focus_words(state["task"]), budget=budget) if known else "",
        "gated": format_closed(closed, budget=budget // 4),
        "results": format_steps(committed, budget=budget) if committed else "",
    }
    where = Where(turn=state["turn"], attempt=state["number"], question=state.get("asked", {}).get("reasoner", 0))
    return Ask(role="reasoner", variables=variables, reply=Reasoning, where=where)
