"""A recorded trajectory beside the real classes and the official verdict: where they differ, and why, tried out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gecko_graph.state import JsonObject

from .official import Plan, Replay, Verdict, check, same_state
from .rehearse import Played, written
from .tasks import Task

REFUSED = "the validator refused calls (they break the documents, or the tool is not offered) that count officially"
GONE = "the old task's truth calls a tool that today's classes lack: officially its error text is the answer wanted"
HINT = ". Did you mean "
"""What newer versions of Python add to an error's reason."""
OLDER = "the classes that the recording ran on answered otherwise"
REVISED = "every answer is the same today: the recording was checked against another revision of the old task's truth"
UNEXPLAINED = "unexplained"


def compare(task: Task, row: Mapping[str, Any], played: Sequence[Played]) -> JsonObject:
    """Return states and verdicts of a replay beside the real ones.

    Returns:
        `same` and `turns` (turns after which our state is the real one, and all), `state_cause` (why not), `ours`,
        `today` and `recorded` (verdicts: ours, the official checker's on the same calls today, the recorded one),
        `verdict_cause` and `recorded_cause`.
    """
    recorded: Plan = [turn["steps"] for turn in row["turns"]]
    plan: Plan = [written(each.chosen) for each in played]
    same = matches(task, recorded, played)
    today, ours = check(task, recorded), our_verdict(task, played)
    was = row["official"]["valid"] if row["task_matches_v4"] else row["recorded_valid"]
    return {
        "turns": len(played),
        "same": sum(same),
        "first_difference": same.index(False) + 1 if False in same else 0,
        "state_cause": "" if all(same) else state_cause(task, plan, played),
        "refused": refused(played),
        "ours": ours,
        "today": today.valid,
        "recorded": was,
        "verdict_cause": "" if ours == today.valid else verdict_cause(task, plan, ours, today),
        "recorded_cause": "" if today.valid == was else recorded_cause(task, row),
    }


def matches(task: Task, plan: Plan, played: Sequence[Played]) -> list[bool]:
    """Return whether our state after each turn is the one that the real classes reach with a plan.

    Args:
        task: The task.
        plan: The calls that the real classes are given.
        played: Our turns.
    """
    found = []
    with Replay(task) as real:
        for turn, ours in zip(plan, played, strict=True):
            _, instances = real.run([call for step in turn for call in step])
            here = task.real.instances(ours.after)
            found.append(same_state(here, instances) and _same_folder(here, instances))
    return found


def _same_folder(ours: Mapping[str, Any], real: Mapping[str, Any]) -> bool:
    pairs = [(ours[name], real[name]) for name in ours if hasattr(ours[name], "_current_dir")]
    return all(mine.pwd() == theirs.pwd() for mine, theirs in pairs)


def state_cause(task: Task, plan: Plan, played: Sequence[Played]) -> str:
    """Return why our states differ: whether they are the real ones once the real classes get the same calls."""
    return REFUSED if all(matches(task, plan, played)) else UNEXPLAINED


def our_verdict(task: Task, played: Sequence[Played]) -> bool:
    """Return True if every turn of the task was played and accepted."""
    return len(played) >= len(task.turns) and all(each.accepted for each in played)


def verdict_cause(task: Task, plan: Plan, ours: bool, today: Verdict) -> str:
    """Return why our verdict is another than the official one on the recorded calls."""
    if check(task, plan).valid != ours:
        return UNEXPLAINED
    return REFUSED if task.playable else GONE


def refused(played: Sequence[Played]) -> list[str]:
    """Return tools whose calls the validator refused, with the turn."""
    return [
        f"{number}: {step['call']['name']} {step['complaints'][0]['path']}"
        for number, each in enumerate(played, 1)
        for step in each.chosen["steps"]
        if step.get("complaints")
    ]


def recorded_cause(task: Task, row: Mapping[str, Any]) -> str:
    """Return why today's official verdict is another than the recorded one."""
    with Replay(task) as real:
        for number, turn in enumerate(row["turns"], 1):
            for calls, results in zip(turn["steps"], turn["tool_results"], strict=False):
                answers, _ = real.run(calls)
                for call, now, then in zip(calls, answers, results, strict=False):
                    if now.partition(HINT)[0] != then.partition(HINT)[0]:
                        return f"{OLDER}: turn {number}, {call[:80]}: {then[:80]!r}, now {now[:80]!r}"
    return UNEXPLAINED if row["task_matches_v4"] else REVISED
