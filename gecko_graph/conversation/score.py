"""score: what a finished conversation is worth, and whether its user was to blame."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ..models.ask import AnyAsk, Ask, Reply, Where
from ..models.formatting import format_conversation
from ..models.node import NodeScope
from ..models.roles import AuditReply
from ..models.usage import add_usage
from ..tools import Toolkit
from .channels import ConversationState
from .messages import read_envelope, select_view
from .milestones.goal import Goal
from .trajectory import build_trajectory
from .user import CLOCK
from .users import UserEntry, find_leaks

CONVERSATION_CHARS = 40_000


def score(
    state: ConversationState, scope: NodeScope, *, goal: Goal, tables: list[str], toolkit: Toolkit, spec: UserEntry
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Score the conversation by its milestones, and have the auditor look at the user where there is one."""
    messages, world = state.get("messages", []), state["world"]
    found = goal.score(build_trajectory(messages, world, tables, toolkit))
    calls = [step for step in world["log"] if step["call"]["name"] != CLOCK]
    failed = sum("outcome" not in step or step["outcome"]["status"] == "error" for step in calls)
    result: Any = {
        **found,
        "end": state.get("end") or "max_messages",
        "reason": state.get("reason", ""),
        "turns": sum(read_envelope(message)["sender"] != "system" for message in messages),
        "calls": len(calls),
        "failed_calls": failed,
        "races": state.get("races", 0),
        "leaks": find_leaks(state, spec.must_not_say),
        "usage": add_usage(state.get("usage", {}), world["usage"]),
    }
    if scope.has_model("auditor"):
        (reply,) = yield [ask_audit(state, spec)]
        result["usage"] = add_usage(result["usage"], {"auditor": reply.usage})
        if isinstance(reply.value, AuditReply):
            result["audit"] = reply.value.model_dump()
    return {"score": result}


def ask_audit(state: ConversationState, spec: UserEntry) -> Ask:
    """Build the question to the auditor: what the user was given, and the messages between him and the agent."""
    shown = format_conversation(select_view(state["messages"], "user"), budget=CONVERSATION_CHARS)
    variables = {
        "goal": spec.goal,
        "knows": "\n".join(spec.knows),
        "must_not_say": "\n".join(spec.must_not_say),
        "conversation": shown,
    }
    return Ask("auditor", variables, AuditReply, Where())
