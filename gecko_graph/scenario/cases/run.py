"""Run a scenario's conversation as a test."""

from __future__ import annotations

from dataclasses import replace

from ...conversation.agent import AgentLike
from ...conversation.augment import augment
from ...conversation.faults import FAULTS
from ...conversation.graph import create_conversation
from ...conversation.milestones.tables import MESSAGE, find_names, find_table
from ...conversation.result import CaseResult, read_conversation
from ...conversation.user import UserLike
from ...conversation.verdicts import keep_verdicts
from ...models.factory import Models, ModelsLike
from ...state import VERSION, JsonObject
from ...tools import Toolkit
from .. import Scenario


def run_case(
    scenario: Scenario,
    agent: AgentLike,
    *,
    user: UserLike | None = None,
    model: ModelsLike = None,
    augmentation: str | None = None,
    trial: int = 0,
) -> CaseResult:
    """Run a scenario's conversation; new verdicts of the role `claim_judge` are saved beside the scenario's file.

    Args:
        scenario: The case, with a user.
        agent: As for `create_conversation`.
        user: Replaces the scenario's user.
        model: The model of the other roles; or `Models`, by role.
        augmentation: One of `AUGMENTATIONS` or `FAULTS`; the needed tools are the scenario's `needs`.
        trial: Added to the seed.

    Raises:
        GeckoError: Agent, user or augmentation cannot be used.
    """
    toolkit = None
    if fault := next((each for each in FAULTS if each == augmentation), None):
        scenario = replace(scenario, faults=tuple(dict.fromkeys((*scenario.faults, fault))))
    elif augmentation:
        toolkit = augment(scenario.tools, scenario.needs or scenario.tools.names, augmentation)
    limits = scenario.limits.model_copy(update={"seed": scenario.limits.seed + trial})
    graph = create_conversation(agent, toolkit, scenario=scenario, user=user, model=model, context=limits)
    head = {**describe_case(scenario, augmentation or "", trial), "invents": find_invented(scenario.tools, model)}
    result = read_conversation(graph.invoke({}), {**head, "idle": score_idle(scenario)})
    keep_verdicts(scenario.where, result.record["score"])
    return result


def describe_case(scenario: Scenario, augmentation: str, trial: int) -> JsonObject:
    """Return the first fields of a conversation's record: its scenario and settings."""
    named = {"case": scenario.name, "file": scenario.where, "categories": list(scenario.categories)}
    tools = {"tools": sorted(scenario.tools.names), "invents": []}
    changed = dict.fromkeys(filter(None, (augmentation, *scenario.faults)))
    return {"v": VERSION, **named, "augmentation": ", ".join(changed), "trial": trial, **tools}


def find_invented(toolkit: Toolkit, model: ModelsLike) -> list[str]:
    """Return the tools whose answers are made up to fit a schema: without rules, and no model simulates them."""
    if Models.of(model).only_named("simulator").has("simulator"):
        return []
    known = {each.name for each in toolkit if each.contract or each.simulate or each.examples or each.opened}
    return sorted(set(toolkit.names) - known)


def score_idle(scenario: Scenario) -> float | None:
    """Return the score of an agent that makes no calls and writes no messages."""
    tables = find_names(scenario.state, scenario.goal.tables)
    opening = {"sender": "user", "recipient": "agent", "content": "", "calls": [], "attempts": []}
    start = {**{name: find_table(scenario.state, name) for name in tables}, MESSAGE: [opening]}
    return scenario.goal.score([start])["similarity"]
