"""A sample: one call step of a conversation with its label, as a row (paper, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, NotRequired

from typing_extensions import TypedDict

from ..state import Json, JsonObject
from ..values.digest import digest


class LabelCall(TypedDict):
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
"""One call step of a conversation.

`tools` and `messages` are OpenAI's, up to the step. `label` has the step's calls, none if no call is right; `also` has
BFCL's allowed values for each call, `{name: {argument: [value, ...]}}`, "" for an optional one. `results` are the
calls' answers, one each; `text` is the assistant's message; `state` the task state before the first message; `goal` the
conditions after the label's calls, as `milestones` (and `minefields`) of a scenario file; `from` the row's history,
oldest first.
"""


def continues(other: Sample, sample: Sample) -> bool:
    """Return whether a sample is a later step of another sample's conversation, with the same goal."""
    length = len(sample["messages"])
    is_same = other.get("goal") == sample.get("goal") and other.get("state") == sample.get("state")
    return is_same and len(other["messages"]) > length and other["messages"][:length] == sample["messages"]


def goal_key(row: Mapping[str, Any]) -> str:
    return digest([row["goal"], row.get("state")]) if row.get("goal") else ""


class Bad(NamedTuple):
    """An unusable row: `file:line`, and the reason."""

    where: str
    reason: str
