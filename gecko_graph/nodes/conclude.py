"""conclude: the record of forward execution, its state and its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from typing import Any

from ..errors import StateError
from ..forward import Need, Status, ToolGateRecord, ToolGateState
from ..models.ask import Reply
from ..models.conversation import has_open_calls
from ..models.formatting import format_call
from ..models.memory import NAME, answer_message, recall_calls
from ..models.node import NodeScope
from ..models.work import Work
from ..provenance import is_planned, trace_with
from ..state import VERSION, Step, Stop, Verdict
from ..task_state.digest import digest
from ..threads import OTHER_RUN, look_for_other_runs
from ..toolkit.spec import ToolSpec
from ..trust import find_untrusted
from ..turn import check_start, states_of

ENDED = ("max_steps", "token_budget", "time_budget")


def conclude(
    state: ToolGateState, scope: NodeScope, *, toolkit: Iterable[ToolSpec] = ()
) -> Generator[list[Work], list[Reply], dict[str, Any]]:
    """Return the record, the state with every committed call, and the answer; a failure's by rule.

    Args:
        state: The execution at its end.
        scope: Knobs.
        toolkit: The tools, for the origins of the plan's values.

    Raises:
        StateError: The task state is not the one that the execution began from, or another run has written to the
            thread in the meantime.
    """
    look = look_for_other_runs()
    if look and (yield [look])[0].value:
        raise StateError(OTHER_RUN)
    ran, before, needs = state["unjudged"][-1], state.get("task_state") or {}, state.get("needs") or []
    check_start(digest(before), ran["start_digest"])
    seen, after = states_of(before, ran)
    stop: Stop = ran["stop"]
    status: Status = "answered" if stop["code"] == "answered" else "ended" if stop["code"] in ENDED else "failed"
    broken = stop["code"] == "broken"  # its changes are dropped
    done = [step for step in ran["steps"] if is_planned(step) and not broken]
    begin = {"conversation": recall_calls(state["messages"]), "supposed": state.get("supposed") or ()}
    origins, made_up = trace_with(toolkit, ran["steps"] if done else [], state=seen, **begin)
    answer = ran["answer"] if status == "answered" else explain(stop, done)
    record: ToolGateRecord = {
        "v": VERSION,
        "status": status,
        "reason": stop["message"],
        "stop": stop,
        "plan": [step["call"] for step in done],
        "origins": origins,
        "made_up": made_up,
        "answer": answer,
        "needs": needs,
        "rejected": count_categories(needs),
        "steps": ran["steps"],
        "change": ran["change"],
        "start_digest": ran["start_digest"],
        "end_digest": ran["end_digest"],
        "usage": state["ledger"]["usage"],
    }
    verdict: Verdict = {"word": "accepted", "score": 1.0, "items": [], "feedback": "", "made_up": made_up}
    supposed = find_untrusted(before, state.get("supposed") or [], ran["steps"] if not broken else [])
    message = answer_message(answer, verdict, done, budget=scope.context.view_chars, supposed=supposed, state=after)
    update: dict[str, Any] = {"record": record, "task_state": after, "supposed": supposed}
    if message is None or has_open_calls(state["messages"]):
        return update
    message.response_metadata[NAME]["verdict"] = status
    return {**update, "messages": [message]}


def count_categories(needs: Sequence[Need]) -> dict[str, int]:
    """Return how many refusals there are of each category."""
    return dict(Counter(each["category"] for need in needs for each in need["rejections"] if "category" in each))


def explain(stop: Stop, done: list[Step]) -> str:
    """Return what is told the user of a request that was not finished: why, and what was done."""
    lines = [f"The request was not finished: {stop['message']}"]
    calls = [f"- {format_call(step['call'])}" for step in done]
    return "\n".join([*lines, *(["Done until then:", *calls] if calls else ["Nothing was done."])])
