"""Milestones and minefields: required and forbidden events of a conversation (ToolSandbox, section 2.3)."""

from __future__ import annotations

from .goal import Goal, Score
from .tables import Snapshot

__all__ = ["Goal", "Score", "Snapshot"]
