"""judge: says which items of the checklist hold, and in one word what to think of the attempt (paper, 3.4 and A.6).

Items with a `check` are decided by rule. A model is asked for the others, and whether the user must be asked.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from ..channels import PLANNER_FAILED, AttemptState
from ..errors import EvaluationFailed
from ..events import event
from ..models.ask import Ask, Reply, Where
from ..models.node import NodeScope
from ..models.roles import Judgement
from ..models.telling import tell_conversation, tell_json, tell_policy, tell_steps
from ..state import ChecklistItem, ItemStatus, JsonObject, JudgedItem, Patch, Step, Verdict, VerdictWord
from ..world.expression import Scope, check_expression
from ..world.patch import make_patch
from ..world.view import focus_words, view


def judge(state: AttemptState, scope: NodeScope) -> Generator[list[Ask], list[Reply], dict[str, Any]]:
    """Judge the attempt. A judge or checklist that fails to answer never counts as success."""
    change = make_patch(state["before"], state["task_state"])
    ruled = judge_by_rule(state)
    judgement: Judgement | None = None
    failure: str | None = None
    if needs_model(state, ruled, change):
        (reply,) = yield [ask_judge(state, scope, ruled, change)]
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
    """True where an item has no check, or where a rule failed but the answer may rightly be a question to the user."""
    if any(item["id"] not in ruled for item in state["items"]):
        return True
    if all(holds for holds, _ in ruled.values()):
        return False
    answer = state.get("answer", "")
    return bool(answer) and (not change or "?" in answer)


def ask_judge(
    state: AttemptState, scope: NodeScope, ruled: Mapping[str, tuple[bool, str]], change: Patch
) -> Ask:
    """The question: the items that no rule has found to hold, and the evidence."""
    budget = scope.context.view_chars
    lines = [
        {"id": item["id"], "description": item["description"]} | ({"by_rule": ruled[item["id"]][1]} if item["id"] in ruled else {})
        for item in state["items"]
        if not ruled.get(item["id"], (False, ""))[0]
    ]
    words = focus_words(state["task"], [item["description"] for item in state["items"]])
    return Ask(
        role="judge",
        variables={
            "items": "\n".join(json.dumps(line, ensure_ascii=False) for line in lines),
            "task": state["task"],
            "conversation": tell_conversation(state["conversation"], budget=budget // 2),
            "policy": tell_policy(state["conversation"], budget=budget // 2),
            "steps": tell_steps(state.get("steps", []), budget=budget),
            "answer": tell_json(state.get("answer", ""), budget=4_000),
            "change": tell_json(change, budget=budget // 2),
            "state": view(state["task_state"], focus=words, budget=budget),
        },
        reply=Judgement,
        where=Where(turn=state["turn"], attempt=state["number"], question=state.get("asked", {}).get("judge", 0)),
    )


def settle(
    items: Sequence[ChecklistItem],
    ruled: Mapping[str, tuple[bool, str]],
    judgement: Judgement | None,
    failure: str | None,
) -> list[JudgedItem]:
    """Every item with its status: by rule where there is a check, by the model otherwise, by nobody where that failed.

    An item whose check does not hold is unknown, not failed, where the judge agrees that the user must be asked.
    """
    spoken = {item.id: item for item in judgement.items} if judgement else {}
    settled: list[JudgedItem] = []
    for item in items:
        status: ItemStatus = "failed"
        by, reason = "nobody", failure or "the judge did not speak of it"
        if item["id"] in ruled:
            holds, reason = ruled[item["id"]]
            by, status = "rule", "success" if holds else "failed"
            if not holds and judgement is not None and judgement.ask_user:
                status, reason = "unknown", "not done; the user must be asked first"
        elif item["id"] in spoken:
            by, status, reason = "model", spoken[item["id"]].status, spoken[item["id"]].reason
        settled.append({"id": item["id"], "description": item["description"], "status": status, "reason": reason, "by": by})  # type: ignore[typeddict-item]
    return settled


def pronounce(items: Sequence[JudgedItem], state: AttemptState, judgement: Judgement | None) -> Verdict:
    """The verdict: `accepted`, `needs_user` or `failed`, with its score and feedback."""
    statuses = [item["status"] for item in items]
    word: VerdictWord = "failed"
    silent = state.get("stop_reason", "").startswith(PLANNER_FAILED)
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
    """What the next attempt's planner is told: what is missing and why, never how to do it."""
    lines = [
        f"- {item['description']}: {item['status']}" + (f" ({item['reason']})" if item["reason"] else "")
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
    return "\n".join(lines)
