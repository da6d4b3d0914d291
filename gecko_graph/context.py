"""The knobs of one run. LangGraph Studio shows them as a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from .errors import GeckoError, did_you_mean

LADDER = ("real", "contract", "python", "derived", "example", "model", "schema")
BAND = (0.2, 0.8)


class GeckoContext(BaseModel):
    """Per-run knobs, passed as `context=GeckoContext(...)`; every one has a default that works.

    LangGraph keeps no context in its checkpoints: a run that is resumed is given the same one again. An embedded graph
    sees its parent's: `class MyContext(GeckoContext)` as the parent's `context_schema` hands the knobs down beside
    fields of its own; a context of any other class leaves the graph with the knobs it was created with.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str | None = Field(
        default=None,
        description="The model of every role in this run, in the place of the graph's: 'provider:name'.",
    )
    # defaults by name: a type checker without Pydantic's plugin takes a field with a bare one for required
    max_retries: int = Field(default=3, ge=0, description="Rounds after the first one (paper, section 6.1: 3).")
    parallel_attempts: int = Field(default=1, ge=1, le=64, description="Attempts that run at once in each round.")
    band: tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(le=1)]] = Field(
        default=BAND,
        description="Probabilities of a decision model that leave a question open, both ends included; "
        "what is above is yes, what is below no.",
    )
    max_steps: int = Field(default=20, ge=1, description="Tool calls in one attempt, refused ones included.")
    target_score: float = Field(
        default=1.0, ge=0, le=1, description="Retrying stops at this share of successful items."
    )
    semantic_validation: bool = Field(
        default=True, description="Ask a model about arguments whose meaning no rule decides."
    )
    planner_view: Literal["tools", "summary"] = Field(
        default="tools",
        description="What the planner sees: what real tools would show, or a summary of the task state as well.",
    )
    gate: Literal["note", "mask", "strict"] = Field(
        default="note",
        description="Tools that the task state does not admit, whatever their arguments: noted for the planner, "
        "left out of its tools, or also left out and refused if that cannot be evaluated.",
    )
    max_tools: int = Field(
        default=64, ge=1, description="Tools that the planner is shown at most; of more it is shown those that fit."
    )
    top_k: int = Field(default=10, ge=1, description="Tools that are found for a task, or by a search.")
    selection: Literal["greedy", "sample"] = Field(
        default="greedy",
        description="How `create_toolgate` chooses among the tools for a need: by rank, or drawn by their probability.",
    )
    ladder: tuple[str, ...] = Field(
        default=LADDER, min_length=1, description="Names of the rungs that may answer a call, best first."
    )
    reads: Literal["simulated", "real"] = Field(
        default="simulated",
        description="Whether tools run for real whose user has stated that they only read; `open` does so by name.",
    )
    unclear: Literal["pass", "refuse"] | None = Field(
        default=None,
        description="What becomes of a call whose condition cannot be evaluated; "
        "by default it is refused if the contract answers, and marked if another rung does.",
    )
    parallel_calls: Literal["serial", "snapshot", "strict"] = Field(
        default="serial", description="How parallel tool calls of one planner message are applied to the task state."
    )
    simulation: Literal["fused", "separate"] = Field(
        default="fused", description="Result and state change in one model reply, or in two as the paper does."
    )
    view_chars: int = Field(default=6_000, ge=500, description="Characters of task state that one prompt may carry.")
    token_budget: int | None = Field(
        default=None, ge=1, description="Tokens that one turn may use, over all its attempts."
    )
    time_budget_s: float | None = Field(
        default=None,
        gt=0,
        description="Seconds that one turn may take, with its models' replies, over all its attempts.",
    )
    undo_s: float = Field(
        default=0.2,
        ge=0,
        description="Seconds for which a way back is searched, for each write of a plan that a person is asked about; "
        "0 for none.",
    )
    tool_timeout_s: float = Field(default=30.0, gt=0, description="Seconds that one Python tool may take to answer.")
    seed: int = Field(default=0, description="Seed of everything that is made up: schema answers, new identifiers.")

    @field_validator("band")
    @classmethod
    def _in_order(cls, band: tuple[float, float]) -> tuple[float, float]:
        if not band[0] <= band[1]:
            raise ValueError("give the lower end first")
        return band

    if not TYPE_CHECKING:  # pydantic's signature of the fields stays

        def __init__(self, **values: Any) -> None:
            """Check the knobs.

            Raises:
                GeckoError: An unknown knob, or a value that does not fit; each is named.
            """
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise GeckoError("; ".join(_format_mistake(found, type(self)) for found in error.errors())) from None

        __init__.__pydantic_base_init__ = True  # `model_validate` goes past it, and raises pydantic's own error


def _format_mistake(found: Mapping[str, Any], kind: type[GeckoContext]) -> str:
    name, known = ".".join(map(str, found["loc"])), kind.model_fields
    if found["type"] == "extra_forbidden":
        return (
            f"{kind.__name__}: unknown knob {name!r}{did_you_mean(name, known, cutoff=0.5)}; knobs: {', '.join(known)}"
        )
    return f"{kind.__name__}: {name}: {found['msg'].removeprefix('Input ')}, got {found['input']!r}"


def context_of(given: Any, default: GeckoContext) -> GeckoContext:
    """Return the run's knobs: `given` if it is a GeckoContext, else the ones bound when the graph was built.

    An embedded graph sees its parent's context object, of another type or None.
    """
    return given if isinstance(given, GeckoContext) else default
