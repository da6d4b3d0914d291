"""conclude: the record of forward execution, its state and its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from typing import Any

from ...errors import StateError
from ...models.ask import Reply
from ...models.conversation import has_open_calls
from ...models.formatting import format_call
from ...models.memory import NAME, answer_message, recall_calls
from ...models.node import NodeScope
from ...models.work import Work
from ...nodes.checks import find_noted, find_unsimulated
from ...nodes.threads import OTHER_RUN, look_for_other_runs
from ...state import VERSION, JsonObject, Step, Stop, UnjudgedAttempt, Verdict
from ...tools.spec import ToolSpec
from ...values.digest import digest
from ...values.origins import find_untrusted
from ...world.provenance import is_planned, trace_with
from ...world.turn import check_start, states_of
from ..channels import Need, Status, ToolGateRecord, ToolGateState

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
    ran, before = state["attempts_to_judge"][-1], state.get("task_state") or {}
    check_start(digest(before), ran["start_digest"])
    seen, after = states_of(before, ran)
    broken = ran["stop"]["code"] == "broken"  # its changes are dropped
    done = [step for step in ran["steps"] if is_planned(step) and not broken]
    record = build_record(state, ran, done, seen, toolkit)
    verdict: Verdict = {"status": "accepted", "score": 1.0, "items": [], "feedback": "", "made_up": record["made_up"]}
    supposed = find_untrusted(before, state.get("supposed") or [], ran["steps"] if not broken else [])
    budget = scope.context.view_chars
    message = answer_message(record["answer"], verdict, done, budget=budget, supposed=supposed, state=after)
    update: dict[str, Any] = {"record": record, "task_state": after, "supposed": supposed}
    if message is None or has_open_calls(state["messages"]):
        return update
    message.response_metadata[NAME]["verdict"] = record["status"]
    return {**update, "messages": [message]}


def build_record(
    state: ToolGateState, ran: UnjudgedAttempt, done: list[Step], seen: JsonObject, toolkit: Iterable[ToolSpec]
) -> ToolGateRecord:
    """Return the record of an execution, of which the steps `done` are kept.

    `seen` is the task state that it began from, as its real reads have shown it.
    """
    stop, needs = ran["stop"], state.get("needs") or []
    status: Status = "answered" if stop["code"] == "answered" else "ended" if stop["code"] in ENDED else "failed"
    begin = {"conversation": recall_calls(state["messages"]), "supposed": state.get("supposed") or ()}
    origins, made_up, *_ = trace_with(toolkit, ran["steps"] if done else [], state=seen, **begin)
    return {
        "v": VERSION,
        "status": status,
        "reason": stop["message"],
        "stop": stop,
        "plan": [step["call"] for step in done],
        "origins": origins,
        "made_up": made_up,
        "unclear": find_noted(done, "unclear"),
        "unsimulated": find_unsimulated(done),
        "answer": ran["answer"] if status == "answered" else explain(stop, done),
        "needs": needs,
        "rejected": count_categories(needs),
        "steps": ran["steps"],
        "change": ran["change"],
        "start_digest": ran["start_digest"],
        "end_digest": ran["end_digest"],
        "usage": state["ledger"]["usage"],
    }


def count_categories(needs: Sequence[Need]) -> dict[str, int]:
    """Return how many refusals there are of each category."""
    return dict(Counter(each["category"] for need in needs for each in need["rejections"] if "category" in each))


def explain(stop: Stop, done: list[Step]) -> str:
    """Return the answer to a request that was not finished: why it was not, and which calls were made."""
    lines = [f"The request was not finished: {stop['message']}"]
    calls = [f"- {format_call(step['call'])}" for step in done]
    return "\n".join([*lines, *(["Done until then:", *calls] if calls else ["Nothing was done."])])
