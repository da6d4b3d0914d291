"""create_loop: train, probe, judge, expand, mix, as a graph (paper, algorithm 1).

START ── seed ── train ──┬── evaluate ──┬── probe ── judge ── expand ── mix ── train ...
                         └──────────────┘ (the last iteration ends here)

Rows are in files, the state holds paths. Each step writes whole files of one iteration, with a manifest.
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
from .files import Counts, identify, once, read_rows, write_rows
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
from .samples import Bad, Sample, continues, goal_key
from .shapes import read_samples

SEEDS, HELD_OUT, DATA, TRAIN, OUTPUTS = (f"{name}.jsonl" for name in ("seeds", "held-out", "data", "train", "outputs"))
JUDGED, DRAFTS, VERIFIED, VARIANTS = (f"{name}.jsonl" for name in ("judged", "drafts", "verified", "variants"))
_ERRORS = ("error", "corrected", "repeated")


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """The configuration of a loop.

    Args:
        seeds: A file of rows in any known format; rows that `data verify` dropped or left open are skipped.
        folder: The folder of each iteration's files.
        base: The first training's `{model}`.
        iterations: Number of trainings.
        toolkit: Tools whose contracts or functions execute the calls of rows with a state.
        eval: Held-out rows, scored by ToolMatch after each training.
        variants: New rows per error, at most four.
        keep_both_correct: Whether rows whose label and output are both right may be kept by their perplexity (section
            4.3), or are discarded (algorithm 1).
        ablation: A variant of table 4.
        seed: Seed of all random choices.

    Raises:
        GeckoError: A value is out of range.
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
    """Empty: the state is in the folder's files."""


class LoopState(TypedDict, total=False):
    """The loop's progress: paths and counts, no rows."""

    iteration: int
    """Counted from 1."""
    data: str
    """Path of this iteration's data set, as samples."""
    digest: str
    """Digest of the data set."""
    model: str
    """Path or name of the last trained model."""
    counts: Annotated[dict[str, Any], operator.or_]
    """Counts by step, such as `2/judge`."""


class Stages:
    def __init__(self, config: LoopConfig, trainer: Maker, probe: Probe, models: Models) -> None:
        self._config, self._trainer, self._probe, self._models = config, trainer, probe, models
        self._is_unjudged = config.ablation == "no-judge"

    def seed(self, state: LoopState) -> LoopState:
        """Read the seeds and the held-out rows, and write the first data set."""
        counts = {"seed": _read_seeds(self._config.seeds, self._config.folder / SEEDS)}
        if self._config.eval is not None:
            counts["held-out"] = _read_seeds(self._config.eval, self._config.folder / HELD_OUT)
        first = [Chosen(id_, "first") for id_ in self._draw_seeds()[0]]
        return self._open(1, self._config.base, first, [], counts)

    def _draw_seeds(self) -> list[list[str]]:
        return draw_seeds([row["id"] for row in read_rows(self._config.folder / SEEDS)], self._config.seed)

    def train(self, state: LoopState) -> LoopState:
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
        """Compare each label with the model's output, and judge both."""
        folder, toolkit, turn = self._folder(state), self._config.toolkit, state["iteration"] - 1

        def work(replies: Path) -> Counts:
            rows = list(read_rows(folder / DATA))
            outputs = read_outputs(folder / OUTPUTS, (row["id"] for row in rows))
            pairs = _pair(rows, outputs, [*read_rows(self._config.folder / SEEDS), *rows])
            models = self._models.caching(replies)
            judge = Pairs(Checker(toolkit), models, turn=turn, unjudged=self._is_unjudged)
            return judge.write(pairs, folder / JUDGED, self._progress(state, "judge"))

        given = {"data": folder / DATA, "outputs": folder / OUTPUTS, "unjudged": self._is_unjudged}
        given |= {"tools": toolkit and toolkit.to_openapi(), "asks": self._models.has("label_judge")}
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
        given = {"data": folder / DATA, "drafts": folder / DRAFTS, "asks": self._models.has("label_judge")}
        given |= {"tools": config.toolkit and config.toolkit.to_openapi()}
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
        """Return an iteration's findings, as ids."""
        more = (row for file in variants for row in read_rows(file))
        found = MixFindings.of(read_rows(judged), more, both_correct=self._config.keep_both_correct)
        return found.without_judge(self._config.seed) if self._is_unjudged else found

    def _open(
        self, number: int, model: str, chosen: Sequence[Chosen], found: Sequence[Path], counts: Mapping[str, Any]
    ) -> LoopState:
        """Write a data set as samples and as training rows; each row's `from` names its role."""
        config, folder = self._config, self._config.folder / f"iteration-{number}"
        if not chosen:
            raise GeckoError(f"iteration {number}: no rows to train on: no errors, and no rows are left")
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
    """Write a file's rows, in any known format, as samples; rows that `data verify` rejected are skipped."""
    if not source.is_file():
        raise GeckoError(f"{target.stem}: {source} does not exist")

    def work(replies: Path) -> Counts:
        bad: list[Bad] = []
        good = (row for row in read_samples(source, bad) if is_good(row))
        rows = ({key: each for key, each in row.items() if key != "verdict"} for row in good)
        if not (written := write_rows(target, rows)):
            reason = f"{bad[0].where}: {bad[0].reason}" if bad else "no rows to train on"
            raise GeckoError(f"{target.stem}: nothing in {source} could be read: {reason}")
        return {"rows": written, "unreadable": len(bad), "examples": [list(each) for each in bad[:3]]}

    return once(target.parent, target.stem, [target.name], {"source": source}, work)


def _pair(rows: Sequence[Sample], outputs: Sequence[Output], all_: Sequence[Sample]) -> Iterator[Pair]:
    """Yield each row with its output, and with the later samples of its conversation to the same goal, in order."""
    known = defaultdict[str, dict[str, Sample]](dict)
    for row in all_:
        if key := goal_key(row):
            known[key].setdefault(row["id"], row)
    for row, output in zip(rows, outputs, strict=True):
        same = known[goal_key(row)].values()
        later = sorted((each for each in same if continues(each, row)), key=lambda each: len(each["messages"]))
        yield row, output, later


def _take(row: JsonObject, chosen: Chosen, number: int) -> JsonObject:
    """Return a row of the next data set: errors keep their verdict, others have none."""
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
    """Build the graph of a loop; `invoke({})` runs it.

    Finished steps are skipped, so that a stopped loop can be resumed.

    Args:
        config: The configuration.
        trainer: A command with `{data}` (TRL's rows), `{model}` and `{out}`, or a function of the three paths.
        probe: The source of the trained model's greedy outputs: the address of an OpenAI-compatible server, which gets
            the model's path as its name; a command or function like the trainer's, whose `{data}` are samples; or a
            file of outputs, `{"id", "output", "logprobs"}`, with `{iteration}` in its name (outputs for held-out rows
            in `NAME.eval.jsonl` next to it).
        models: The models of `variant_writer` and `label_judge`. Without one, cases that rules do not decide are left
            out.
        checkpointer: A LangGraph checkpointer.

    Raises:
        GeckoError: A command lacks a placeholder. While running: unreadable seeds, a failing trainer or probe.
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
