"""A rung of the ladder: its request, and its possible results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..context import GeckoContext
from ..contracts.run import ContractRun
from ..errors import GeckoError
from ..models.ask import AnyAsk, Reply, Where
from ..state import Call, JsonObject, Step, SupposedFact
from ..tools.real import Answer, Pass
from ..tools.spec import ToolSpec
from ..values.clock import clock
from ..values.digest import clone
from ..values.origins import Untrusted

__all__ = ["NO_ANSWER", "Answer", "Pass", "Reality", "Rung", "RungGenerator", "RungRequest", "RungResult", "clock"]


@dataclass(frozen=True, slots=True)
class Reality:
    """What is known of the task state without what the attempt's simulated calls have changed.

    `is_whole` is False where such a call has succeeded whose change no rung knows.
    """

    state: JsonObject
    is_whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RungRequest:
    """One validated call to be answered.

    Args:
        tool: The tool that is called.
        call: The call; its arguments passed the rules.
        state: The task state before the call; a user's rung is given a copy.
        facts: What earlier simulated reads supposed, by `fact_key`.
        context: The run's knobs.
        where: Turn and attempt, for the models; their questions are numbered where they are asked.
        has_simulator: True if a model can be asked for the role `simulator`.
        contract: The tool's contract on this call, with its preconditions met or unclear; None where it has none.
        unclear: Preconditions that could not be evaluated, each with the reason.
        reality: Of a read that runs for real, what is known without the attempt's own changes; None where it has none.
        steps: The turn's steps before the call.
        untrusted: Returns the places of the state that are only supposed.
        writes: Names of the turn's tools that may change something.
        earlier: What real calls of earlier turns have shown.
    """

    tool: ToolSpec
    call: Call
    state: JsonObject
    facts: Mapping[str, SupposedFact]
    context: GeckoContext
    where: Where
    has_simulator: bool = False
    contract: ContractRun | None = None
    unclear: tuple[str, ...] = ()
    reality: Reality | None = None
    steps: Sequence[Step] = ()
    untrusted: Untrusted = tuple
    writes: Sequence[str] = ()
    earlier: Sequence[SupposedFact] = ()

    @property
    def calls(self) -> list[JsonObject]:
        """The turn's calls before this one that ran, oldest first, each `{"name", "args", "status", "result"}`."""
        return clone(answered_calls(self.steps))


def answered_calls(steps: Sequence[Step]) -> list[JsonObject]:
    """Return the calls that ran, as checks and contracts see them: name, args, status, result."""
    ran = ((step["call"], step["outcome"]) for step in steps if "outcome" in step)
    return [
        {"name": call["name"], "args": call["args"], "status": outcome["status"], "result": outcome["result"]}
        for call, outcome in ran
    ]


NO_ANSWER = "the simulated tool gave no usable answer"
"""The error of a call that a rung failed to answer, and no other may."""

RungResult: TypeAlias = Answer | Pass
RungGenerator: TypeAlias = Generator[Sequence[AnyAsk], list[Reply], RungResult]


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of the ladder, which may answer a call.

    Args:
        name: Its name in contexts and records. The name of a built-in rung replaces that one.
        answer: A plain function of a `RungRequest`. It returns an `Answer` or a `Pass`, or is a generator that yields
            lists of `Ask` and `Work` and is sent their replies. Whatever waits goes into a `Work`.
        invents: True where its answers are made up: they are marked, kept as supposed facts, and an error changes
            nothing.
        simulated: False where the real tool runs. What goes wrong there is the tool's error: no other rung is tried.

    Raises:
        GeckoError: The name is empty, or `answer` is not such a function.
    """

    name: str
    answer: Callable[[RungRequest], RungResult | RungGenerator]
    invents: bool = False
    simulated: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not callable(self.answer):
            raise GeckoError(f"Rung({self.name!r}, {self.answer!r}): expected a name and a function")
        if inspect.iscoroutinefunction(self.answer):
            raise GeckoError(f"Rung {self.name!r}: answer must not be async: yield [Work(function=...)]")
