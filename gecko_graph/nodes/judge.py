"""judge: says which items of the checklist hold, and in one word what to think of the attempt (paper, 3.4 and A.6).

Items with a `check` are decided by rule. A model is asked for the others, and whether the user must be asked.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

from ..channels import PLANNER_FAILED, AttemptState
from ..contracts.expression import Scope, check_expression
from ..errors import EvaluationFailed
from ..events import event
from ..models.ask import Ask, Reply, Where
from ..models.node import NodeScope
from ..models.roles import ItemJudgement, Judgement
from ..models.telling import cut, format_change, tell_conversation, tell_json, tell_policy, tell_steps, tell_tools
from ..state import ChecklistItem, ItemStatus, JsonObject, JudgedItem, Patch, Step, Verdict, VerdictWord
from ..task_state.patch import make_patch
from ..toolkit.spec import ToolSpec
from ..turn import earlier
from ..view.view import focus_words, view

STATUSES: tuple[ItemStatus, ...] = ("failed", "unknown", "success")
DOUBT = (False, "")

ANSWER_CHARS = 4_000
ITEM_CHARS = 1_000
REASON_CHARS = 500
FEEDBACK_CHARS = 4_000


def judge(
    state: AttemptState, scope: NodeScope, *, toolkit: Iterable[ToolSpec] = ()
) -> Generator[list[Ask], list[Reply], dict[str, Any]]:
    """Judge the attempt. A judge or checklist that fails to answer never counts as success.

    Args:
        state: The attempt at its end.
        scope: Knobs, events, models.
        toolkit: What could be called: whether no tool fits can only be told by who knows the tools.
    """
    change = make_patch(state["before"], state["task_state"])
    ruled = judge_by_rule(state)
    judgement: Judgement | None = None
    failure = state["stop_reason"] if is_silent(state) else None
    if needs_model(state, ruled, change):
        (reply,) = yield [ask_judge(state, scope, ruled, change, toolkit=toolkit)]
        judgement = reply.value if isinstance(reply.value, Judgement) else None
        failure = reply.failure
    items = settle(state["items"], ruled, judgement, failure)
    verdict = pronounce(items, state, judgement)
    told = {"verdict": verdict, "answer": state.get("answer", ""), "stop_reason": state.get("stop_reason", "")}
    scope.emit(event("gecko.verdict", attempt=state["number"], **told))
    return {"verdict": verdict, "change": change}


def judge_by_rule(state: AttemptState) -> dict[str, tuple[bool, str]]:
    """Item id to whether its check holds, with the reason where it does not."""
    scope = Scope(
        {
            "state": state["task_state"],
            "before": state["before"],
            "calls": calls_of(state.get("steps", [])),
            "answer": state.get("answer", ""),
        }
    )
    ruled: dict[str, tuple[bool, str]] = {}
    for item in state["items"]:
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


def needs_model(state: AttemptState, ruled: Mapping[str, tuple[bool, str]], change: Patch) -> bool:
    """True where an item has no check, or where a rule failed but the answer may rightly be a question to the user.

    An attempt whose planner never spoke is not worth a question: it can be nothing but failed.
    """
    if is_silent(state) and not state.get("steps"):
        return False
    if any(item["id"] not in ruled for item in state["items"]):
        return True
    if all(holds for holds, _ in ruled.values()):
        return False
    answer = state.get("answer", "")
    return bool(answer) and (not change or "?" in answer)


def is_silent(state: AttemptState) -> bool:
    """True where the attempt ended because the planner gave no reply."""
    return state.get("stop_reason", "").startswith(PLANNER_FAILED)


def ask_judge(
    state: AttemptState,
    scope: NodeScope,
    ruled: Mapping[str, tuple[bool, str]],
    change: Patch,
    *,
    toolkit: Iterable[ToolSpec] = (),
) -> Ask:
    """The question: the items that no rule has found to hold, and the evidence."""
    budget = scope.context.view_chars
    words = focus_words(state["task"], [item["description"] for item in state["items"]])
    return Ask(
        role="judge",
        variables={
            "items": "\n".join(
                tell_item(item, ruled) for item in state["items"] if not ruled.get(item["id"], DOUBT)[0]
            ),
            "task": state["task"],
            "tools": tell_tools(((tool.name, tool.description) for tool in toolkit), budget=budget // 2),
            "conversation": tell_conversation(earlier(state["conversation"]), budget=budget // 2),
            "policy": tell_policy(state["conversation"], budget=budget // 2),
            "steps": tell_steps(state.get("steps", []), budget=budget),
            "answer": tell_answer(state),
            "change": format_change(state["before"], state["task_state"], budget=budget // 2),
            "state": view(state["task_state"], focus=words, budget=budget),
        },
        reply=Judgement,
        where=Where(turn=state["turn"], attempt=state["number"], question=state.get("asked", {}).get("judge", 0)),
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


def tell_answer(state: AttemptState) -> str:
    """The planner's answer; where there is none, why the attempt ended."""
    answer = state.get("answer", "")
    return tell_json(answer, budget=ANSWER_CHARS) if answer else f"(none; {state.get('stop_reason') or 'no reason'})"


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


def pronounce(items: Sequence[JudgedItem], state: AttemptState, judgement: Judgement | None) -> Verdict:
    """The verdict: `accepted`, `needs_user` or `failed`, with its score and feedback."""
    statuses = [item["status"] for item in items]
    word: VerdictWord = "failed"
    silent = is_silent(state)
    if items and not silent:
        if all(status == "success" for status in statuses):
            word = "accepted"
        elif "failed" not in statuses and judgement is not None and judgement.ask_user:
            word = "needs_user"
    counted = {"success", "unknown"} if word == "needs_user" else {"success"}
    score = sum(status in counted for status in statuses) / len(items) if items and not silent else 0.0
    feedback = "" if word == "accepted" else feedback_of(items, state, judgement)
    return {"word": word, "score": score, "items": list(items), "feedback": feedback}


def feedback_of(items: Sequence[JudgedItem], state: AttemptState, judgement: Judgement | None) -> str:
    """What the next attempt's planner is told: what is missing and why. Never how to do it, as a check would say."""
    goals = {item["id"]: goal_of(item) for item in state.get("items", [])}
    lines = [
        f"- {goals.get(item['id'], item['description'])}: {item['status']}"
        + (f" ({item['reason']})" if item["reason"] and item["by"] != "rule" else "")
        for item in items
        if item["status"] != "success"
    ]
    if not items:
        lines.append(state.get("items_failure") or "there is no checklist")
    reason = state.get("stop_reason", "answered")
    if reason != "answered":
        lines.append(f"The attempt ended early: {reason}")
    if judgement is not None and judgement.feedback:
        lines.append(judgement.feedback)
    return cut("\n".join(lines), budget=FEEDBACK_CHARS)
