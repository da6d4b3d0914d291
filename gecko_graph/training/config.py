"""What a loop works on, and its graph's state."""

import operator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

from typing_extensions import TypedDict

from ..errors import GeckoError
from ..tools import Toolkit
from .expand import CONSTRAINTS
from .mix import Ablation


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """What a loop works on.

    Args:
        seeds: A file of rows in any known shape; what `data verify` has dropped or left open is left out.
        folder: Where each iteration's files go.
        base: The model to begin with: what the first training is given as `{model}`.
        iterations: How many trainings.
        toolkit: Tools whose contracts or functions make the calls of rows with a state.
        eval: Held-out rows, scored by ToolMatch after each training.
        variants: New rows an error is expanded to, at most four.
        keep_both_correct: Whether rows whose label and output are both right may be kept for their perplexity (section
            4.3), or are discarded (algorithm 1).
        ablation: A variant of table 4.
        seed: Of all that is drawn.

    Raises:
        GeckoError: A value is out of its range.
    """

    seeds: Path
    folder: Path
    base: str
    iterations: int = 4
    toolkit: Toolkit | None = None
    eval: Path | None = None
    variants: int = len(CONSTRAINTS)
    keep_both_correct: bool = True
    ablation: Ablation | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("seeds", "folder", "eval"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, Path(given))
        if self.iterations < 1:
            raise GeckoError(f"iterations: expected 1 or more, got {self.iterations}")
        if not 0 <= self.variants <= len(CONSTRAINTS):
            raise GeckoError(f"variants: expected 0 to {len(CONSTRAINTS)}, got {self.variants}")
        if self.ablation is not None and self.ablation not in get_args(Ablation):
            raise GeckoError(f"ablation: expected one of {', '.join(get_args(Ablation))}, got {self.ablation!r}")


class LoopInput(TypedDict):
    """Nothing is needed: what is there in the folder is gone on with."""


class LoopState(TypedDict, total=False):
    """Where the loop is: paths and counts, never rows."""

    iteration: int
    """From 1."""
    data: str
    """The data set of this iteration, as samples."""
    digest: str
    """Of the data set."""
    model: str
    """The model trained last."""
    counts: Annotated[dict[str, Any], operator.or_]
    """Step, as `2/judge`, to what it counted."""
