"""GeckoEnv: a task as an environment, whose calls a `World` answers and whose goal the policy never sees."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from random import Random
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from ..context import GeckoContext
from ..conversation.channels import address
from ..conversation.milestones.tables import find_names
from ..conversation.score import build_trajectory, find_status
from ..conversation.tools import show_step
from ..conversation.user import Case
from ..errors import GeckoError
from ..models.formatting import text_of
from ..state import JsonObject, Step
from ..values.digest import clone, digest
from ..values.places import as_text
from ..world.world import World

Reward = Literal["terminal", "stepwise"]
MAX_STEPS = 30
REFUSED_COST = 0.05


class Stepped(NamedTuple):
    """What a step comes to."""

    observation: JsonObject
    reward: float
    done: bool
    info: JsonObject


def build_messages(world: World, words: str, answer: str | None) -> list[AnyMessage]:
    """Return a conversation: the user's words, a world's calls one by one, and the agent's answer if there is one."""
    messages: list[AnyMessage] = [address(HumanMessage(words), "user", "agent", steps=0)]
    steps = world.log
    for number, step in enumerate(steps, 1):
        call, shown = show_step(world, step)
        messages.append(address(AIMessage("", tool_calls=[call]), "agent", "tools", steps=number - 1))
        messages.append(address(shown, "tools", "agent", steps=number))
    if answer is not None:
        messages.append(address(AIMessage(answer), "agent", "user", steps=len(steps)))
    return messages
