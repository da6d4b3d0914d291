"""bootstrapper: opens the turn, and makes the first task state where none is given (paper, appendix A.5)."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from typing import Any

from langgraph.types import Overwrite

from ..channels import GeckoState, Ledger
from ..errors import StateError
from ..models.ask import Ask, Reply, Where
from ..models.node import NodeScope
from ..models.roles import InitialState
from ..models.telling import cut, tell_conversation, tell_policy, tell_tools
from ..state import JsonObject
from ..task_state.digest import check_json, clone
from ..toolkit import Toolkit, ToolSpec
from ..turn import earlier, human_turns, next_turn, numbered, task_of
from ..view.view import focus_words, view

RUNTIME = "runtime_state"
"""The key under which runtime variables stand: cwd, session, current user (paper, appendix A.5: flat)."""


def bootstrapper(
    state: GeckoState, scope: NodeScope, *, toolkit: Toolkit
) -> Generator[list[Ask], list[Reply], dict[str, Any]]:
    """Make the state whole, and clear what belongs to the turn before.

    Raises:
        StateError: The given task state is no JSON object.
        TaskError: The conversation holds no task, or the given checklist is malformed.
        ContractError: A `check` of the given checklist cannot be parsed.
    """
    task = task_of(state.get("messages", []))
    items = numbered(state["checklist"]) if state.get("checklist") else None
    given = state.get("task_state")
    given = {} if given is None else given
    if not isinstance(given, dict):
        raise StateError(f"task_state is a {type(given).__name__}: give a JSON object (a dict with text keys)")
    check_json(given, what="task_state")
    whole = clone(given)
    if not is_whole(given, toolkit) and scope.has_model("bootstrapper"):
        (reply,) = yield [ask_state(state, task, toolkit, budget=scope.context.view_chars)]
        whole = completed(whole, reply)
    ledger: Ledger = {"turn": next_turn(state), "started_at": time.time(), "usage": {}, "asked": {}}
    return {
        "task_state": whole,
        "ledger": ledger,
        "round": -1,
        "lesson": None,
        "items": items,
        "items_failure": "",
        "attempts": Overwrite([]),
        "semantic": Overwrite([]),
    }


def is_whole(state: Mapping[str, Any], toolkit: Toolkit) -> bool:
    """True where a rule can tell that no runtime variable is missing, so that no model need be asked.

    Either the state has been completed before, or every tool has a contract and every key that these name is there.
    """
    if RUNTIME in state:
        return True
    if not state or not all(tool.contract for tool in toolkit):
        return False
    return toolkit.state_keys <= state.keys()


def completed(state: JsonObject, reply: Reply) -> JsonObject:
    """The state with what the model added. What was given is never changed; a reply that is of no use adds nothing."""
    if not isinstance(reply.value, InitialState):
        return state
    domain = {} if state else reply.value.domain
    whole: JsonObject = {**domain, **state, RUNTIME: reply.value.runtime_state or domain.get(RUNTIME) or {}}
    try:
        check_json(whole, what="the state")
    except StateError:
        return state
    return whole


def ask_state(state: GeckoState, task: str, toolkit: Toolkit, *, budget: int) -> Ask:
    """The question what the task's world looks like at the start."""
    given = state.get("task_state") or {}
    messages = state["messages"]
    return Ask(
        role="bootstrapper",
        variables={
            "task": cut(task, budget=budget),
            "conversation": tell_conversation(earlier(messages), budget=budget // 2),
            "policy": tell_policy(messages, budget=budget // 2),
            "tools": tell_tools(((tool.name, purpose(tool, whole=not given)) for tool in toolkit), budget=budget),
            "state": view(given, focus=focus_words(task), budget=budget) if given else "",
        },
        reply=InitialState,
        where=Where(turn=human_turns(messages) - 1, attempt=0, question=0),
    )


def purpose(tool: ToolSpec, *, whole: bool) -> str:
    """A tool's description; where the domain is to be made up, with what the tool takes and gives."""
    if not whole:
        return tool.description
    takes, gives = (", ".join((schema or {}).get("properties", {})) for schema in (tool.parameters, tool.result))
    told = [tool.description, f"Takes {takes}." if takes else "", f"Gives {gives}." if gives else ""]
    return " ".join(filter(None, told))
