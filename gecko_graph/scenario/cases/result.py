"""One conversation as a test: run, and what came of it in plain JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from ...conversation.agents import AgentLike
from ...conversation.graph import create_conversation
from ...conversation.messages import read_envelope
from ...conversation.milestones.constraints import Reached
from ...conversation.milestones.tables import MESSAGE, find_names, find_table
from ...conversation.users import UserLike
from ...masking import mask
from ...models.factory import ModelLike
from ...models.formatting import format_calls, format_single_change, text_of
from ...state import VERSION, JsonObject, Role
from ...tools.augment import augment
from ...values.changes import net_changes
from ...values.patch import booked_patch, fold_patches
from .. import Scenario

PASS_AT = 0.9
"""The similarity from which on a conversation counts as a success."""

NO_ONE: Mapping[Role, ModelLike] = {}


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A finished conversation. `record` is all of it as plain JSON; the rest is read from there."""

    record: JsonObject

    @property
    def score(self) -> float | None:
        """The similarity, from 0 to 1; None where nothing was scored."""
        return cast("float | None", self.record["score"]["similarity"])

    @property
    def milestones(self) -> list[Reached]:
        """The milestones with their similarity and the snapshot that each was matched to."""
        return cast("list[Reached]", self.record["score"]["milestones"])

    @property
    def passed(self) -> bool:
        """True where the similarity is `pass_at` or more; an unscored conversation passes where it ended by itself."""
        return is_passed(self.record)

    @property
    def transcript(self) -> str:
        """The conversation, a line for each message, call and change."""
        return "\n".join(self.lines())

    def lines(self, first: int = 0) -> list[str]:
        """Return the transcript's lines from a snapshot on, masked as in every report."""
        lines: list[str] = []
        for number, message in enumerate(self.record["messages"]):
            if number >= first:
                calls = [f"calls {each}" for each in message["calls"]]
                text = " ".join(filter(None, [message["text"].strip(), *calls]))
                lines.append(f"{number:>3} {message['sender']} -> {message['recipient']}: {text or '(nothing)'}")
                lines += [f"      {change}" for change in message["changes"]]
        return list(map(mask, lines))

    def explain(self) -> str:
        """Return what was missed, and the conversation from the first missed milestone on."""
        score = self.record["score"]
        milestones: list[Reached] = score["milestones"]
        missed = [number for number, each in enumerate(milestones) if each["similarity"] < 1]
        stepped = [each for each in score["minefields"] if each["similarity"] > 0]
        similarity = "unscored" if score["similarity"] is None else f"similarity {score['similarity']:.3f}"
        trial = f"trial {self.record['trial'] + 1}" if self.record["trial"] else ""
        held = ", ".join(filter(None, [self.record["case"], self.record["augmentation"], trial]))
        early = "" if score["end"] == "ended" else ": ".join(filter(None, [score["end"], score["reason"]]))
        lines = [f"{held}: {similarity}{'; the conversation ended early: ' if early else ''}{early}"]
        lines += _format_reached("missed milestone", [milestones[number] for number in missed])
        lines += _format_reached("minefield", stepped)
        lines += filter(None, [find_fault(self.record)])
        before = milestones[: missed[0]] if missed else []
        first = max((each["snapshot"] or 0 for each in before), default=0)
        return "\n".join([*lines, "", *self.lines(first)])


def find_fault(record: Mapping[str, Any]) -> str:
    """Return what the auditor found wrong with the user, not with the agent; empty where nothing is."""
    audit = record["score"].get("audit") or {}
    faults = [word for key, word in _FAULTS.items() if audit.get(key)]
    return f"the user {' and '.join(faults)}: {audit['reason']}" if faults else ""


_FAULTS = {"invented": "invented something", "broke_instructions": "broke the instructions"}


def _format_reached(what: str, reached: Sequence[Reached]) -> list[str]:
    """Return one line for all: `missed milestones told: 0.000, sent: 0.412 (message 3)`; none where there are none."""
    places = ("" if each["snapshot"] is None else f" (message {each['snapshot']})" for each in reached)
    named = [f"{each['id']}: {each['similarity']:.3f}{place}" for each, place in zip(reached, places, strict=True)]
    return [f"{what}{'s' if len(named) > 1 else ''} {', '.join(named)}"] if named else []


def is_passed(record: Mapping[str, Any]) -> bool:
    """Return whether a conversation is a success; an unscored one is where it was ended by its user."""
    score = record["score"]
    if score["similarity"] is None:
        return bool(score["end"] == "ended")
    return bool(score["similarity"] >= record["pass_at"] - 1e-9)


def run_case(  # noqa: PLR0913 - every one is a choice of its own, by keyword
    scenario: Scenario,
    agent: AgentLike,
    *,
    user: UserLike | None = None,
    model: ModelLike | None = None,
    models: Mapping[Role, ModelLike] = NO_ONE,
    augmentation: str | None = None,
    trial: int = 0,
    pass_at: float = PASS_AT,
) -> CaseResult:
    """Run a scenario's conversation.

    Args:
        scenario: The case, with a user.
        agent: As for `create_conversation`.
        user: In the place of the scenario's.
        model: Of the other roles.
        models: Of single roles.
        augmentation: One of `AUGMENTATIONS`; the needed tools are the scenario's `needs`.
        trial: Added to the seed.
        pass_at: From which similarity on it is a success.

    Raises:
        GeckoError: Agent, user or augmentation cannot be used.
    """
    toolkit = augment(scenario.tools, scenario.needs or scenario.tools.names, augmentation) if augmentation else None
    limits = scenario.limits.model_copy(update={"seed": scenario.limits.seed + trial})
    graph = create_conversation(
        agent, toolkit, scenario=scenario, user=user, model=model, models=models, context=limits
    )
    output = graph.invoke({})
    return CaseResult(
        {
            "v": VERSION,
            "case": scenario.name,
            "file": scenario.where,
            "categories": list(scenario.categories),
            "augmentation": augmentation or "",
            "trial": trial,
            "pass_at": pass_at,
            "idle": score_idle(scenario),
            "score": output["score"],
            "messages": describe_messages(output["messages"], output["world"]),
        }
    )


def score_idle(scenario: Scenario) -> float | None:
    """Return the score of an agent that does nothing and answers nothing."""
    tables = find_names(scenario.state, scenario.goal.tables)
    opening = {"sender": "user", "recipient": "agent", "content": "", "calls": [], "attempts": []}
    start = {**{name: find_table(scenario.state, name) for name in tables}, MESSAGE: [opening]}
    return scenario.goal.score([start])["similarity"]


def describe_messages(messages: Sequence[AnyMessage], world: JsonObject) -> list[JsonObject]:
    """Return the messages as plain JSON, each with its calls and the changes of the state that came with it."""
    described: list[JsonObject] = []
    state, done = world["start"], 0
    for message in messages:
        envelope = read_envelope(message)
        steps = world["log"][done : envelope["steps"]] if envelope["steps"] is not None else []
        done += len(steps)
        before = state
        state = fold_patches(state, [booked_patch(step["outcome"]) for step in steps if "outcome" in step])
        described.append(
            {
                "sender": envelope["sender"],
                "recipient": envelope["recipient"],
                "text": text_of(message),
                "calls": format_calls(message) if isinstance(message, AIMessage) else [],
                "error": isinstance(message, ToolMessage) and message.status == "error",
                "changes": [format_single_change(each) for each in net_changes(before, state)],
            }
        )
    return described
