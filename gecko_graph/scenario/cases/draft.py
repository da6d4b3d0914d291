"""A case from one conversation: its user, what it has come to as milestones, and a sentence on each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from ...conversation.channels import find_user_texts
from ...conversation.derive import SUCCESS, describe_milestones, score_conversation
from ...conversation.milestones.format import KINDS, MilestoneEntry, build_goal
from ...conversation.milestones.measures import mentions
from ...conversation.user import CLOCK
from ...errors import GeckoError
from ...masking import mask
from ...models.formatting import cut
from ...state import VERSION, Json, JsonObject, Step
from ...tools import Toolkit
from ...values.documents import format_document
from ...values.places import map_texts
from ...world.provenance import is_planned

INVENTED = ("schema", "model")
"""Rungs whose answers nothing stands behind: whoever calls again may be told something else."""
LONGEST_VALUE = 80

_CALLS_ONLY = "The milestones only say which calls are made"
_INVENTED = f"""\
{_CALLS_ONLY}, since nothing knows what these tools do: {{names}}.
What they answered is invented. Let their own functions answer (gecko_graph.tools.with_data, docs/conversations.md),
or give them a contract or simulate=. Then make the case again: gecko-graph new-case ... --from THIS FILE."""


class Draft(NamedTuple):
    """A case that can be written.

    Args:
        head: The case without its milestones.
        milestones: Those that its own conversation meets.
        obstacle: Why they do not say all that has been shown; empty where they do.
    """

    head: JsonObject
    milestones: list[JsonObject]
    obstacle: str = ""

    def format(self) -> str:
        """Return the file's text: each milestone below the sentence that explains it."""
        text = "# From one conversation, by gecko-graph new-case. It is yours: edit it (docs/conversations.md).\n"
        text += "".join(f"# {_plain(line)}\n" for line in self.obstacle.splitlines()) + _format(self.head)
        for number, entry in enumerate(self.milestones):
            text += "" if number else "milestones:\n"
            text += f"  # {_plain(explain(entry))}\n" + re.sub(r"(?m)^(?=.)", "  ", _format([entry]))
        return text


def _format(value: Json) -> str:
    return format_document(map_texts(value, mask, keys=True), ".yaml")


def _plain(text: str) -> str:
    """Return a text that a comment can hold."""
    return mask("".join(letter if letter.isprintable() else " " for letter in text))


def draft_case(toolkit: Toolkit, conversation: Mapping[str, Any], *, goal: str, tools: Json) -> Draft:
    """Return a conversation as a case: what its user has said, and milestones that it meets.

    Args:
        toolkit: Its tools.
        conversation: What `create_conversation` has returned.
        goal: What the user wants; the first message where it is empty.
        tools: The tools as the file is to name them.

    Raises:
        GeckoError: The user has said nothing.
    """
    opening, *lines = find_user_texts(conversation["messages"]) or [""]
    if not opening.strip():
        raise GeckoError("no case: the user has said nothing")
    user = {"goal": goal or opening, "opening": opening, "script": [*lines, {"end": True}]}
    world = conversation["world"]
    head = {"version": VERSION, "name": name_case(goal or opening), "tools": tools, "state": world["start"]}
    score = conversation.get("score") or {"end": "ended", "reason": ""}
    if score["end"] != "ended":
        reason = ": ".join(filter(None, [score["end"], score["reason"]]))
        return Draft({**head, "user": user}, [], f"The conversation ended early ({reason}): hold one that goes well.")
    milestones, obstacle = _find_milestones(toolkit, conversation)
    return Draft({**head, "user": user}, milestones, obstacle)


def _find_milestones(toolkit: Toolkit, conversation: Mapping[str, Any]) -> tuple[list[JsonObject], str]:
    log: Sequence[Step] = conversation["world"]["log"]
    invented = {step["call"]["name"] for step in log if is_planned(step) and step["outcome"]["rung"] in INVENTED}
    if invented:
        names = ", ".join(sorted(invented))
        return list(_find_calls(conversation)), _INVENTED.format(names=names)
    try:
        milestones = describe_milestones(toolkit, conversation)
    except GeckoError as error:
        return list(_find_calls(conversation)), f"{_CALLS_ONLY}: {error}"
    goal = build_goal([MilestoneEntry.model_validate(each) for each in milestones], [], conversation["world"]["start"])
    score = score_conversation(goal, toolkit, conversation)
    missed = [each["id"] for each in score["milestones"] if each["similarity"] < SUCCESS]
    return milestones, f"Its own conversation does not meet {', '.join(missed)}: edit it." if missed else ""


def _find_calls(conversation: Mapping[str, Any]) -> Iterator[JsonObject]:
    """Yield a milestone for each call that worked, without arguments that come from results alone."""
    said, results = find_user_texts(conversation["messages"]), list[Json]()
    for number, step in enumerate(conversation["world"]["log"], 1):
        if is_planned(step) and step["call"]["name"] != CLOCK:
            args = {
                name: value
                for name, value in step["call"]["args"].items()
                if mentions(said, value, {}) == 1.0 or mentions(results, value, {}) < 1.0
            }
            call = {"name": step["call"]["name"], "args": args}
            yield {"id": f"{call['name']}_{number}", "after": [], "call": call, "unchanged": []}
            results.append(step["outcome"]["result"])


def name_case(goal: str) -> str:
    """Return a name for a case: the first words of its goal."""
    return "-".join(re.findall(r"\w+", goal.casefold())[:6]) or "case"


def find_free(name: str) -> Path:
    """Return a file in the working folder for a case of this name, with a number where there is one already."""
    names = (f"{name}{f'-{number}' if number > 1 else ''}.gecko.yaml" for number in count(1))
    return next(file for each in names if not (file := Path(each)).exists())


# in words -----------------------------------------------------------------------------------------------------------

_CHANGES = {
    "snapshot": "the table {at} is exactly {rows}",
    "addition": "the table {at} has gained exactly {rows}",
    "removal": "the table {at} has lost exactly {rows}",
    "update": "of the table {at} exactly this has changed: {rows}",
    "includes": "the table {at} has come to hold {rows}",
    "lacks": "the table {at} no longer holds {rows}",
}


def explain(entry: JsonObject) -> str:
    """Return one sentence on what a milestone wants, as a file has it."""
    begin = (
        "At the end " if entry.get("last") else f"After {' and '.join(entry['after'])} " if entry.get("after") else ""
    )
    parts = [*_explain_calls(entry), *_explain_changes(entry), *_explain_message(entry.get("message") or {})]
    parts += ["nothing else has changed"] if entry.get("last") and entry.get("unchanged") else []
    sentence = begin + ", and ".join(parts) + "."
    return sentence[0].upper() + sentence[1:]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _explain_calls(entry: JsonObject) -> Iterator[str]:
    for call in _list(entry.get("call")):
        yield f"the agent calls {call['name']}{_show(call.get('args', {}))}"


def _explain_changes(entry: JsonObject) -> Iterator[str]:
    for table in _list(entry.get("state")):
        kind = next(kind for kind in KINDS if kind in table)
        yield _CHANGES[kind].format(at=table["at"], rows=" and ".join(map(_show, table[kind])))


def _explain_message(message: JsonObject) -> Iterator[str]:
    if "mentions" in message:
        yield f"the answer names {', '.join(map(_show, message['mentions']))}"
    if claims := message.get("claims"):
        yield f"the answer {' and '.join(f'{kind} {_show(text)}' for each in claims for kind, text in each.items())}"
    if "seen" in message:
        yield f"a tool or the user has named {', '.join(map(_show, message['seen']))}"
    if "unseen" in message:
        yield "the answer names no figure that neither the user nor a tool has named"
    if message.get("sender") == "agent" and not message.keys() & {"mentions", "claims", "unseen"}:
        yield "the agent answers"


def _show(value: Json) -> str:
    if isinstance(value, dict):
        return f"({', '.join(f'{name} = {_show(each)}' for name, each in value.items())})"
    return cut(json.dumps(value, ensure_ascii=False), budget=LONGEST_VALUE)
