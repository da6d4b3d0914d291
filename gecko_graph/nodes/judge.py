"""judge: says which items of the checklist hold, and in one word what to think of the attempt (paper, 3.4 and A.6).

Items with a `check` are decided by rule. A model is asked for the others, and whether the user must be asked.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AnyMessage

from ..channels import ATTEMPT_BROKE, PLANNER_FAILED, GeckoState
from ..contracts.expression import Scope, check_expression
from ..errors import EvaluationFailed
from ..events import event
from ..models.ask import Ask, Reply, Where
from ..models.memory import recalled
from ..models.node import NodeScope
from ..models.roles import ItemJudgement, Judgement
from ..models.telling import cut, format_change, tell_conversation, tell_json, tell_policy, tell_steps, tell_tools
from ..models.usage import add_usage
from ..provenance import INVENTING, Sources, trace
from ..state import (
    Attempt,
    ChecklistItem,
    ItemStatus,
    JsonObject,
    JudgedItem,
    MadeUp,
    Origins,
    Step,
    UnjudgedAttempt,
    Verdict,
    VerdictWord,
)
from ..task_state.patch import apply_patch
from ..toolkit.spec import ToolSpec
from ..turn import earlier, human_turns, task_of
from ..view.view import focus_words, view

STATUSES: tuple[ItemStatus, ...] = ("failed", "unknown", "success")
DOUBT = (False, "")

ANSWER_CHARS = 4_000
ITEM_CHARS = 1_000
REASON_CHARS = 500
FEEDBACK_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Evidence:
    """One attempt at its end, and what it is judged by.

    Args:
        attempt: The attempt.
        before: The task state that it began from.
        after: The task state that it came to.
        items: The checklist.
        items_failure: Why there is no checklist.
        messages: The conversation, which ends with the task.
    """

    attempt: UnjudgedAttempt
    before: JsonObject
    after: JsonObject
    items: Sequence[ChecklistItem]
    items_failure: str = ""
    messages: Sequence[AnyMessage] = ()


def judge(
    state: GeckoState,
    scope: NodeScope,
    *,
    toolkit: Iterable[ToolSpec] = (),
    inventing: Collection[str] = INVENTING,
) -> Generator[list[Ask], list[Reply], dict[str, Any]]:
    """Judge the attempts of the round. A judge or checklist that fails to answer never counts as success.

    Args:
        state: The turn, with the round's attempts.
        scope: Knobs, events, models.
        toolkit: What could be called: whether no tool fits can only be told by who knows the tools.
        inventing: Names of the rungs that make things up.
    """
    tried = [evidence_of(state, each) for each in sorted(state.get("unjudged") or [], key=lambda each: each["number"])]
    ruled = [judge_by_rule(each) for each in tried]
    first = state["ledger"]["asked"].get("judge", 0)
    asked = [index for index, each in enumerate(tried) if needs_model(each, ruled[index])]
    replies = yield [
        ask_judge(tried[index], scope, ruled[index], toolkit=toolkit, question=first + number)
        for number, index in enumerate(asked)
    ]
    by_index = dict(zip(asked, replies, strict=True))
    traced = [origins_of(each, state, toolkit, inventing) for each in tried]
    judged = [
        judged_attempt(each, ruled[index], by_index.get(index), traced=traced[index])
        for index, each in enumerate(tried)
    ]
    for attempt in judged:
        told = {key: attempt[key] for key in ("verdict", "answer", "stop_reason")}
        scope.emit(event("gecko.verdict", attempt=attempt["number"], **told))
    return {"attempts": judged}


def evidence_of(state: GeckoState, attempt: UnjudgedAttempt) -> Evidence:
    """The attempt with the states that it began from and came to, and the turn's checklist."""
    before = state.get("task_state") or {}
    return Evidence(
        attempt=attempt,
        before=before,
        after=apply_patch(before, attempt["change"]),
        items=state["items"] or [],
        items_failure=state["items_failure"],
        messages=state["messages"],
    )


def judged_attempt(
    evidence: Evidence,
    ruled: Mapping[str, tuple[bool, str]],
    reply: Reply | None,
    *,
    traced: tuple[Origins, list[MadeUp]] = ({}, []),
) -> Attempt:
    """The attempt with its verdict; what the judge has cost is the attempt's."""
    attempt = evidence.attempt
    judgement = reply.value if reply is not None and isinstance(reply.value, Judgement) else None
    failure = reply.failure if reply is not None else attempt["stop_reason"] if is_silent(attempt) else None
    verdict = pronounce(settle(evidence.items, ruled, judgement, failure), evidence, judgement)
    usage = attempt["usage"]
    if reply is not None and not reply.absent:
        usage = add_usage(usage, {"judge": reply.usage})
    verdict["made_up"] = traced[1]
    return {**attempt, "verdict": verdict, "usage": usage, "origins": traced[0]}


def origins_of(
    evidence: Evidence, state: GeckoState, toolkit: Iterable[ToolSpec], inventing: Collection[str]
) -> tuple[Origins, list[MadeUp]]:
    """Where the values of the attempt's plan come from, and those that were made up."""
    schemas = {tool.name: tool.parameters for tool in toolkit}
    lesson = state.get("lesson")
    shown = [each for each in state.get("attempts") or [] if lesson and each["number"] == lesson["number"]]
    sources = Sources(
        conversation=recalled(evidence.messages),
        state=evidence.before,
        supposed=state.get("supposed") or (),
        lesson=shown[0] if shown else None,
        inventing=inventing,
    )
    return trace(evidence.attempt["steps"], sources, lambda name: schemas.get(name, {}))


def judge_by_rule(evidence: Evidence) -> dict[str, tuple[bool, str]]:
    """Item id to whether its check holds, with the reason where it does not."""
    scope = Scope(
        {
            "state": evidence.after,
            "before": evidence.before,
            "calls": calls_of(evidence.attempt["steps"]),
            "answer": evidence.attempt["answer"],
        }
    )
    ruled: dict[str, tuple[bool, str]] = {}
    for item in evidence.items:
        if "check" not in item:
            continue
        try:
            holds = check_expression(item["check"], where=f"checklist item {item['id']}").holds(scope)
            ruled[item["id"]] = (holds, "" if holds else "its check does not hold")
        except EvaluationFailed as error:
            ruled[item["id"]] = (False, f"its check cannot be evaluated: {error}")
    return ruled


def calls_of(steps: Sequence[Step]) -> list[JsonObject]:
    """The calls that ran, as checks see them: name, args, status, result."""
    return [
        {
            "name": step["call"]["name"],
            "args": step["call"]["args"],
            "status": step["outcome"]["status"],
            "result": step["outcome"]["result"],
        }
        for step in steps
        if "outcome" in step
    ]


def needs_model(evidence: Evidence, ruled: Mapping[str, tuple[bool, str]]) -> bool:
    """True where an item has no check, or where a rule failed but the answer may rightly be a question to the user.

    An attempt that broke, or whose planner never spoke, is not worth a question: it can be nothing but failed.
    """
    attempt = evidence.attempt
    if is_broken(attempt) or (is_silent(attempt) and not attempt["steps"]):
        return False
    if any(item["id"] not in ruled for item in evidence.items):
        return True
    if all(holds for holds, _ in ruled.values()):
        return False
    return bool(attempt["answer"]) and (not attempt["change"] or "?" in attempt["answer"])


def is_silent(attempt: UnjudgedAttempt) -> bool:
    """True where the attempt ended because the planner gave no reply."""
    return attempt["stop_reason"].startswith(PLANNER_FAILED)


def is_broken(attempt: UnjudgedAttempt) -> bool:
    """True where the attempt ended in an exception."""
    return attempt["stop_reason"].startswith(ATTEMPT_BROKE)


def ask_judge(
    evidence: Evidence,
    scope: NodeScope,
    ruled: Mapping[str, tuple[bool, str]],
    *,
    toolkit: Iterable[ToolSpec] = (),
    question: int = 0,
) -> Ask:
    """The question: the items that no rule has found to hold, and the evidence."""
    budget, attempt, messages = scope.context.view_chars, evidence.attempt, evidence.messages
    task = cut(task_of(messages), budget=budget)
    words = focus_words(task, [item["description"] for item in evidence.items])
    return Ask(
        role="judge",
        variables={
            "items": "\n".join(
                tell_item(item, ruled) for item in evidence.items if not ruled.get(item["id"], DOUBT)[0]
            ),
            "task": task,
            "tools": tell_tools(((tool.name, tool.description) for tool in toolkit), budget=budget // 2),
            "conversation": tell_conversation(earlier(messages), budget=budget // 2),
            "policy": tell_policy(messages, budget=budget // 2),
            "steps": tell_steps(attempt["steps"], budget=budget),
            "answer": tell_answer(attempt),
            "change": format_change(evidence.before, evidence.after, budget=budget // 2),
            "state": view(evidence.after, focus=words, budget=budget),
        },
        reply=Judgement,
        where=Where(turn=human_turns(messages) - 1, attempt=attempt["number"], question=question),
        ids=tuple(item["id"] for item in evidence.items if item["id"] not in ruled),
    )


def tell_item(item: ChecklistItem, ruled: Mapping[str, tuple[bool, str]]) -> str:
    """An item as one line of JSON, with what a rule has found; never a check, nor what it came upon."""
    told = {"id": item["id"], "description": cut(goal_of(item), budget=ITEM_CHARS)}
    if item["id"] in ruled:
        told["by_rule"] = "its check does not hold"
    return json.dumps(told, ensure_ascii=False)


def goal_of(item: ChecklistItem) -> str:
    """What an item asks for, in the words that models may read: where its check is all that is said of it, its id."""
    return f"item {item['id']}" if item["description"] == item.get("check") else item["description"]


def tell_answer(attempt: UnjudgedAttempt) -> str:
    """The planner's answer; where there is none, why the attempt ended."""
    answer = attempt["answer"]
    return tell_json(answer, budget=ANSWER_CHARS) if answer else f"(none; {attempt['stop_reason'] or 'no reason'})"


def settle(
    items: Sequence[ChecklistItem],
    ruled: Mapping[str, tuple[bool, str]],
    judgement: Judgement | None,
    failure: str | None,
) -> list[JudgedItem]:
    """Every item with its status: by rule where there is a check, by the model otherwise, by nobody where that failed.

    An item whose check does not hold is unknown, not failed, where the judge agrees that the user must be asked.
    """
    spoken = worst(judgement.items) if judgement else {}
    asks = judgement is not None and judgement.ask_user
    settled: list[JudgedItem] = []
    for item in items:
        said: JudgedItem = {**nobody_judged(item), "reason": failure or "the judge did not speak of it"}
        if item["id"] in ruled:
            said = judged_by_rule(item, *ruled[item["id"]], asks=asks)
        elif item["id"] in spoken:
            word = spoken[item["id"]]
            said |= {"status": word.status, "reason": cut(word.reason, budget=REASON_CHARS), "by": "model"}
        settled.append(said)
    return settled


def nobody_judged(item: ChecklistItem) -> JudgedItem:
    """An item that nobody has spoken of: failed."""
    return {"id": item["id"], "description": item["description"], "status": "failed", "reason": "", "by": "nobody"}


def judged_by_rule(item: ChecklistItem, holds: bool, reason: str, *, asks: bool) -> JudgedItem:
    """An item with a check; where the user must be asked first, one that does not hold is unknown."""
    status: ItemStatus = "success" if holds else "unknown" if asks else "failed"
    if status == "unknown":
        reason = "not done; the user must be asked first"
    return {**nobody_judged(item), "status": status, "reason": reason, "by": "rule"}


def worst(said: Sequence[ItemJudgement]) -> dict[str, ItemJudgement]:
    """What the judge said of each item; of two words on the same item the worse one counts."""
    spoken: dict[str, ItemJudgement] = {}
    for each in sorted(said, key=lambda each: STATUSES.index(each.status)):
        spoken.setdefault(each.id.strip(), each)
    return spoken


def pronounce(items: Sequence[JudgedItem], evidence: Evidence, judgement: Judgement | None) -> Verdict:
    """The verdict: `accepted`, `needs_user` or `failed`, with its score and feedback."""
    attempt = evidence.attempt
    if is_broken(attempt):
        return {"word": "failed", "score": 0.0, "items": [], "feedback": attempt["stop_reason"]}
    statuses = [item["status"] for item in items]
    word: VerdictWord = "failed"
    silent = is_silent(attempt)
    if items and not silent:
        if all(status == "success" for status in statuses):
            word = "accepted"
        elif "failed" not in statuses and judgement is not None and judgement.ask_user:
            word = "needs_user"
    counted = {"success", "unknown"} if word == "needs_user" else {"success"}
    score = sum(status in counted for status in statuses) / len(items) if items and not silent else 0.0
    feedback = "" if word == "accepted" else feedback_of(items, evidence, judgement)
    return {"word": word, "score": score, "items": list(items), "feedback": feedback}


def feedback_of(items: Sequence[JudgedItem], evidence: Evidence, judgement: Judgement | None) -> str:
    """What the next attempt's planner is told: what is missing and why. Never how to do it, as a check would say."""
    goals = {item["id"]: goal_of(item) for item in evidence.items}
    lines = [
        f"- {goals.get(item['id'], item['description'])}: {item['status']}"
        + (f" ({item['reason']})" if item["reason"] and item["by"] != "rule" else "")
        for item in items
        if item["status"] != "success"
    ]
    if not items:
        lines.append(evidence.items_failure or "there is no checklist")
    reason = evidence.attempt["stop_reason"]
    if reason != "answered":
        lines.append(f"The attempt ended early: {reason}")
    if judgement is not None and judgement.feedback:
        lines.append(judgement.feedback)
    return cut("\n".join(lines), budget=FEEDBACK_CHARS)
