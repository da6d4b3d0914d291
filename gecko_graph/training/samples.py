"""A sample: one call step of a conversation with its label, as a row (paper, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, NotRequired

from typing_extensions import TypedDict

from ..state import Json, JsonObject
from ..values.digest import digest


class LabelCall(TypedDict):
    """A call of a label."""

    name: str
    arguments: JsonObject


Sample = TypedDict(
    "Sample",
    {
        "v": int,
        "id": str,
        "tools": list[JsonObject],
        "messages": list[JsonObject],
        "label": list[LabelCall],
        "also": NotRequired[list[dict[str, dict[str, list[Json]]]]],
        "results": NotRequired[list[Json]],
        "text": NotRequired[str],
        "state": NotRequired[JsonObject],
        "goal": NotRequired[JsonObject],
        "from": list[Json],
    },
)
"""`tools` and `messages` are OpenAI's, up to the step. `label` is the step's calls, none if no call is right; `also`
has for each of them BFCL's allowed values, `{name: {argument: [value, ...]}}`, "" for one left out.
`results` are the calls' answers, one each; `text` the assistant's words; `state` the task state before the first
message; `goal` the conditions after the label's calls, as `milestones` (and `minefields`) of a scenario's file;
`from` where the row comes from, oldest first."""


def continues(other: Sample, sample: Sample) -> bool:
    """Return whether a sample is a later step of another's conversation, to the same goal."""
    length = len(sample["messages"])
    is_same = other.get("goal") == sample.get("goal") and other.get("state") == sample.get("state")
    return is_same and len(other["messages"]) > length and other["messages"][:length] == sample["messages"]


def goal_key(row: Mapping[str, Any]) -> str:
    return digest([row["goal"], row.get("state")]) if row.get("goal") else ""


class Bad(NamedTuple):
    """A row that cannot be used: `file:line`, and why."""

    where: str
    reason: str
