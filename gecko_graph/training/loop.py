"""create_loop: train, probe, judge, expand, mix, as a graph (paper, algorithm 1). Files hold rows, the state paths.

START ── seed ── train ──┬── evaluate ──┬── probe ── judge ── expand ── mix ── train ...
                         └──────────────┘ (the last iteration ends here)
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from ..errors import GeckoError
from ..models.factory import Models, ModelsLike
from ..tools import Toolkit
from .commands import Maker, check_maker
from .expand import CONSTRAINTS
from .mix import Ablation
from .stages import Stages


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


Loop = CompiledStateGraph[LoopState, None, LoopInput, LoopState]


def create_loop(
    config: LoopConfig,
    *,
    trainer: Maker,
    probe: Maker | Path,
    models: ModelsLike = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    name: str = "loop",
) -> Loop:
    """Build the graph of a loop; `invoke({})` runs it. Each step whose files fit is passed over, so it can be stopped.

    Args:
        config: What it works on.
        trainer: A command with `{data}` (TRL's rows), `{model}` and `{out}`, or a function of the three paths.
        probe: What the trained model does with rows, greedily: the address of an OpenAI-compatible server, which is
            asked for the model by its path; a command or function as the trainer's, whose `{data}` are samples; or a
            file of outputs, `{"id", "output", "logprobs"}`, with `{iteration}` in its name. Held-out rows are read
            from `NAME.eval.jsonl` beside it.
        models: The models of `pair_judge`, `variant_writer` and `label_judge`. Without one, what rules do not decide
            is left out.
        checkpointer: LangGraph's.
        name: Of the graph.

    Raises:
        GeckoError: A command lacks a place. While it runs: seeds that cannot be read, a trainer or a probe that fails.
    """
    check_maker("trainer", trainer)
    if isinstance(probe, str) and "{out}" in probe:
        check_maker("probe", probe)
    stages = Stages(config, trainer, probe, Models.of(models))
    graph = StateGraph(LoopState, input_schema=LoopInput)
    steps: Sequence[Any] = (stages.seed, stages.train, stages.evaluate, stages.probe, stages.judge, stages.expand)
    for step in (*steps, stages.mix):
        graph.add_node(step.__name__, step)
    graph.add_edge(START, "seed")
    graph.add_edge("seed", "train")

    def after_training(state: LoopState) -> str:
        """Return the next node."""
        return END if state["iteration"] >= config.iterations else "probe"

    if config.eval is not None:
        graph.add_edge("train", "evaluate")
    graph.add_conditional_edges("evaluate" if config.eval else "train", after_training, ["probe", END])
    for one, other in (("probe", "judge"), ("judge", "expand"), ("expand", "mix"), ("mix", "train")):
        graph.add_edge(one, other)
    built = graph.compile(checkpointer=checkpointer, name=name)
    return built.with_config(recursion_limit=10 + 6 * config.iterations)
