"""What later turns know of an earlier rehearsal: its answer's metadata, read back as calls with their results."""

from __future__ import annotations

from langchain_core.messages import AnyMessage


def rung_of(message: AnyMessage) -> str | None:
    """The rung behind a remembered result, "" for a remembered call; None for every other message."""
    told = message.response_metadata.get("gecko")
    rung = told.get("rung") if isinstance(told, dict) else None
    return rung if isinstance(rung, str) else None
