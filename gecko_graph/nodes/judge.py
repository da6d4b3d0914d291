"""judge: says which items of the checklist hold, and in one word what to think of the attempt (paper, 3.4 and A.6).

Items with a `check` are decided by rule. A model is asked for the others, and whether the user must be asked.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AnyMessage

from ..channels import GeckoState
from ..checks import judge_by_rule, unasked_changes
from ..events import event
from ..models.ask import Ask, Reply, Where
from ..models.formatting import cut, format_change, format_conversation, format_json, format_policy, format_steps
from ..models.memory import recalled
from ..models.node import NodeScope
from ..models.roles import ItemJudgement, Judgement
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
    StopCode,
    UnjudgedAttempt,
    Verdict,
    VerdictWord,
)
from ..task_state.patch import apply_patch
from ..toolkit.brief import format_tools
from ..toolkit.spec import ToolSpec
from ..turn import earlier, human_turns, task_of
from ..view.view import focus_words, view

STATUSES: tuple[ItemStatus, ...] = ("failed", "unknown", "success", "not_asked_for")
NOT_EVALUATED = (False, "")
ANSWER_ALONE = "by the answer alone: no call was made"
NOTHING_TO_CHECK = "there was nothing to check"
NOBODY_JUDGED = "there is no item left to judge by: nobody judged the calls and changes"
MOST_NAMED = 20

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
        ruled: Item id to whether its check holds, with the reason where it does not.
        unasked: Changes that no check reads.
    """

    attempt: UnjudgedAttempt
    before: JsonObject
    after: JsonObject
    items: Sequence[ChecklistItem]
    items_failure: str = ""
    messages: Sequence[AnyMessage] = ()
    ruled: Mapping[str, tuple[bool, str]] = field(default_factory=dict)
    unasked: Sequence[str] = ()

    def stopped(self, *codes: StopCode) -> bool:
        """Whether the attempt ended for one of these reasons."""
        return "stop" in self.attempt and self.attempt["stop"]["code"] in codes

    @property
    def calls(self) -> bool:
        """Whether any call was answered."""
        return any("outcome" in step for step in self.attempt["steps"])


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
    unjudged = sorted(state.get("unjudged") or [], key=lambda each: each["number"])
    keys = {tool.name: tool.contract.state_keys for tool in toolkit if tool.contract is not None}
    tried = [evidence_of(state, each, inventing, keys) for each in unjudged]
    first = state["ledger"]["asked"].get("judge", 0)
    doubtful = [each for each in tried if needs_model(each)]
    asks = [ask_judge(each, scope, toolkit=toolkit, question=first + index) for index, each in enumerate(doubtful)]
    replies = yield asks
    by_number = {each.attempt["number"]: reply for each, reply in zip(doubtful, replies, strict=True)}
    judged = [
        judged_attempt(each, by_number.get(each.attempt["number"]), origins_of(each, state, toolkit, inventing))
        for each in tried
    ]
    for attempt in judged:
        told = {key: attempt[key] for key in ("verdict", "answer", "stop_reason", "stop") if key in attempt}
        scope.emit(event("gecko.verdict", attempt=attempt["number"], **told))
    return {"attempts": judged}


def evidence_of(
    state: GeckoState, attempt: UnjudgedAttempt, inventing: Collection[str], keys: Mapping[str, Collection[str]]
) -> Evidence:
    """The attempt with the states that it began from and came to, the turn's checklist, and what its checks decide."""
    before, items = state.get("task_state") or {}, state["items"] or []
    after, steps = apply_patch(before, attempt["change"]), attempt["steps"]
    return Evidence(
        attempt=attempt,
        before=before,
        after=after,
        items=items,
        items_failure=state["items_failure"],
        messages=state["messages"],
        ruled=judge_by_rule(items, before=before, after=after, steps=steps, answer=attempt["answer"]),
        unasked=unasked_changes(items, before=before, after=after, steps=steps, inventing=inventing, keys=keys),
    )


def judged_attempt(evidence: Evidence, reply: Reply | None, traced: tuple[Origins, list[MadeUp]]) -> Attempt:
    """The attempt with its verdict; what the judge has cost is the attempt's."""
    attempt = evidence.attempt
    judgement = reply.value if reply is not None and isinstance(reply.value, Judgement) else None
    failure = reply.failure if reply is not None else attempt["stop_reason"]
    usage = attempt["usage"]
    if reply is not None and not reply.absent:
        usage = add_usage(usage, {"judge": reply.usage})
    verdict = build_verdict(evidence, judgement, failure)
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


def needs_model(evidence: Evidence) -> bool:
    """True where an item has no check, or where a rule failed but the answer may rightly be a question to the user.

    An attempt that broke, or whose planner never spoke, is not worth a question: it can be nothing but failed.
    """
    attempt = evidence.attempt
    if evidence.stopped("broken") or (evidence.stopped("planner_failed") and not attempt["steps"]):
        return False
    if any(item["id"] not in evidence.ruled for item in evidence.items):
        return True
    if all(holds for holds, _ in evidence.ruled.values()):
        return False
    return bool(attempt["answer"]) and (not attempt["change"] or "?" in attempt["answer"])


def ask_judge(evidence: Evidence, scope: NodeScope, *, toolkit: Iterable[ToolSpec], question: int) -> Ask:
    """The question: the items that no rule has found to hold, and the evidence.

    Where nothing has changed the final state is the one from the start: a quarter of the view then shows what items of
    the kind "the file is there" need.
    """
    budget, attempt, messages = scope.context.view_chars, evidence.attempt, evidence.messages
    task = cut(task_of(messages), budget=budget)
    items = [item for item in evidence.items if not evidence.ruled.get(item["id"], NOT_EVALUATED)[0]]
    words = focus_words(task, [item["description"] for item in evidence.items])
    called = [step["call"]["name"] for step in attempt["steps"]]
    return Ask(
        role="judge",
        variables={
            "items": "\n".join(format_item(item, evidence.ruled) for item in items),
            "task": task,
            "tools": format_tools(toolkit, called=called, focus=words),
            "conversation": format_conversation(earlier(messages), budget=budget // 2),
            "policy": format_policy(messages, budget=budget // 2),
            "steps": format_steps(attempt["steps"], budget=budget),
            "answer": format_answer(attempt),
            "change": format_change(evidence.before, evidence.after, budget=budget // 2),
            "state": view(evidence.after, focus=words, budget=budget if attempt["change"] else budget // 4),
        },
        reply=Judgement,
        where=Where(turn=human_turns(messages) - 1, attempt=attempt["number"], question=question),
        ids=tuple(item["id"] for item in evidence.items if item["id"] not in evidence.ruled),
    )


def format_item(item: ChecklistItem, ruled: Mapping[str, tuple[bool, str]]) -> str:
    """An item as one line of JSON, with what a rule has found; never a check, nor what it came upon."""
    told = {"id": item["id"], "description": cut(goal_of(item), budget=ITEM_CHARS)}
    if item["id"] in ruled:
        told["by_rule"] = "its check does not hold"
    return json.dumps(told, ensure_ascii=False)


def goal_of(item: ChecklistItem) -> str:
    """What an item asks for, in the words that models may read: where its check is all that is said of it, its id."""
    return f"item {item['id']}" if item["description"] == item.get("check") else item["description"]


def format_answer(attempt: UnjudgedAttempt) -> str:
    """The planner's answer; where there is none, why the attempt ended."""
    answer = attempt["answer"]
    return format_json(answer, budget=ANSWER_CHARS) if answer else f"(none; {attempt['stop_reason'] or 'no reason'})"


def build_verdict(evidence: Evidence, judgement: Judgement | None, failure: str | None) -> Verdict:
    """The verdict: `accepted`, `needs_user` or `failed`, with its score, its feedback and what it rests on.

    Args:
        evidence: The attempt.
        judgement: What the model says; None where it was not asked, or could not be read.
        failure: Why no model has judged.
    """
    unasked = [*evidence.unasked, *(cut(each, budget=REASON_CHARS) for each in named_by(judgement)[:MOST_NAMED])]
    items = merge_judgements(evidence, judgement, failure, excusable=not unasked or not evidence.attempt["change"])
    word, score = grade(items, evidence, judgement)
    return {
        "word": word,
        "score": score,
        "items": items,
        "feedback": format_feedback(word, items, evidence, judgement, unasked),
        "unclear": [
            f"{step['call']['name']}: {each}"
            for step in evidence.attempt["steps"]
            if "outcome" in step
            for each in step["outcome"].get("unclear", [])
        ],
        "unasked_changes": unasked,
    }


def named_by(judgement: Judgement | None) -> Sequence[str]:
    """The changes that the judge says nobody asked for."""
    return judgement.unasked_changes if judgement is not None else ()


def merge_judgements(
    evidence: Evidence, judgement: Judgement | None, failure: str | None, *, excusable: bool = True
) -> list[JudgedItem]:
    """Every item with its status: by rule where there is a check, by the model otherwise, by nobody where that failed.

    An item whose check does not hold is unknown, not failed, where the judge agrees that the agent rightly stopped; of
    an attempt that has changed something the judge must say so of the item itself.
    """
    if evidence.stopped("broken"):
        return []
    spoken = worst(judgement.items) if judgement else {}
    stopped = judgement is not None and judgement.stopping_was_right and excusable
    merged: list[JudgedItem] = []
    for item in evidence.items:
        word = spoken.get(item["id"])
        judged: JudgedItem = {**nobody_judged(item), "reason": failure or "the judge did not speak of it"}
        if item["id"] in evidence.ruled:
            not_done = word.status == "unknown" if word else not evidence.attempt["change"]
            judged = judged_by_rule(item, *evidence.ruled[item["id"]], excused=stopped and not_done)
        elif word:
            judged |= {"status": word.status, "reason": cut(word.reason, budget=REASON_CHARS), "by": "model"}
        if judged["by"] == "model" and judged["status"] == "success" and not evidence.calls:
            judged["reason"] = ANSWER_ALONE
        merged.append(judged)
    return merged


def nobody_judged(item: ChecklistItem) -> JudgedItem:
    """The default judgement of an item without a verdict: failed."""
    return {"id": item["id"], "description": item["description"], "status": "failed", "reason": "", "by": "nobody"}


def judged_by_rule(item: ChecklistItem, holds: bool, reason: str, *, excused: bool) -> JudgedItem:
    """An item with a check; where the agent rightly stopped, one that does not hold is unknown."""
    status: ItemStatus = "success" if holds else "unknown" if excused else "failed"
    if status == "unknown":
        reason = "not done; the agent rightly stopped"
    return {**nobody_judged(item), "status": status, "reason": reason, "by": "rule"}


def worst(said: Sequence[ItemJudgement]) -> dict[str, ItemJudgement]:
    """What the judge said of each item; of two words on the same item the worse one counts."""
    spoken: dict[str, ItemJudgement] = {}
    for each in sorted(said, key=lambda each: STATUSES.index(each.status)):
        spoken.setdefault(each.id.strip(), each)
    return spoken


def grade(items: Sequence[JudgedItem], evidence: Evidence, judgement: Judgement | None) -> tuple[VerdictWord, float]:
    """The verdict's word and score. Items that the judge has struck do not count; where none is left, nobody judged.

    A checklist that is empty on purpose is met by an answer alone: calls or changes would have to be judged.
    """
    statuses = [item["status"] for item in items if item["status"] != "not_asked_for"]
    if evidence.stopped("broken", "planner_failed"):
        return "failed", 0.0
    if not items and not evidence.items_failure:
        idle = bool(evidence.attempt["answer"]) and not evidence.calls and not evidence.attempt["change"]
        return ("accepted", 1.0) if idle else ("failed", 0.0)
    if not statuses:
        return "failed", 0.0
    if all(status == "success" for status in statuses):
        return "accepted", 1.0
    if "failed" not in statuses and judgement is not None and judgement.stopping_was_right:
        return "needs_user", 1.0
    return "failed", statuses.count("success") / len(statuses)


def format_feedback(
    word: VerdictWord,
    items: Sequence[JudgedItem],
    evidence: Evidence,
    judgement: Judgement | None,
    unasked: Sequence[str],
) -> str:
    """What the next attempt's planner is told: what is missing and why. Never how to do it, as a check would say.

    Of an accepted attempt only what the judge has to say beside it. Nothing is told twice.
    """
    said = judgement.feedback.strip() if judgement is not None else ""
    if word == "accepted":
        return cut(said, budget=FEEDBACK_CHARS) if items else NOTHING_TO_CHECK
    goals = {item["id"]: goal_of(item) for item in evidence.items}
    ended = evidence.attempt["stop_reason"]
    lines = []
    for item in items:
        if item["status"] in ("failed", "unknown"):
            reason = "" if item["by"] == "rule" or item["reason"] in (ended, *said.splitlines()) else item["reason"]
            lines.append(f"- {goals[item['id']]}: {item['status']}" + (f" ({reason})" if reason else ""))
    if not lines and not evidence.stopped("broken", "planner_failed"):
        lines.append(evidence.items_failure or NOBODY_JUDGED)
    lines += [f"Not asked for: {change}" for change in unasked]
    if not evidence.stopped("answered"):
        lines.append(ended if evidence.stopped("broken") else f"The attempt ended early: {ended}")
    return cut("\n".join([*lines, *([said] if said else [])]), budget=FEEDBACK_CHARS)
