"""Draft a case from one conversation: its user, its result as milestones, and a sentence about each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...conversation.channels import find_user_texts
from ...conversation.derive import describe_milestones
from ...conversation.milestones.format import MilestoneEntry, explain, find_problems
from ...conversation.milestones.measures import mentions
from ...conversation.user import CLOCK
from ...errors import GeckoError
from ...masking import mask
from ...state import VERSION, Json, JsonObject
from ...tools import Toolkit
from ...values.documents import format_document
from ...values.places import map_texts
from ...world.provenance import is_planned

INVENTED = ("schema", "model")
"""Rungs whose answers have no source."""

_UNKNOWN = (
    "the answers of {names} are invented.\nLet the tools' own functions answer (gecko_graph.tools.with_data, "
    "docs/conversations.md), or give them a contract\nor simulate=; then create the case again with --from THIS FILE."
)


class CaseDraft(NamedTuple):
    """A case to write: `head` is all but its milestones, `obstacle` says why these are missing or weak."""

    head: JsonObject
    milestones: list[JsonObject]
    obstacle: str

    def format(self) -> str:
        """Return the file's text, each milestone below a sentence that explains it."""
        notes = ["From one conversation, by gecko-graph new-case. Edit it freely.", *self.obstacle.splitlines()]
        text = "".join(f"# {_plain(line)}\n" for line in notes) + _format(self.head)
        text += "milestones:\n" if self.milestones else ""
        return text + "".join(f"# {_plain(explain(entry))}\n{_format([entry])}" for entry in self.milestones)


def _format(value: Json) -> str:
    return format_document(map_texts(value, mask, keys=True), ".yaml")


def _plain(text: str) -> str:
    """Return a text without characters that a YAML comment cannot contain."""
    return mask("".join(letter if letter.isprintable() else " " for letter in text))


def draft_case(toolkit: Toolkit, conversation: Mapping[str, Any], *, goal: str, tools: Json) -> CaseDraft:
    """Return a conversation (an output of `create_conversation`) as a case: the user's messages and the result.

    `goal` is the user's goal, by default the first message; `tools` is the file's `tools` entry. Raises GeckoError if
    the user has said nothing.
    """
    if not (said := find_user_texts(conversation["messages"])):
        raise GeckoError("no case: the user has said nothing")
    name = "-".join(re.findall(r"\w+", (goal or said[0]).casefold())[:6]) or "case"
    user = {"goal": goal or said[0], "opening": said[0], "script": [*said[1:], {"end": True}]}
    head = {"version": VERSION, "name": name, "tools": tools, "state": conversation["world"]["start"], "user": user}
    score = conversation.get("score", {"end": "ended"})
    if score["end"] != "ended":
        return CaseDraft(head, [], f"No milestones: the conversation ended early ({score['end']}: {score['reason']}).")
    try:
        return CaseDraft(head, _derive(toolkit, conversation), "")
    except GeckoError as error:
        return CaseDraft(head, [*_find_calls(conversation)], f"The milestones only name the calls: {error}")


def _derive(toolkit: Toolkit, conversation: Mapping[str, Any]) -> list[JsonObject]:
    """Return milestones that the conversation meets. Raises GeckoError with the obstacle."""
    answered = [step for step in conversation["world"]["log"] if is_planned(step)]
    if names := {step["call"]["name"] for step in answered if step["outcome"]["rung"] in INVENTED}:
        raise GeckoError(_UNKNOWN.format(names=", ".join(sorted(names))))
    start, milestones = conversation["world"]["start"], describe_milestones(toolkit, conversation)
    entries = [MilestoneEntry.model_validate(each) for each in milestones]
    if problems := [*find_problems(entries, start, part="milestones")]:
        raise GeckoError("\n".join(problems))
    return milestones


def _find_calls(conversation: Mapping[str, Any]) -> Iterator[JsonObject]:
    """Yield a milestone for each successful call, without arguments that only results mention."""
    said, results = find_user_texts(conversation["messages"]), list[Json]()
    for number, step in enumerate(conversation["world"]["log"], 1):
        name, args = step["call"]["name"], step["call"]["args"]
        if is_planned(step) and name != CLOCK:
            own = {key for key, one in args.items() if mentions(said, one, {}) == 1 or mentions(results, one, {}) < 1}
            call = {"name": name, "args": {key: value for key, value in args.items() if key in own}}
            yield {"id": f"{name}_{number}", "after": [], "call": call, "unchanged": []}
            results.append(step["outcome"]["result"])
