"""What a rung is asked, and what it may say."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..context import GeckoContext
from ..models.ask import AnyAsk, Reply, Where
from ..state import Call, CallStatus, Json, JsonObject, Patch, SupposedFact
from ..toolkit.spec import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class RungRequest:
    """One validated call that wants an answer.

    Args:
        tool: The tool that is called.
        call: The call; its arguments passed the rules.
        state: The task state before the call. Shared: never change it in place.
        facts: What earlier simulated reads supposed, by `fact_key`.
        context: The run's knobs.
        where: Turn and attempt, for the models; their questions are numbered where they are asked.
        has_simulator: True if a model can be asked for the role `simulator`.
    """

    tool: ToolSpec
    call: Call
    state: JsonObject
    facts: Mapping[str, SupposedFact]
    context: GeckoContext
    where: Where
    has_simulator: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """A rung's answer. `patch` is None where the rung does not know what the call changes."""

    status: CallStatus
    result: Json
    patch: Patch | None = None


@dataclass(frozen=True, slots=True)
class Pass:
    """A rung that cannot answer, and why."""

    reason: str


RungResult: TypeAlias = Answer | Pass
RungGenerator: TypeAlias = Generator[Sequence[AnyAsk], list[Reply], RungResult]
Rung: TypeAlias = Callable[[RungRequest], RungResult | RungGenerator]


def clock(state: Any) -> str | None:
    """The task state's clock: its `now`, or its runtime state's; None where it has none."""
    if not isinstance(state, dict):
        return None
    runtime = state.get("runtime_state")
    for place in (state, runtime if isinstance(runtime, dict) else {}):
        if isinstance(place.get("now"), str):
            return str(place["now"])
    return None
