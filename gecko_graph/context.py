"""The knobs of one run; LangGraph Studio shows them as a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from .errors import GeckoError, did_you_mean

LADDER = ("real", "contract", "python", "derived", "example", "model", "schema")
BAND = (0.2, 0.8)


class GeckoContext(BaseModel):
    """Knobs of one run, passed as `context=GeckoContext(...)`; each has a default.

    LangGraph does not store the context in checkpoints: pass the same one again to resume a run. An embedded graph sees
    its parent's context. A parent whose `context_schema` is a subclass of GeckoContext passes these knobs down; with
    any other context the embedded graph uses the knobs that it was created with.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str | None = Field(
        default=None,
        description="Model of every role in this run, instead of the graph's models: 'provider:name'.",
    )
    # a field with a bare default looks required to a type checker without Pydantic's plugin: defaults by keyword
    max_retries: int = Field(default=3, ge=0, description="Retries after the first round (paper, section 6.1: 3).")
    parallel_attempts: int = Field(default=1, ge=1, le=64, description="Attempts that run in parallel in each round.")
    band: tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(le=1)]] = Field(
        default=BAND,
        description="Interval of a decision model's probabilities, ends included, that leaves a question open; "
        "above it the answer is yes, below it no.",
    )
    max_steps: int = Field(default=20, ge=1, description="Most tool calls in one attempt, including refused ones.")
    target_score: float = Field(
        default=1.0, ge=0, le=1, description="Retries stop once this share of checklist items succeeds."
    )
    semantic_validation: bool = Field(
        default=True, description="Ask a model whether arguments make sense if no rule decides it."
    )
    planner_view: Literal["tools", "summary"] = Field(
        default="tools",
        description="What the planner sees: the tools' results only, or also a summary of the task state.",
    )
    gate: Literal["note", "mask", "strict"] = Field(
        default="note",
        description="Tools whose preconditions fail in this task state for all arguments: noted for the planner, "
        "hidden from it, or also hidden and refused if the preconditions cannot be evaluated.",
    )
    max_tools: int = Field(
        default=64, ge=1, description="Most tools shown to the planner; of a larger toolkit the relevant ones."
    )
    top_k: int = Field(default=10, ge=1, description="Number of tools that a search returns for a task.")
    selection: Literal["greedy", "sample"] = Field(
        default="greedy",
        description="How `create_toolgate` chooses a tool for a need: the best, or one drawn by probability.",
    )
    ladder: tuple[str, ...] = Field(
        default=LADDER, min_length=1, description="Names of the rungs that may answer a call, in order of preference."
    )
    reads: Literal["simulated", "real"] = Field(
        default="simulated",
        description="Whether declared read-only tools run for real; `open` lists such tools by name.",
    )
    unclear: Literal["pass", "refuse"] | None = Field(
        default=None,
        description="Treatment of a call whose precondition cannot be evaluated; "
        "by default the call is refused if its contract answers it, and marked if another rung does.",
    )
    parallel_calls: Literal["serial", "snapshot", "strict"] = Field(
        default="serial", description="How parallel tool calls of one planner message are applied to the task state."
    )
    simulation: Literal["fused", "separate"] = Field(
        default="fused", description="Result and state change in one model reply, or in two (as in the paper)."
    )
    view_chars: int = Field(default=6_000, ge=500, description="Most characters of the task state in one prompt.")
    token_budget: int | None = Field(default=None, ge=1, description="Most tokens of one turn, all attempts included.")
    time_budget_s: float | None = Field(
        default=None,
        gt=0,
        description="Longest duration of one turn in seconds, all attempts and model replies included.",
    )
    undo_s: float = Field(
        default=0.2,
        ge=0,
        description="Seconds to search for calls that undo a write, for each write that a person is asked to approve; "
        "0 to skip the search.",
    )
    tool_timeout_s: float = Field(default=30.0, gt=0, description="Timeout of one Python tool in seconds.")
    seed: int = Field(default=0, description="Seed of generated values: answers from schemas, new identifiers.")

    @field_validator("band")
    @classmethod
    def _in_order(cls, band: tuple[float, float]) -> tuple[float, float]:
        if not band[0] <= band[1]:
            raise ValueError("give the lower end first")
        return band

    if not TYPE_CHECKING:  # type checkers keep Pydantic's signature of the fields

        def __init__(self, **values: Any) -> None:
            """Validate the knobs.

            Raises:
                GeckoError: A knob is unknown or has an invalid value; the message names each.
            """
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise GeckoError("; ".join(_format_mistake(found, type(self)) for found in error.errors())) from None

        __init__.__pydantic_base_init__ = True  # `model_validate` bypasses this method and raises Pydantic's own error


def _format_mistake(found: Mapping[str, Any], kind: type[GeckoContext]) -> str:
    name, known = ".".join(map(str, found["loc"])), kind.model_fields
    if found["type"] == "extra_forbidden":
        return (
            f"{kind.__name__}: unknown knob {name!r}{did_you_mean(name, known, cutoff=0.5)}; knobs: {', '.join(known)}"
        )
    return f"{kind.__name__}: {name}: {found['msg'].removeprefix('Input ')}, got {found['input']!r}"


def context_of(given: Any, default: GeckoContext) -> GeckoContext:
    """Return `given` if it is a GeckoContext, else the knobs that the graph was created with.

    The context of an embedded graph is its parent's: possibly None or of another type.
    """
    return given if isinstance(given, GeckoContext) else default
