"""Answers calls by the ladder (paper, section 3.2)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from langchain_core.messages import ToolMessage

from ..errors import ToolkitError
from ..events import RESULT_MARKS, event
from ..models.ask import AnyAsk, Reply
from ..models.node import NodeScope
from ..state import Call
from ..tools import Toolkit
from .channels import AttemptState, Proposal
from .facts import fact_key
from .ladder import RUNGS, Rungs, climb, run_concurrently
from .turn import request_of, spent_budget


def answer(
    state: AttemptState, scope: NodeScope, *, toolkit: Toolkit, rungs: Rungs = RUNGS
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Answer the next call (`serial`), or all calls of the planner's message from one state (`snapshot`, `strict`).

    Once the calls before have spent a budget, the others of the message are not made; the planner ends the attempt.

    Raises:
        ToolkitError: A call's tool is missing: the run was resumed with other tools.
    """
    pending = state["pending"]
    began = isinstance(next(reversed(state.get("trace", [])), None), ToolMessage)
    if began and spent_budget(state, scope.context):
        return {"pending": [], "proposals": []}
    for call in pending:
        if call["name"] not in toolkit:  # the validator refuses these
            raise ToolkitError(
                f"unknown tool {call['name']!r} in a resumed run: pass the toolkit that the run began with"
            )
    calls = pending[:1] if scope.context.parallel_calls == "serial" else pending
    keys = [request_key(call, toolkit) for call in calls]
    climbs = {key: climb(request_of(call, state, scope, toolkit), rungs) for key, call in zip(keys, calls, strict=True)}
    answers = yield from run_concurrently([*climbs.values()], asked=state.get("asked", {}).get("simulator", 0))
    outcomes = dict(zip(climbs, answers, strict=True))
    proposals: list[Proposal] = []
    for call, key in zip(calls, keys, strict=True):
        outcome = outcomes[key]
        proposals.append({"call": call, "outcome": outcome})
        fields: dict[str, Any] = {key: outcome[key] for key in ("status", "result", "rung", "simulated", "passed")}
        marks = {"unclear": outcome.get("unclear", []), "stale": outcome.get("stale", False)}
        fields |= {key: outcome[key] for key in RESULT_MARKS if key in outcome}  # type: ignore[literal-required]
        scope.emit(event("gecko.result", attempt=state["number"], call=call, **fields, **marks))
    return {"pending": pending[len(calls) :], "proposals": proposals}


def request_key(call: Call, toolkit: Toolkit) -> str:
    """Return the key under which calls of one message are one request: equal reads, so that their answers agree."""
    return fact_key(call, "") if toolkit[call["name"]].reads else f"write {call['id']}"
