"""judge: decides which items of the checklist are fulfilled, and builds the attempt's verdict (paper, 3.4 and A.6).

Items with a `check` are decided by rule. A model is asked for the others, and whether the user must be asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AnyMessage

from ..events import event
from ..models.ask import Ask, QuestionId, Reply
from ..models.focus import focus_words
from ..models.formatting import cut, format_answer, format_change, format_conversation, format_policy, format_steps
from ..models.memory import open_rules, recall_calls
from ..models.node import NodeScope
from ..models.roles import ItemJudgement, Judgement
from ..models.usage import add_usage
from ..models.view import view_named
from ..state import (
    Attempt,
    ChecklistItem,
    ItemStatus,
    Json,
    JsonObject,
    JudgedItem,
    Note,
    StopCode,
    UnjudgedAttempt,
    Verdict,
    VerdictStatus,
)
from ..tools.descriptions import format_tools, pick_tools
from ..tools.spec import ToolSpec
from ..values.notes import note, tell, with_notes
from ..world.channels import GeckoState
from ..world.known import find_unknown
from ..world.provenance import Traced, trace_with
from ..world.turn import earlier, human_turns, states_of, task_of
from . import checks

STATUSES: tuple[ItemStatus, ...] = ("failed", "unknown", "success", "not_asked_for")
ANSWER_ALONE = "by the answer alone: no call was made"
NOTHING_TO_CHECK = "there was nothing to check"
NO_ITEM_LEFT = "no item is left to judge by: calls and changes were not judged"
STRUCK = "the judge struck it, but it was given with the task"
NOT_HELD = "nothing was changed: its condition did not hold, or its goal held before"
MOST_NAMED = 20
REASON_CHARS = 500
FEEDBACK_CHARS = 4_000

_CONDITION = re.compile(r"(?i)\b(?:if|unless|only when|in case|provided)\b")
NOT_EVALUATED = (False, "")
ITEM_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class Evidence:
    """A finished attempt, and the evidence for its verdict.

    `before` is the start state with differences that real reads have shown. `ruled` contains for each item id whether
    its check holds, and the reason if not. `unasked` are changes that no check reads. `settled` is the verdict if a
    rule gave it.
    """

    attempt: UnjudgedAttempt
    before: JsonObject
    after: JsonObject
    items: Sequence[ChecklistItem]
    items_failure: str = ""
    messages: Sequence[AnyMessage] = ()
    ruled: Mapping[str, tuple[bool, str]] = field(default_factory=dict)
    unasked: Sequence[Note] = ()
    wanted: checks.WantedWrites = checks.NOTHING
    settled: VerdictStatus | None = None
    supposed: Sequence[str] = ()

    def stopped(self, *codes: StopCode) -> bool:
        return "stop" in self.attempt and self.attempt["stop"]["code"] in codes

    @property
    def calls(self) -> bool:
        return any("outcome" in step for step in self.attempt["steps"])


def judge(
    state: GeckoState,
    scope: NodeScope,
    *,
    toolkit: Iterable[ToolSpec] = (),
) -> Generator[list[Ask], list[Reply], dict[str, Any]]:
    """Judge the attempts of the round. A judge or checklist that fails to answer never counts as success.

    The judge also sees the tools' descriptions, to decide whether no tool fits.
    """
    kept = state["bookkeeping"]
    unjudged = sorted(kept["attempts_to_judge"], key=lambda each: each["number"])
    keys = {tool.name: tool.contract.state_keys for tool in toolkit if tool.contract is not None}
    wanted = checks.find_wanted(toolkit, task_of(state["messages"]), state["items"] or ())
    reads = {tool.name for tool in toolkit if tool.reads}
    tried = [collect_evidence(state, each, keys, wanted, reads) for each in unjudged]
    first = kept["ledger"]["asked"].get("judge", 0)
    doubtful = [each for each in tried if needs_model(each)]
    called = [step["call"]["name"] for each in unjudged for step in each["steps"]]
    offered = kept["offered_tools"]
    shown = pick_tools(toolkit, None if offered is None else [*offered, *called])
    asks = [build_ask(each, scope, toolkit=shown, question=first + index) for index, each in enumerate(doubtful)]
    replies = yield asks
    by_number = {each.attempt["number"]: reply for each, reply in zip(doubtful, replies, strict=True)}
    judged = [
        attach_verdict(each, by_number.get(each.attempt["number"]), trace_origins(each, state, toolkit))
        for each in tried
    ]
    for attempt in judged:
        fields = {key: attempt[key] for key in ("verdict", "answer", "stop_reason", "stop") if key in attempt}
        scope.emit(event("gecko.verdict", attempt=attempt["number"], **fields))
    return {"attempts": judged}


def collect_evidence(
    state: GeckoState,
    attempt: UnjudgedAttempt,
    keys: Mapping[str, Collection[str]],
    wanted: checks.WantedWrites,
    reads: Collection[str],
) -> Evidence:
    """Return the attempt with the states before and after it, the turn's checklist, and the results of its checks."""
    settled = checks.settle(attempt, state, reads, wanted)
    items, steps, answer = [] if settled else state["items"] or [], attempt["steps"], attempt["answer"]
    before, after = states_of(state.get("task_state") or {}, attempt)
    return Evidence(
        attempt=attempt,
        before=before,
        after=after,
        items=items,
        items_failure=state["bookkeeping"]["items_failure"],
        messages=state["messages"],
        ruled=checks.judge_by_rule(items, before=before, after=after, steps=steps, answer=answer, wanted=wanted),
        unasked=checks.unasked_changes(items, before=before, after=after, steps=steps, keys=keys),
        wanted=wanted,
        settled=settled,
        supposed=state.get("supposed") or (),
    )


def attach_verdict(evidence: Evidence, reply: Reply | None, traced: Traced) -> Attempt:
    """Return the attempt with its verdict, and with the judge's cost added."""
    attempt = evidence.attempt
    judgement = reply.value if reply is not None and isinstance(reply.value, Judgement) else None
    failure = reply.failure if reply is not None else attempt["stop_reason"]
    usage = attempt["usage"]
    if reply is not None and not reply.absent:
        usage = add_usage(usage, {"judge": reply.usage})
    verdict, notes = build_verdict(evidence, judgement, failure), [*traced.notes]
    if evidence.items_failure or (reply is not None and judgement is None and not reply.absent):
        notes.append(note("unanswered", evidence.items_failure or f"the judge did not answer: {failure}"))
    return {**attempt, "verdict": with_notes(verdict, notes), "usage": usage, "origins": traced.origins}


def trace_origins(evidence: Evidence, state: GeckoState, toolkit: Iterable[ToolSpec]) -> Traced:
    """Return the origins of the values in the attempt's plan and answer."""
    lesson = state["bookkeeping"]["lesson"]
    shown = [each for each in state.get("attempts") or [] if lesson and each["number"] == lesson["number"]]
    return trace_with(
        toolkit,
        evidence.attempt["steps"],
        answer=evidence.attempt["answer"],
        conversation=recall_calls(evidence.messages),
        state=evidence.before,
        supposed=state.get("supposed") or (),
        lesson=shown[0] if shown else None,
    )


def needs_model(evidence: Evidence) -> bool:
    """Return whether an item has no check, or a check failed but the answer may rightly be a question to the user.

    An attempt that ended with an error, or whose planner never replied, has failed without a question.
    """
    attempt = evidence.attempt
    if evidence.stopped("broken") or (evidence.stopped("planner_failed") and not attempt["steps"]):
        return False
    if any(item["id"] not in evidence.ruled for item in evidence.items):
        return True
    if all(holds for holds, _ in evidence.ruled.values()):
        return False
    return bool(attempt["answer"]) and (not attempt["change"] or "?" in attempt["answer"])


def build_ask(evidence: Evidence, scope: NodeScope, *, toolkit: Iterable[ToolSpec], question: int) -> Ask:
    """Build the prompt: the items that no rule found fulfilled, the planner's messages, and the evidence.

    If nothing has changed, the final state is the start state. A quarter of the view then suffices for items such as
    "the file is there", unless the places that items name need more.
    """
    budget, attempt, messages = scope.context.view_chars, evidence.attempt, evidence.messages
    task = cut(task_of(messages), budget=budget)
    items = [item for item in evidence.items if not evidence.ruled.get(item["id"], NOT_EVALUATED)[0]]
    descriptions: list[Json] = [item["description"] for item in evidence.items]
    words = focus_words(descriptions, task)
    rooms = [budget // part for part in ((1,) if attempt["change"] else (4, 2, 1))]
    made: Any = {"state": evidence.before, "supposed": evidence.supposed, "messages": recall_calls(messages)}
    unknown, called = find_unknown(attempt["steps"], **made), [step["call"]["name"] for step in attempt["steps"]]
    return Ask(
        role="judge",
        variables={
            "items": "\n".join(format_item(item, evidence.ruled) for item in items),
            "task": task,
            "tools": format_tools(toolkit, called=called, focus=words),
            "conversation": format_conversation(earlier(messages), budget=budget),
            "policy": format_policy(messages, budget=budget // 2),
            "steps": format_steps(attempt["steps"], budget=budget, sources=True, unknown=unknown),
            "answer": format_answer(attempt),
            "change": format_change(evidence.before, evidence.after, budget=budget // 2),
            "state": view_named(evidence.after, focus=words, named=focus_words(descriptions), budgets=rooms),
        },
        reply=Judgement,
        where=QuestionId(turn=human_turns(messages) - 1, attempt=attempt["number"], question=question),
        ids=tuple(item["id"] for item in evidence.items if item["id"] not in evidence.ruled),
        band=scope.context.band,
    )


def format_item(item: ChecklistItem, ruled: Mapping[str, tuple[bool, str]]) -> str:
    """Return an item as one line of JSON, with whether its check fails; never the check itself, nor its value."""
    fields: JsonObject = {"id": item["id"], "description": cut(goal_of(item), budget=ITEM_CHARS)}
    if item.get("by") != "model":
        fields["given"] = True
    if item["id"] in ruled:
        fields["by_rule"] = "its check does not hold"
    return json.dumps(fields, ensure_ascii=False)


def build_verdict(evidence: Evidence, judgement: Judgement | None, failure: str | None) -> Verdict:
    """Build the verdict: `accepted`, `needs_user` or `failed`, with score, feedback and evidence.

    `judgement` is None if no model was asked or its reply could not be read; `failure` is then the reason.
    """
    steps, named = evidence.attempt["steps"], judgement.unasked_changes if judgement is not None else []
    unasked = [*evidence.unasked, *(note("unasked", cut(each, budget=REASON_CHARS)) for each in named[:MOST_NAMED])]
    items = merge_judgements(evidence, judgement, failure, excusable=not unasked or not evidence.attempt["change"])
    word, score = grade(items, evidence, judgement)
    verdict: Verdict = {
        "status": word,
        "score": score,
        "items": items,
        "feedback": format_feedback(word, items, evidence, judgement, unasked),
    }
    notes = [*checks.find_may_refuse(steps, open_rules(evidence.messages)), *unasked, *checks.find_repeated(steps)]
    return checks.mark(verdict, steps, notes)


def merge_judgements(
    evidence: Evidence, judgement: Judgement | None, failure: str | None, *, excusable: bool = True
) -> list[JudgedItem]:
    """Return every item with its status: by rule if it has a check, else by the model; by `nobody` if that failed.

    If the judge agrees that the agent was right to stop, an item whose check fails is unknown, not failed; in an
    attempt that changed something only if the judge calls that item unknown.
    """
    if evidence.stopped("broken"):
        return []
    by_id = pick_worst(judgement.items) if judgement else {}
    asked = ends_in_question(evidence, judgement)  # then the user decides on the missing calls
    unmet = {} if asked else checks.find_unmet(evidence.items, evidence.attempt["steps"], evidence.wanted)
    stopped = judgement is not None and judgement.stopping_was_right and excusable
    merged: list[JudgedItem] = []
    for item in evidence.items:
        given = by_id.get(item["id"])
        judged: JudgedItem = {**default_judgement(item), "reason": failure or "the judge did not mention it"}
        if item["id"] in evidence.ruled:
            not_done = given.status == "unknown" if given else not evidence.attempt["change"]
            judged = apply_check(item, *evidence.ruled[item["id"]], excused=stopped and not_done)
        elif given:
            status = "unsure" if given.unsure else given.status
            judged |= {"status": status, "reason": cut(given.reason, budget=REASON_CHARS), "by": "model"}
            judged |= {} if given.p is None else {"p": given.p}
            judged |= correct(item, judged, evidence, unmet.get(item["id"]))
        merged.append(judged)
    return merged


def correct(item: ChecklistItem, judged: JudgedItem, evidence: Evidence, unmet: str | None) -> JudgedItem:
    """Return a model's judgement after corrections: the caller's items cannot be struck, and success needs a write.

    The reason names a condition that did not hold, and an item that was judged by the answer alone.
    """
    if judged["status"] == "not_asked_for" and item.get("by") != "model":
        return {**judged, "status": "failed", "reason": f"{STRUCK}: {judged['reason']}".removesuffix(": ")}
    if unmet and judged["status"] in ("success", "unsure"):
        return {**judged, "status": "failed", "reason": unmet, "by": "rule"}
    if judged["status"] != "success":
        return judged
    if not evidence.calls:
        return {**judged, "reason": ANSWER_ALONE}
    if not evidence.attempt["change"] and _CONDITION.search(item["description"]):
        return {**judged, "reason": judged["reason"] or NOT_HELD}
    return judged


def default_judgement(item: ChecklistItem) -> JudgedItem:
    return {"id": item["id"], "description": item["description"], "status": "failed", "reason": "", "by": "nobody"}


def apply_check(item: ChecklistItem, holds: bool, reason: str, *, excused: bool) -> JudgedItem:
    """Return the judgement of an item with a check; if the agent was right to stop, a failed check is unknown."""
    status: ItemStatus = "success" if holds else "unknown" if excused else "failed"
    if status == "unknown":
        reason = "not done; the agent rightly stopped"
    return {**default_judgement(item), "status": status, "reason": reason, "by": "rule"}


def pick_worst(judgements: Sequence[ItemJudgement]) -> dict[str, ItemJudgement]:
    """Return the judgement of each item by its id; of two on the same item the worse one."""
    by_id: dict[str, ItemJudgement] = {}
    for each in sorted(judgements, key=lambda each: STATUSES.index(each.status)):
        by_id.setdefault(each.id.strip(), each)
    return by_id


def grade(items: Sequence[JudgedItem], evidence: Evidence, judgement: Judgement | None) -> tuple[VerdictStatus, float]:
    """Return the verdict's status and score. Items that the judge has struck do not count.

    An answer without calls and changes fulfils a checklist that is empty on purpose; calls or changes would need a
    judge.
    """
    statuses = [item["status"] for item in items if item["status"] != "not_asked_for"]
    if evidence.stopped("broken", "planner_failed"):
        return "failed", 0.0
    if evidence.settled:
        return evidence.settled, 1.0
    if not items and not evidence.items_failure:
        idle = bool(evidence.attempt["answer"]) and not evidence.calls and not evidence.attempt["change"]
        return ("accepted", 1.0) if idle else ("failed", 0.0)
    if not statuses:
        return "failed", 0.0
    share = statuses.count("success") / len(statuses)
    if {*statuses} <= {"success", "unsure"}:
        return "needs_user" if share < 1 or ends_in_question(evidence, judgement) else "accepted", share
    if "failed" not in statuses and judgement is not None and judgement.stopping_was_right:
        return "needs_user", 1.0
    return "failed", share


def ends_in_question(evidence: Evidence, judgement: Judgement | None) -> bool:
    """Return whether the attempt left the task to the user: its answer is a question, and nothing was changed.

    An offer after a lookup ("Shall I book it?") does not count, unless the task names a tool that writes.
    """
    if evidence.attempt["change"] or not evidence.attempt["answer"].rstrip(" \n*_`\"')").endswith("?"):
        return False
    return bool(evidence.wanted.named) or not evidence.calls or (judgement is not None and judgement.stopping_was_right)


def format_feedback(
    word: VerdictStatus,
    items: Sequence[JudgedItem],
    evidence: Evidence,
    judgement: Judgement | None,
    unasked: Sequence[Note],
) -> str:
    """Return the missing items with reasons, for the next attempt's planner.

    It never contains a check, which shows how.

    For an accepted attempt it is only the judge's feedback. Nothing is repeated.
    """
    feedback = judgement.feedback.strip() if judgement is not None else ""
    if word == "accepted":
        return cut(feedback, budget=FEEDBACK_CHARS) if items else NOTHING_TO_CHECK
    goals = {item["id"]: goal_of(item) for item in evidence.items}
    ended = evidence.attempt["stop_reason"]
    lines, shown = list[str](), [ended, *feedback.splitlines()]
    for item in items:
        if item["status"] in ("failed", "unknown", "unsure"):
            reason = "" if item["id"] in evidence.ruled or item["reason"] in shown else item["reason"]
            lines.append(f"- {goals[item['id']]}: {item['status']}" + (f" ({reason})" if reason else ""))
            shown.append(reason)
    if not lines and not evidence.stopped("broken", "planner_failed"):
        lines.append(evidence.items_failure or NO_ITEM_LEFT)
    lines += [f"Not asked for: {tell(each)}" for each in unasked]
    if not evidence.stopped("answered"):
        lines.append(ended if evidence.stopped("broken") else f"The attempt ended early: {ended}")
    return cut("\n".join([*lines, *([feedback] if feedback else [])]), budget=FEEDBACK_CHARS)


def goal_of(item: ChecklistItem) -> str:
    """Return an item's description for models; its id if it has only a check."""
    return f"item {item['id']}" if item["description"] == item.get("check") else item["description"]
