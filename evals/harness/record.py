"""What the runner, the journal and the figures speak of: a case and what it came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from gecko_graph.state import JsonObject

Tools = Literal["real", "simulated", "none"]
"""Whose answers a score was reached with: the real tools', simulated ones, or no tool's at all."""

Status = Literal["done", "failed", "unreached"]
"""What became of a case: `failed` where it raised, `unreached` where a model did not answer (it is run again)."""

REFUSALS = "refusals"
"""The key of a record's values that says why a model's endpoint refused some of its questions."""


class EvalError(Exception):
    """The user's mistake: a missing data set, an option that makes no sense. Exit code 2; it says what to do."""


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to measure.

    Args:
        id: Its name, unique in the suite and the same in every run.
        data: Whatever `run_case` needs; it is not written down.
        group: Its category, for tables and for `--only`.
        facts: What is known of it before it runs, as plain JSON; kept with its record, also where it fails.
        unit: What `--limit` counts: cases of one unit are taken or left together (the arms of one task); else the id.
        tools: Whose tools answer it, where not the suite's.
    """

    id: str
    data: Any = None
    group: str = ""
    facts: JsonObject = field(default_factory=dict)
    unit: str = ""
    tools: Tools | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """What a case came to.

    Args:
        id: The case's.
        group: The case's.
        facts: The case's.
        status: `done`, `failed` or `unreached`.
        reason: Why it is not done; else empty.
        seconds: How long it took.
        tools: Whose answers it was reached with.
        values: What `run_case` returned; empty where it is not done.
    """

    id: str
    group: str
    facts: JsonObject
    status: Status
    reason: str
    seconds: float
    tools: Tools
    values: JsonObject

    @property
    def done(self) -> bool:
        """True if the case ran to its end."""
        return self.status == "done"
