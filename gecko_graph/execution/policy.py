"""Which calls of a plan a person is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import GeckoError
from ..toolkit.spec import ToolSpec
from .records import Approval, Preview, ReviewWord

MODES = ("writes", "all", "none")


@dataclass(frozen=True, slots=True)
class ReviewPolicy:
    """Which calls are reviewed, and how long an approval holds.

    Args:
        mode: `writes`, `all` or `none`.
        max_age_s: Seconds after which an approval must be given again.
    """

    mode: str = "writes"
    max_age_s: float = 3600.0

    @classmethod
    def load(cls, given: Any) -> ReviewPolicy:
        """Return the policy that a user has written. Raises GeckoError where it is none."""
        if isinstance(given, ReviewPolicy):
            return given
        if given not in MODES:
            raise GeckoError(f"review: expected one of {', '.join(MODES)}, or rules, got {given!r}")
        return cls(given)

    @property
    def may_ask(self) -> bool:
        """Whether any call may be asked about."""
        return self.mode != "none"

    def word(self, tool: ToolSpec) -> tuple[ReviewWord, str]:
        """Return what becomes of a call, and why."""
        if tool.real is None:
            return "refuse", "the tool has no real function"
        asked = self.mode == "all" or (self.mode == "writes" and not tool.reads)
        return (
            ("ask", "it changes something" if not tool.reads else "every call is reviewed") if asked else ("allow", "")
        )

    def is_fresh(self, approval: Approval, preview: Preview, *, now: float) -> bool:
        """Whether an approval is of this preview and young enough."""
        return approval["digest"] == preview["digest"] and now <= approval["at"] + self.max_age_s
