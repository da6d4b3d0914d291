"""create_loop: train, probe, judge, expand, mix, as a graph (paper, algorithm 1). Files hold rows, the state paths.

START ── seed ── train ──┬── evaluate ──┬── probe ── judge ── expand ── mix ── train ...
                         └──────────────┘ (the last iteration ends here)
"""

from itertools import pairwise
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from ..models.factory import Models, ModelsLike
from .commands import Maker, check_maker
from .probe import Probe, as_probe
from .stages import LoopConfig, LoopInput, LoopState, Stages

Loop = CompiledStateGraph[LoopState, None, LoopInput, LoopState]


def create_loop(
    config: LoopConfig,
    *,
    trainer: Maker,
    probe: Probe,
    models: ModelsLike = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
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

    Raises:
        GeckoError: A command lacks a place. While it runs: seeds that cannot be read, a trainer or a probe that fails.
    """
    check_maker("trainer", trainer)
    stages = Stages(config, trainer, as_probe(probe), Models.of(models))
    graph = StateGraph(LoopState, input_schema=LoopInput)
    nodes: list[Any] = [stages.probe, stages.judge, stages.expand, stages.mix]
    nodes = [stages.seed, stages.train, *([stages.evaluate] if config.eval else []), *nodes]
    for node in nodes:
        graph.add_node(node.__name__, node)
    names = [START, *(node.__name__ for node in nodes), "train"]
    trained = "evaluate" if config.eval else "train"
    for one, other in pairwise(names):
        if one != trained:
            graph.add_edge(one, other)
    graph.add_conditional_edges(
        trained, lambda state: END if state["iteration"] >= config.iterations else "probe", ["probe", END]
    )
    built = graph.compile(checkpointer=checkpointer, name="loop")
    return built.with_config(recursion_limit=10 + 6 * config.iterations)
