"""The ladder's request for a real call, and what is expected of it in the state that reality has left."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import replace
from functools import cache, partial

from ..ledger import find_untrusted
from ..models.ask import AnyAsk, Reply, Where
from ..models.node import NodeScope
from ..simulation.ladder import climb
from ..simulation.observed import DECIDING
from ..simulation.rung import RungRequest
from ..state import Call, Outcome
from ..toolkit import Toolkit
from .channels import AgentState
from .drift import differing
from .records import Prediction


def build_request(call: Call, state: AgentState, scope: NodeScope, toolkit: Toolkit) -> RungRequest:
    """Return the request for one real call, with the state that reality has left."""
    return RungRequest(
        tool=toolkit[call["name"]],
        call=call,
        state=state["task_state"],
        facts={},
        context=scope.context,
        where=Where(turn=state["turn"] - 1, question=state["ledger"]["asked"].get("state_updater", 0)),
        steps=state["steps"],
        untrusted=cache(partial(find_untrusted, state["start"], state.get("supposed") or [], state["steps"])),
    )


def expect(
    request: RungRequest, prediction: Prediction | None
) -> Generator[Sequence[AnyAsk], list[Reply], tuple[Outcome, Collection[str]]]:
    """Return what the call should come to, and the JSON paths in the result at which a contract made up a value.

    Contract and `simulate` are asked again, with the real arguments in the real state; where neither answers, the
    rehearsal's prediction is what was expected. What a contract makes up is another value under another seed.
    """
    deciding = request.context.model_copy(update={"ladder": DECIDING})
    outcome = yield from climb(replace(request, context=deciding))
    if outcome["rung"] == "contract":
        other = yield from climb(replace(request, context=deciding.model_copy(update={"seed": deciding.seed + 1})))
        return outcome, differing(outcome["result"], other["result"])
    if outcome["rung"] in DECIDING or prediction is None:
        return outcome, ()
    status, result, rung, patch = prediction["status"], prediction["result"], prediction["rung"], prediction["patch"]
    return {"status": status, "result": result, "patch": patch, "rung": rung, "simulated": True, "passed": []}, ()
