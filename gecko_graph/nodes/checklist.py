"""checklist: writes what must hold at the end of the turn (paper, section 3.4 and appendix A.6)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from ..channels import GeckoState
from ..errors import TaskError
from ..models.ask import Ask, Reply, Where
from ..models.node import NodeScope
from ..models.roles import Checklist
from ..models.telling import tell_conversation
from ..state import ChecklistItem
from ..toolkit import Toolkit
from ..turn import earlier, human_turns, task_of
from ..world.expression import check_expression


def checklist(
    state: GeckoState, scope: NodeScope, *, toolkit: Toolkit
) -> Generator[list[Ask], list[Reply], dict[str, Any]]:
    """Take the caller's checklist, else ask the model for one. A checklist that nobody writes is never a success.

    Raises:
        TaskError: The given checklist is malformed.
        ContractError: A `check` of the given checklist cannot be parsed.
    """
    task = task_of(state.get("messages", []))
    given = state.get("checklist")
    if given:
        return {"items": numbered(given), "items_failure": ""}
    messages = state["messages"]
    ask = Ask(
        role="checklist",
        variables={
            "task": task,
            "conversation": tell_conversation(earlier(messages), budget=scope.context.view_chars // 2),
            "tools": "\n".join(f"{tool.name}: {tool.description}" for tool in toolkit)[: scope.context.view_chars],
        },
        reply=Checklist,
        where=Where(turn=human_turns(messages) - 1, attempt=0, question=0),
    )
    (reply,) = yield [ask]
    items: list[ChecklistItem] = []
    if isinstance(reply.value, Checklist):
        items = [{"id": f"item-{n}", "description": item.description} for n, item in enumerate(reply.value.items, 1)]
    failure = "" if items else f"there is no checklist: {reply.failure or 'the model wrote an empty one'}"
    return {"items": items, "items_failure": failure}


def numbered(given: Sequence[Any]) -> list[ChecklistItem]:
    """The caller's items, checked; an item without an id gets one, and a bare text is a description.

    Raises:
        TaskError: An item has no description, or two have one id.
        ContractError: A check cannot be parsed.
    """
    items: list[ChecklistItem] = []
    for number, raw in enumerate(given, 1):
        entry = {"description": raw} if isinstance(raw, str) else raw
        if not isinstance(entry, dict) or not str(entry.get("description") or entry.get("check") or "").strip():
            raise TaskError(f"checklist item {number}: give it a description, for example {{'description': 'the file exists'}}")
        item: ChecklistItem = {
            "id": str(entry.get("id") or f"item-{number}"),
            "description": str(entry.get("description") or entry["check"]),
        }
        if entry.get("check"):
            check_expression(str(entry["check"]), where=f"checklist item {item['id']}")
            item["check"] = str(entry["check"])
        items.append(item)
    if len({item["id"] for item in items}) < len(items):
        raise TaskError("two items of the checklist have the same id: give each its own")
    return items
