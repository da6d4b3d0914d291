"""checklist: writes what must hold at the end of the turn (paper, section 3.4 and appendix A.6)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from ..channels import GeckoState
from ..contracts.expression import check_expression
from ..errors import TaskError
from ..models.ask import Ask, Reply, Where
from ..models.node import NodeScope
from ..models.roles import Checklist
from ..models.telling import cut, tell_conversation, tell_tools
from ..state import ChecklistItem
from ..toolkit import Toolkit
from ..turn import earlier, human_turns, task_of

MOST_ITEMS = 40
ITEM_CHARS = 1_000
KEYS = ("id", "description", "check")


def checklist(
    state: GeckoState, scope: NodeScope, *, toolkit: Toolkit
) -> Generator[list[Ask], list[Reply], dict[str, Any]]:
    """Take the caller's checklist, else ask the model for one. A checklist that nobody writes is never a success.

    Raises:
        TaskError: The given checklist is malformed.
        ContractError: A `check` of the given checklist cannot be parsed.
    """
    task = task_of(state.get("messages", []))
    if given := state.get("checklist"):
        return {"items": numbered(given), "items_failure": ""}
    (reply,) = yield [ask_checklist(state, task, toolkit, budget=scope.context.view_chars)]
    items = written(reply.value) if isinstance(reply.value, Checklist) else []
    failure = "" if items else f"there is no checklist: {reply.failure or 'the model wrote an empty one'}"
    return {"items": items, "items_failure": failure}


def ask_checklist(state: GeckoState, task: str, toolkit: Toolkit, *, budget: int) -> Ask:
    """The question what must hold at the end."""
    messages = state["messages"]
    return Ask(
        role="checklist",
        variables={
            "task": cut(task, budget=budget),
            "conversation": tell_conversation(earlier(messages), budget=budget // 2),
            "tools": tell_tools(((tool.name, tool.description) for tool in toolkit), budget=budget),
        },
        reply=Checklist,
        where=Where(turn=human_turns(messages) - 1, attempt=0, question=0),
    )


def written(reply: Checklist) -> list[ChecklistItem]:
    """The model's items, at most `MOST_ITEMS`, with ids."""
    told = [cut(item.description.strip(), budget=ITEM_CHARS) for item in reply.items if item.description.strip()]
    return [{"id": f"item-{number}", "description": text} for number, text in enumerate(told[:MOST_ITEMS], 1)]


def numbered(given: Sequence[Any]) -> list[ChecklistItem]:
    """The caller's items, checked; an item without an id gets one, and a bare text is a description.

    Raises:
        TaskError: It is no list, an item is wrong (see `item_of`), or two have one id.
        ContractError: A check cannot be parsed.
    """
    if not isinstance(given, list | tuple):
        raise TaskError(f"checklist is a {type(given).__name__}: give a list of items, such as ['the file exists']")
    items = [item_of(raw, number) for number, raw in enumerate(given, 1)]
    if len({item["id"] for item in items}) < len(items):
        raise TaskError("two items of the checklist have the same id: give each its own")
    return items


def item_of(raw: Any, number: int) -> ChecklistItem:
    """One of the caller's items, checked. A check under a misspelt key would silently be a question to the model.

    Raises:
        TaskError: It has no description, another key than those of `ChecklistItem`, or a check that is no text.
        ContractError: The check cannot be parsed.
    """
    entry = {"description": raw} if isinstance(raw, str) else raw
    if not isinstance(entry, dict) or not str(entry.get("description") or entry.get("check") or "").strip():
        raise TaskError(
            f"checklist item {number}: give it a description, for example {{'description': 'the file exists'}}"
        )
    if unknown := [key for key in entry if key not in KEYS]:
        raise TaskError(f"checklist item {number}: {unknown[0]!r} is no key of an item; keys: {', '.join(KEYS)}")
    item: ChecklistItem = {
        "id": str(entry.get("id") or f"item-{number}"),
        "description": str(entry.get("description") or entry["check"]),
    }
    if check := entry.get("check"):
        if not isinstance(check, str):
            raise TaskError(f"checklist item {item['id']}: its check is a {type(check).__name__}: write an expression")
        check_expression(check, where=f"checklist item {item['id']}")
        item["check"] = check
    return item
