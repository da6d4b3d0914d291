"""A planner of single-turn tasks that needs no model: written calls."""

from __future__ import annotations

from collections.abc import Sequence

from gecko_graph.models.recorded import RecordedModel
from gecko_graph.state import JsonObject

NOTHING_MORE = "There is nothing more to call."
"""What written calls end with: nothing was recorded after them."""


def written(calls: Sequence[JsonObject], *, text: str) -> RecordedModel:
    """Return a planner that makes these calls in one message and then is done; without calls it gives the text."""
    messages: list[JsonObject] = [{"calls": list(calls)}, {"say": NOTHING_MORE}] if calls else [{"say": text}]
    return RecordedModel(turns=[{"planner": [messages]}])
