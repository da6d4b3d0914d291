"""The loop around the attempts (paper, section 4 and algorithm 1): `start_round`, `decide`, `finish`."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from typing import Any

from ..context import GeckoContext
from ..errors import StateError
from ..models.ask import FunctionCall, Reply
from ..models.conversation import has_open_calls
from ..models.formatting import cut, format_change, format_steps
from ..models.memory import answer_message
from ..models.node import NodeScope
from ..models.usage import total
from ..retrieval.search import ToolSearch
from ..state import VERSION, Attempt, Call, Rehearsal
from ..values.digest import digest
from ..values.notes import notes_of
from ..values.origins import find_untrusted
from ..world.channels import GeckoState, Lesson
from ..world.provenance import is_planned
from ..world.turn import check_start, states_of, task_of
from .threads import OTHER_RUN, look_for_other_runs


def start_round(state: GeckoState, scope: NodeScope) -> dict[str, Any]:
    """Open the next round: fix its start state, and pass on the lesson of the last round.

    Raises:
        StateError: The task state differs from the start state of the turn's earlier attempts.
    """
    kept, width = state["bookkeeping"], scope.context.parallel_attempts
    attempts = state.get("attempts") or []
    start = digest(state.get("task_state") or {})
    for attempt in attempts:
        check_start(start, attempt["start_digest"])
    lesson = kept["lesson"]
    if attempts:
        done = len(kept["replayed"])
        lesson = build_lesson(best_attempt(attempts[-width:]), done=done, budget=scope.context.view_chars)
    opened = {"round": kept["round"] + 1, "attempts_at_once": width, "lesson": lesson, "start_digest": start}
    return {"bookkeeping": opened}


def build_lesson(attempt: Attempt, *, budget: int, done: int = 0) -> Lesson:
    """Return the lesson of a failed attempt: its calls with their results, its answer, and the judge's feedback."""
    log = format_steps(attempt["steps"][done:], budget=budget)
    if attempt["answer"]:
        log += f"\nanswer: {cut(attempt['answer'], budget=2_000)}"
    return {"number": attempt["number"], "attempt_log": log.strip(), "feedback": attempt["verdict"]["feedback"]}


def decide(state: GeckoState, scope: NodeScope) -> dict[str, Any]:
    """Choose the best attempt so far, and decide whether another round follows."""
    chosen = best_attempt(state["attempts"])["number"]
    return {"bookkeeping": {"chosen": chosen, "is_over": is_over(state, scope.context, now=time.time())}}


def best_attempt(attempts: Sequence[Attempt]) -> Attempt:
    """Return the best attempt, the earliest of equal ones.

    The order is: status (accepted, needs_user, failed), highest score, a plan before none, fewest complaints. A
    question to the user needs no plan.
    """
    words = ("accepted", "needs_user", "failed")
    return min(
        attempts,
        key=lambda attempt: (
            words.index(attempt["verdict"]["status"]),
            -attempt["verdict"]["score"],
            attempt["verdict"]["status"] != "needs_user" and not plan_of(attempt),
            sum(len(step.get("complaints", [])) for step in attempt["steps"]),
            attempt["number"],
        ),
    )


def is_over(state: GeckoState, context: GeckoContext, *, now: float) -> bool:
    """Return whether the retry loop ends.

    It ends without a checklist or a judgement, since another round would have no feedback. A failed check is feedback.
    """
    verdict = best_attempt(state["attempts"])["verdict"]
    if verdict["status"] != "failed" or (verdict["items"] and verdict["score"] >= context.target_score):
        return True
    if state["bookkeeping"]["round"] >= context.max_retries or not state["items"]:
        return True
    is_feedback = any(item["by"] == "rule" and item["status"] != "success" for item in verdict["items"])
    if notes_of(verdict, "unanswered") and not is_feedback:
        return True
    ledger = state["bookkeeping"]["ledger"]
    spent = total(ledger["usage"])
    if context.token_budget is not None and spent["input_tokens"] + spent["output_tokens"] >= context.token_budget:
        return True
    return context.time_budget_s is not None and now >= ledger["started_at"] + context.time_budget_s


def finish(
    state: GeckoState, scope: NodeScope, *, is_alone: bool = True, search: ToolSearch | None = None
) -> Generator[list[FunctionCall], list[Reply], dict[str, Any]]:
    """Return the best attempt, write back the state if it is accepted, and add the answer to the conversation.

    If the conversation ends in open calls, no answer is added, since their results must follow next. Places that rungs
    invented are marked as supposed. As a part of an agent (not `is_alone`) it adds no answer, and does not check for
    other runs: the agent claims real calls, so two runs of a thread may both continue.

    Raises:
        StateError: The task state is not the accepted attempt's start state, or another run has written to the
            thread in the meantime.
    """
    look = look_for_other_runs() if is_alone else None
    if look and (yield [look])[0].value:
        raise StateError(OTHER_RUN)
    kept, rehearsal = state["bookkeeping"], report(state)
    chosen = next(each for each in rehearsal["attempts"] if each["number"] == rehearsal["chosen"])
    update: dict[str, Any] = {"rehearsal": rehearsal}
    if chosen["verdict"]["status"] == "accepted":
        update |= write_back(state, chosen, rehearsal, scope.context.view_chars)
        if search is not None and kept["offered_tools"] is not None:
            served = [(task_of(state["messages"]), each["name"]) for each in rehearsal["plan"]]
            update["bookkeeping"] = {"taught": (yield from search.learn(kept.get("taught", []), served))}
    if not is_alone:  # the agent reports real calls; no front end may show this message as fact
        return update
    message = answer_message(
        chosen["answer"],
        chosen["verdict"],
        chosen["steps"],
        budget=scope.context.view_chars,
        supposed=update.get("supposed", state.get("supposed")) or [],
        state=update.get("task_state", state.get("task_state")) or {},
        checklist=kept["checklist_digest"],
    )
    return {**update, "messages": [message]} if message and not has_open_calls(state["messages"]) else update


def report(state: GeckoState) -> Rehearsal:
    """Return the rehearsal of the turn's attempts, without the changes of an accepted one."""
    attempts, kept = sorted(state["attempts"], key=lambda attempt: attempt["number"]), state["bookkeeping"]
    chosen = next(attempt for attempt in attempts if attempt["number"] == kept["chosen"])
    rehearsal: Rehearsal = {
        "v": VERSION,
        "plan": plan_of(chosen),
        "verdict": chosen["verdict"],
        "answer": chosen["answer"],
        "checklist": state["items"] or [],
        "attempts": attempts,
        "chosen": chosen["number"],
        "usage": kept["ledger"]["usage"],
        "origins": chosen.get("origins", {}),
    }
    if shown := kept["supposed_state"]:
        rehearsal["supposed_state"] = shown
    if any(words := kept.get("search_words", [])[1:]):
        rehearsal["search_words"] = [task_of(state["messages"]), *words]
    return rehearsal


def write_back(state: GeckoState, chosen: Attempt, rehearsal: Rehearsal, budget: int) -> dict[str, Any]:
    """Return the task state of an accepted attempt and its supposed places; add the changes to the rehearsal."""
    before = state.get("task_state") or {}
    check_start(digest(before), chosen["start_digest"])
    seen, after = states_of(before, chosen)
    rehearsal["changes"] = format_change(seen, after, budget=budget).splitlines()
    if observed := chosen.get("observed"):
        rehearsal["observed"] = observed
    supposed = find_untrusted(before, state.get("supposed") or [], chosen["steps"])
    return {"task_state": after, "supposed": supposed}


def plan_of(attempt: Attempt) -> list[Call]:
    return [step["call"] for step in attempt["steps"] if is_planned(step)]
