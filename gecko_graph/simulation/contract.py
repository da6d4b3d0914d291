"""The rung `contract`: the tool as a function over the task state (ToolGate, sections 3.2 and 3.4)."""

from __future__ import annotations

from ..contracts.contract import ContractRun
from ..errors import EvaluationFailed
from ..state import PassedRung
from .rung import Answer, Pass, RungRequest, RungResult, clock


class Gate:
    """One call at its tool's contract: the precondition gates every simulated rung, the contract itself may answer."""

    def __init__(self, request: RungRequest) -> None:
        self._request = request
        self._run = open_contract(request)
        self._checked = False
        self._unclear = "the tool has no contract"

    def refusal(self, passed: list[PassedRung]) -> Answer | None:
        """The tool's own error where a precondition is broken; looked at once a call.

        A precondition that cannot be evaluated is no error of the tool's: it is noted in `passed`.
        """
        if self._run is None or self._checked:
            return None
        self._checked = True
        try:
            refusal = self._run.refusal()
        except EvaluationFailed as failure:
            self._run, self._unclear = None, f"its precondition cannot be evaluated: {failure}"
            passed.append({"rung": "contract", "reason": self._unclear})
            return None
        return None if refusal is None else Answer("error", refusal.error, refusal.patch)

    def answer(self) -> RungResult:
        """The contract's own answer; it passes where the contract has no effects and no result."""
        if self._run is None:
            return Pass(self._unclear)
        try:
            answer = self._run.answer()
        except EvaluationFailed as failure:
            return Pass(f"the contract cannot be evaluated: {failure}")
        return (
            Pass("the contract only guards the call") if answer is None else Answer("ok", answer.result, answer.patch)
        )


def open_contract(request: RungRequest) -> ContractRun | None:
    """The contract of the request's tool, opened on its call and state."""
    contract = request.tool.contract
    if contract is None:
        return None
    return contract.open(
        args=request.call["args"],
        parameters=request.tool.parameters,
        state=request.state,
        call=request.call,
        now=clock(request.state),
        seed=request.context.seed,
    )
