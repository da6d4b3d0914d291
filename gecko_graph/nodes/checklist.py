"""checklist: writes what must be true at the end of the turn (paper, section 3.4 and appendix A.6)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ..events import event
from ..models.ask import Ask, QuestionId, Reply
from ..models.focus import focus_words
from ..models.formatting import cut, format_conversation, format_policy, format_steps, text_of
from ..models.node import NodeScope
from ..models.roles import Checklist
from ..state import ChecklistItem
from ..tools import Toolkit
from ..tools.descriptions import format_tools, pick_tools
from ..world.channels import GeckoState
from ..world.turn import earlier, human_turns, task_of
from .checks import find_wanted, settle

MOST_ITEMS = 40
ITEM_CHARS = 1_000
HOW = "; give `checklist` with the task, or a model for this role"


def checklist(
    state: GeckoState, scope: NodeScope, *, toolkit: Toolkit
) -> Generator[list[Ask], list[Reply], dict[str, Any]]:
    """Ask the model for a checklist, in parallel to the first attempt. A missing one never counts as success.

    The model may write an empty checklist for a message that asks for nothing ("thanks!"). With real reads it runs
    after the first round, and only if an attempt of that has to be judged.
    """
    task = task_of(state["messages"])
    kept = state["bookkeeping"]
    if kept["real"]:
        reads, wanted = {tool.name for tool in toolkit if tool.reads}, find_wanted(toolkit, task)
        if all(settle(each, state, reads, wanted) for each in kept["attempts_to_judge"]):
            return {}
    (reply,) = yield [build_ask(state, task, toolkit, budget=scope.context.view_chars)]
    items = read_items(reply.value) if isinstance(reply.value, Checklist) else []
    reasons = "; ".join(filter(None, [reply.failure, kept["items_failure"]]))
    failure = "" if isinstance(reply.value, Checklist) else f"no checklist: {reasons}{HOW if reply.absent else ''}"
    scope.emit(event("gecko.checklist", attempt=0, items=items, failure=failure))
    return {"items": items, "bookkeeping": {"items_failure": failure}}


def build_ask(state: GeckoState, task: str, toolkit: Toolkit, *, budget: int) -> Ask:
    messages, kept = state["messages"], state["bookkeeping"]
    made = [*kept["replayed"], *(step for each in kept["attempts_to_judge"] for step in each["steps"])]
    real = [step for step in made if "outcome" in step and not step["outcome"]["simulated"]]
    focus = focus_words(task, *(text_of(each) for each in earlier(messages)[-2:]))
    return Ask(
        role="checklist",
        variables={
            "task": cut(task, budget=budget),
            "conversation": format_conversation(earlier(messages), budget=budget // 2),
            "policy": format_policy(messages, budget=budget // 2),
            "tools": format_tools(pick_tools(toolkit, kept["offered_tools"]), focus=focus),
            "real": format_steps(real, budget=budget // 2) if real else "",
        },
        reply=Checklist,
        where=QuestionId(turn=human_turns(messages) - 1, attempt=0, question=0),
    )


def read_items(reply: Checklist) -> list[ChecklistItem]:
    """Return the model's items, at most `MOST_ITEMS`, with ids."""
    texts = [cut(item.description.strip(), budget=ITEM_CHARS) for item in reply.items if item.description.strip()]
    items = enumerate(texts[:MOST_ITEMS], 1)
    return [{"id": f"item-{number}", "description": text, "by": "model"} for number, text in items]
