"""ToolSpec: what one tool says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ..contracts.contract import Contract
from ..state import Json, JsonObject

Effect = Literal["read", "write"]

NO_PARAMETERS: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class ToolExample:
    """A given answer of a read: for these arguments, this result."""

    args: JsonObject
    result: Json


@dataclass(frozen=True, slots=True)
class HttpBinding:
    """Where a tool of an OpenAPI document lives, and where each argument travels."""

    method: str
    path: str
    places: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Argument name to (`path`, `query`, `header`, `cookie` or `body`, name on the wire); no name for a whole body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """One tool. Immutable; `simulate` and `real` are never taken for each other.

    Args:
        name: The tool's name, as the planner calls it.
        description: What it does, for the planner.
        parameters: JSON Schema 2020-12 of the argument object.
        result: JSON Schema of a successful result; None where the source does not say.
        effect: `read` or `write`; None where the source does not say, which is treated as a write.
        contract: Pre- and postconditions, effects and result as a function of the task state (ToolGate, section 3.2).
        examples: Given answers for matching arguments.
        simulate: `simulate(state, **args)`: answers from a copy of the task state, which it may change.
        real: The real function. Never run as a simulation.
        opened: True where the user allowed `real` to be run during a rehearsal; only reads can be opened.
        binding: Where the tool lives in an OpenAPI document.
    """

    name: str
    description: str = ""
    parameters: JsonObject = field(default_factory=lambda: dict(NO_PARAMETERS))
    result: JsonObject | None = None
    effect: Effect | None = None
    contract: Contract | None = None
    examples: tuple[ToolExample, ...] = ()
    simulate: Callable[..., Any] | None = None
    real: Callable[..., Any] | None = None
    opened: bool = False
    binding: HttpBinding | None = None

    @property
    def reads(self) -> bool:
        """True if the tool is known to change nothing."""
        return self.effect == "read"
