"""create_loop: train, probe, judge, expand, mix, as a graph (paper, algorithm 1). Files hold rows, the state paths.

START ── seed ── train ──┬── evaluate ──┬── probe ── judge ── expand ── mix ── train ...
                         └──────────────┘ (the last iteration ends here)

Each step writes whole files of one iteration with a manifest.
"""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, get_args

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from ..errors import GeckoError
from ..models.factory import Models, ModelsLike
from ..state import JsonObject
from ..tools import Toolkit
from .checks import Checker
from .expand import CONSTRAINTS, verify_variants, write_variants
from .formats import FORMATS, is_good
from .mix import Ablation, Chosen, MixFindings, draw_seeds, mix
from .pairs import Pair, Pairs
from .probe import (
    Maker,
    Output,
    Probe,
    as_probe,
    check_maker,
    describe_maker,
    is_met,
    read_outputs,
    run_maker,
    write_outputs,
)
from .rows import write_rows
from .samples import Bad, Sample, continues, goal_key
from .shapes import read_samples
from .steps import Counts, identify, once, read_rows
from .verify import describe_tools

SEEDS, HELD_OUT, DATA, TRAIN, OUTPUTS = (f"{name}.jsonl" for name in ("seeds", "held-out", "data", "train", "outputs"))
JUDGED, DRAFTS, VERIFIED, VARIANTS = (f"{name}.jsonl" for name in ("judged", "drafts", "verified", "variants"))
_ERRORS = ("error", "corrected", "repeated")


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """The settings of a loop.

    Args:
        seeds: A file of rows in any known shape; rows that `data verify` has dropped or left open are left out.
        folder: Where each iteration's files go.
        base: The model to begin with: the first training's `{model}`.
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
    """Nothing is needed: the files in the folder are the state."""


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
    """Step, as `2/judge`, to its counts."""


class Stages:
    """The nodes of a loop."""

    def __init__(self, config: LoopConfig, trainer: Maker, probe: Probe, models: Models) -> None:
        self._config, self._trainer, self._probe, self._models = config, trainer, probe, models
        self._is_unjudged = config.ablation == "no-judge"

    def seed(self, state: LoopState) -> LoopState:
        """Read the seeds and the held-out rows, and draw the first data set."""
        counts = {"seed": _read_seeds(self._config.seeds, self._config.folder / SEEDS)}
        if self._config.eval is not None:
            counts["held-out"] = _read_seeds(self._config.eval, self._config.folder / HELD_OUT)
        first = [Chosen(id_, "first") for id_ in self._draw_seeds()[0]]
        return self._open(1, self._config.base, first, [], counts)

    def _draw_seeds(self) -> list[list[str]]:
        return draw_seeds([row["id"] for row in read_rows(self._config.folder / SEEDS)], self._config.seed)

    def train(self, state: LoopState) -> LoopState:
        """Train the model on the data set."""
        folder, model, before = self._folder(state), "model", state["model"]

        def work(replies: Path) -> Counts:
            run_maker("trainer", self._trainer, folder / TRAIN, before, folder / model)
            return {}

        given = {
            "data": folder / TRAIN,
            "model": identify(Path(before)) or before,
            "trainer": describe_maker(self._trainer),
        }
        once(folder, "train", [model], given, work)
        return {"model": str(folder / model), **self._tell(state, "train", {"model": str(folder / model)})}

    def evaluate(self, state: LoopState) -> LoopState:
        """Score the model on held-out rows by ToolMatch."""
        file = self._config.folder / HELD_OUT
        outputs = self._ask(state, file, "held-out")
        right = sum(is_met(one, output) for one, output in zip(read_rows(file), outputs, strict=True))
        return self._tell(state, "evaluate", {"rows": len(outputs), "right": right, "score": right / len(outputs)})

    def probe(self, state: LoopState) -> LoopState:
        """Ask the model about each row of its data set."""
        outputs = self._ask(state, self._folder(state) / DATA, "probe")
        unknown = sum(each["perplexity"] is None for each in outputs)
        return self._tell(state, "probe", {"rows": len(outputs), "perplexity_unknown": unknown})

    def _ask(self, state: LoopState, data: Path, name: str) -> list[Output]:
        """Return the model's outputs for rows, in their order."""
        probe, out = self._probe, self._folder(state) / OUTPUTS
        if isinstance(probe, Path):
            probe = Path(str(probe).replace("{iteration}", str(state["iteration"])))
        if name == "held-out":
            out = out.with_stem("outputs.eval")
            probe = probe.with_stem(f"{probe.stem}.eval") if isinstance(probe, Path) else probe

        def work(replies: Path) -> Counts:
            write_outputs(probe, model, data, out, replies, self._progress(state, name))
            return {}

        model, said = state["model"], probe if isinstance(probe, Path) else describe_maker(probe)
        once(out.parent, name, [out.name], {"data": data, "model": identify(Path(model)) or model, "probe": said}, work)
        return read_outputs(out, (row["id"] for row in read_rows(data)))

    def judge(self, state: LoopState) -> LoopState:
        """Judge each label against the model's output."""
        folder, toolkit, turn = self._folder(state), self._config.toolkit, state["iteration"] - 1

        def work(replies: Path) -> Counts:
            rows = list(read_rows(folder / DATA))
            outputs = read_outputs(folder / OUTPUTS, (row["id"] for row in rows))
            pairs = _pair(rows, outputs, [*read_rows(self._config.folder / SEEDS), *rows])
            models = self._models.caching(replies)
            judge = Pairs(Checker(toolkit), models, turn=turn, unjudged=self._is_unjudged)
            return judge.write(pairs, folder / JUDGED, self._progress(state, "judge"))

        given = {"data": folder / DATA, "outputs": folder / OUTPUTS, "unjudged": self._is_unjudged}
        given |= {"tools": describe_tools(toolkit), "asks": self._models.has("label_judge")}
        return self._tell(state, "judge", once(folder, "judge", [JUDGED], given, work))

    def expand(self, state: LoopState) -> LoopState:
        """Write variants of the errors, and verify them."""
        folder, config, turn = self._folder(state), self._config, state["iteration"] - 1
        each = config.variants if self._models.has("variant_writer") else 0

        def write(replies: Path) -> Counts:
            wanted = {*self._find(folder / JUDGED).errors}
            errors = (row for row in read_rows(folder / JUDGED) if row["id"] in wanted)
            tell = self._progress(state, "expand")
            models = self._models.caching(replies)
            return write_variants(errors, models, folder / DRAFTS, each=each, turn=turn, tell=tell)

        def verify(replies: Path) -> Counts:
            files, known = (folder / DRAFTS, folder / VERIFIED, folder / VARIANTS), read_rows(folder / DATA)
            return verify_variants(*files, known=known, toolkit=config.toolkit, models=self._models.caching(replies))

        given: dict[str, Any] = {"judged": folder / JUDGED, "variants": each, "seed": config.seed}
        written = once(folder, "drafts", [DRAFTS], given, write)
        given = {"data": folder / DATA, "drafts": folder / DRAFTS, "tools": describe_tools(config.toolkit)}
        given |= {"asks": self._models.has("label_judge")}
        return self._tell(state, "expand", {**written, **once(folder, "expand", [VARIANTS, VERIFIED], given, verify)})

    def mix(self, state: LoopState) -> LoopState:
        """Write the next iteration's data set."""
        folder, config, number = self._folder(state), self._config, state["iteration"] + 1
        found = self._find(folder / JUDGED, folder / VARIANTS)
        first, *fresh = self._draw_seeds()
        new = fresh[number - 2] if number - 2 < len(fresh) else []
        chosen = mix(found, new, len(first), config.ablation, config.seed + number)
        return self._open(number, state["model"], chosen, [folder / JUDGED, folder / VARIANTS], {})

    def _find(self, judged: Path, *variants: Path) -> MixFindings:
        """Return an iteration's findings, by ids."""
        more = (row for file in variants for row in read_rows(file))
        found = MixFindings.of(read_rows(judged), more, both_correct=self._config.keep_both_correct)
        return found.without_judge(self._config.seed) if self._is_unjudged else found

    def _open(
        self, number: int, model: str, chosen: Sequence[Chosen], found: Sequence[Path], counts: Mapping[str, Any]
    ) -> LoopState:
        """Write a data set as samples and as rows to train on; each row's `from` names its role."""
        config, folder = self._config, self._config.folder / f"iteration-{number}"
        if not chosen:
            raise GeckoError(f"iteration {number}: there are no rows to train on: nothing was missed, and none is left")
        sources = [*found, config.folder / SEEDS]

        def work(replies: Path) -> Counts:
            wanted = defaultdict[str, list[Chosen]](list)
            for each in chosen:
                wanted[each.id].append(each)
            rows = (row for source in sources for row in read_rows(source))
            taken = (_take(row, each, number) for row in rows for each in wanted.pop(row["id"], ()))
            write_rows(folder / DATA, taken)
            write_rows(folder / TRAIN, (made for row in read_rows(folder / DATA) for made in FORMATS["trl"](row)))
            return {"rows": len(chosen), **Counter(each.part for each in chosen)}

        given: dict[str, Any] = {source.name: source for source in sources}
        given |= {"ablation": config.ablation if found else None, "seed": config.seed, "number": number}
        made = once(folder, "data", [DATA, TRAIN], {**given, "both": config.keep_both_correct}, work)
        known = {"data": str(folder / DATA), "digest": identify(folder / DATA) or "", "model": model}
        return {"iteration": number, **known, "counts": {**counts, f"{number}/data": made}}  # type: ignore[typeddict-item]

    def _folder(self, state: LoopState) -> Path:
        return self._config.folder / f"iteration-{state['iteration']}"

    def _tell(self, state: LoopState, step: str, counts: Counts) -> LoopState:
        return {"counts": {f"{state['iteration']}/{step}": counts}}

    def _progress(self, state: LoopState, step: str) -> Callable[[int], None]:
        writer, iteration = get_stream_writer(), state["iteration"]
        return lambda done: writer({"type": "loop", "iteration": iteration, "step": step, "done": done})


def _read_seeds(source: Path, target: Path) -> Counts:
    """Write the rows of a file, whatever their shape, as samples; rows that `data verify` has refused are left out."""
    if not source.is_file():
        raise GeckoError(f"{target.stem}: {source} is not there")

    def work(replies: Path) -> Counts:
        bad: list[Bad] = []
        good = (row for row in read_samples(source, bad) if is_good(row))
        rows = ({key: each for key, each in row.items() if key != "verdict"} for row in good)
        if not (written := write_rows(target, rows)):
            reason = f"{bad[0].where}: {bad[0].reason}" if bad else "there are no rows to train on"
            raise GeckoError(f"{target.stem}: nothing in {source} could be read: {reason}")
        return {"rows": written, "unreadable": len(bad), "examples": [list(each) for each in bad[:3]]}

    return once(target.parent, target.stem, [target.name], {"source": source}, work)


def _pair(rows: Sequence[Sample], outputs: Sequence[Output], all_: Sequence[Sample]) -> Iterator[Pair]:
    """Yield each row with its output, and with those that continue its conversation to its goal, in their order."""
    known = defaultdict[str, dict[str, Sample]](dict)
    for row in all_:
        if key := goal_key(row):
            known[key].setdefault(row["id"], row)
    for row, output in zip(rows, outputs, strict=True):
        same = known[goal_key(row)].values()
        later = sorted((each for each in same if continues(each, row)), key=lambda each: len(each["messages"]))
        yield row, output, later


def _take(row: JsonObject, chosen: Chosen, number: int) -> JsonObject:
    """Return a row as the next data set has it: errors keep their faults, others have no verdict."""
    kept = {key: each for key, each in row.items() if key != "verdict" or chosen.part in _ERRORS}
    id_ = f"{row['id']}~{chosen.again}" if chosen.again else row["id"]
    return {**kept, "id": id_, "from": [*row["from"], {"iteration": number, "as": chosen.part}]}


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
        config: Its settings.
        trainer: A command with `{data}` (TRL's rows), `{model}` and `{out}`, or a function of the three paths.
        probe: What the trained model does with rows, greedily: the address of an OpenAI-compatible server, which is
            asked for the model by its path; a command or function as the trainer's, whose `{data}` are samples; or a
            file of outputs, `{"id", "output", "logprobs"}`, with `{iteration}` in its name. Held-out rows are read
            from `NAME.eval.jsonl` beside it.
        models: The models of `variant_writer` and `label_judge`. Without one, what rules do not decide
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
