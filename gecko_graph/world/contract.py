"""The tool's contract (ToolGate, sections 3.2 and 3.4): its precondition gates every rung, and as a rung it answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..context import GeckoContext
from ..contracts.contract import Contract
from ..contracts.run import Admissibility, ContractRun
from ..errors import EvaluationFailed, NotKnown
from ..models.formatting import cut, join_lines, one_line
from ..state import JsonObject, Step
from ..tools.spec import ToolSpec
from ..values.clock import clock
from ..values.origins import Untrusted
from .rung import Answer, Pass, RungRequest, RungResult, answered_calls

REASON_CHARS = 300


def find_gated(tools: Iterable[ToolSpec]) -> tuple[ToolSpec, ...]:
    """Return the tools whose contracts have requirements that need no arguments."""
    return tuple(tool for tool in tools if tool.contract is not None and tool.contract.is_gated)


def find_closed(
    gated: Iterable[ToolSpec],
    state: JsonObject,
    *,
    seed: int = 0,
    steps: Sequence[Step] = (),
    untrusted: Untrusted = tuple,
) -> dict[str, Admissibility]:
    """Return the tools that are not known to be admissible in a task state, by name (ToolGate, equation 9).

    `gated` is what `find_gated` returned: no other tool needs a look. `steps` are the turn's so far, the rest is as for
    `Contract.open`.
    """
    contracts = {tool.name: tool.contract for tool in gated if tool.contract}
    calls = answered_calls(steps) if any(one.reads_calls for one in contracts.values()) else ()
    more: Any = {"now": clock(state), "seed": seed, "calls": calls, "untrusted": untrusted}
    judged = {name: one.admissible(state, **more) for name, one in contracts.items()}
    return {name: found for name, found in judged.items() if found.word != "yes"}


def find_masked(closed: Mapping[str, Admissibility], context: GeckoContext) -> dict[str, str]:
    """Return the tools that are not bound for the planner's next message, by name with the reason."""
    words = {"note": (), "mask": ("no",), "strict": ("no", "unknown")}[context.gate]
    return {name: found.reason for name, found in closed.items() if found.word in words}


def format_closed(closed: Mapping[str, Admissibility], *, budget: int) -> str:
    """Return which tools the state does not admit, with all reasons; those that are unknown are left out."""
    reasons: dict[str, list[str]] = {}
    for name, found in closed.items():
        if found.word == "no":
            why = "; ".join(dict.fromkeys(map(one_line, (found.reason, *found.more))))
            reasons.setdefault(why, []).append(name)
    lines = (f"{', '.join(names)}: {cut(reason, budget=REASON_CHARS)}" for reason, names in reasons.items())
    return join_lines(lines, budget=budget)


def gate(request: RungRequest) -> tuple[RungRequest, Answer | None]:
    """Return the request with its contract opened, and the error of a call that must not run.

    A broken precondition is the tool's own error, on every rung. One that cannot be evaluated refuses the call only
    under `unclear="refuse"` or `gate="strict"`; else it goes with the request, and the rung that answers decides. So do
    those that the contract skips by `pass`, unless the tool only reads.
    """
    if request.tool.contract is None:
        return request, None
    run = open_contract(request, request.tool.contract)
    refusal = run.refusal()
    skipped = () if request.tool.reads else run.skipped
    request = replace(request, contract=run, unclear=(*run.unclear, *skipped))
    if refusal is not None:
        return request, Answer("error", refusal.error, refusal.patch, more={"violations": [*refusal.violations]})
    if request.unclear and (request.context.unclear == "refuse" or request.context.gate == "strict"):
        return request, unchecked(request.unclear)
    return request, None


def contract_rung(request: RungRequest) -> RungResult:
    """Return the contract's own answer; pass where it has no effects and no result.

    With a precondition that could not be evaluated it refuses the call: it would apply effects that nothing guards.
    So it does where its answer cannot be evaluated: another rung would make one up.
    """
    run, policy = request.contract, request.context.unclear
    if run is None:
        return Pass("the tool has no contract")
    try:
        answer = run.answer()
    except NotKnown as unknown:
        return Pass(f"the contract does not know: {unknown}")
    except EvaluationFailed as failure:
        return unchecked([*request.unclear, f"the contract cannot be evaluated: {failure}"])
    if answer is None:
        return Pass("the contract only guards the call")
    if policy is None and request.unclear:
        return unchecked(request.unclear)
    return Answer("ok", answer.result, answer.patch)


def unchecked(unclear: Sequence[str]) -> Answer:
    """Return the error of a call whose conditions cannot be evaluated."""
    more = {"unclear": [*unclear], "category": "state_dependency"}
    return Answer("error", f"not done: it cannot be checked: {'; '.join(unclear[:3])}", [], more=more)


def open_contract(request: RungRequest, contract: Contract) -> ContractRun:
    """Return the contract of the request's tool, opened on its call and state."""
    return contract.open(
        args=request.call["args"],
        parameters=request.tool.parameters,
        state=request.state,
        call=request.call,
        now=clock(request.state),
        seed=request.context.seed,
        calls=answered_calls(request.steps) if contract.reads_calls else (),
    ).trust(request.untrusted)
