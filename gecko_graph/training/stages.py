"""The loop's steps: each writes whole files of one iteration beside a manifest (paper, sections 4.1 to 4.4)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, cast

from langgraph.config import get_stream_writer

from ..errors import GeckoError
from ..models.factory import Models
from ..state import JsonObject
from ..values.digest import digest
from .checks import Checker
from .commands import Maker, describe_maker, run_maker
from .config import LoopConfig, LoopState
from .expand import verify_variants, write_variants
from .formats import FORMATS, is_good
from .journal import Journal
from .mix import Chosen, Found, draw_seeds, mix, without_judge
from .pairs import Judged, Pairs, is_met
from .probe import Output, ask_policy, is_address, is_file, read_outputs
from .rows import write_rows
from .samples import Bad, LabelCall, Sample, continues
from .shapes import read_samples
from .steps import Counts, identify, once, read_rows
from .verify import describe_tools

DATA, TRAIN, OUTPUTS, JUDGED, DRAFTS, VARIANTS = (
    f"{name}.jsonl" for name in ("data", "train", "outputs", "judged", "drafts", "variants")
)
AT_ONCE = 16


class Stages:
    """The nodes of a loop."""

    def __init__(self, config: LoopConfig, trainer: Maker, probe: Maker | Path, models: Models) -> None:
        self._config, self._trainer, self._probe, self._models = config, trainer, probe, models
        self._seeds, self._held_out = config.folder / "seeds.jsonl", config.folder / "held-out.jsonl"

    def seed(self, state: LoopState) -> LoopState:
        """Read the seeds and the held-out rows, and draw the first data set."""
        config = self._config
        counts = {"seed": self._read(config.seeds, self._seeds)}
        if config.eval is not None:
            counts["held-out"] = self._read(config.eval, self._held_out)
        ids = [row["id"] for row in read_rows(self._seeds)]
        first = [Chosen(id_, "first") for id_ in draw_seeds(ids, config.seed)[0]]
        counts["1/data"] = self._write_data(1, first, [self._seeds], {"seed": config.seed})
        return self._open(1, config.base, counts)

    def _read(self, source: Path, target: Path) -> Counts:
        """Write the rows of a file, whatever their shape, as samples; what `data verify` has refused is left out."""
        if not source.is_file():
            raise GeckoError(f"{target.stem}: {source} is not there")

        def work(of: str) -> Counts:
            bad: list[Bad] = []
            seen: set[str] = set()

            def keep() -> Iterator[JsonObject]:
                for row in read_samples(source, bad):
                    if row["id"] in seen:
                        bad.append(Bad(row["id"], "the id a second time"))
                    elif is_good(row):
                        yield {key: each for key, each in row.items() if key != "verdict"}
                    seen.add(row["id"])

            written = write_rows(target, keep())
            if not written:
                raise GeckoError(f"{target.stem}: nothing in {source} could be read{_first_of(bad)}")
            return {"rows": written, "unreadable": len(bad), "examples": [list(each) for each in bad[:3]]}

        return once(target.parent, target.stem, [target.name], {"source": source}, work)

    def train(self, state: LoopState) -> LoopState:
        """Train the model on the data set."""
        folder, model, before = self._folder(state), "model", state["model"]

        def work(of: str) -> Counts:
            run_maker("trainer", self._trainer, folder / TRAIN, before, folder / model)
            return {}

        given = {"data": folder / TRAIN, "model": _identify_model(before), "trainer": describe_maker(self._trainer)}
        once(folder, "train", [model], given, work)
        return {"model": str(folder / model)}

    def evaluate(self, state: LoopState) -> LoopState:
        """Score the model on held-out rows by ToolMatch."""
        samples = list(read_rows(self._held_out))
        outputs = self._ask(state, self._held_out, samples, "held-out")
        right = sum(is_met(one, output) for one, output in zip(samples, outputs, strict=True))
        return self._tell(state, "evaluate", {"rows": len(samples), "right": right, "score": right / len(samples)})

    def probe(self, state: LoopState) -> LoopState:
        """Ask the model about each row of its data set."""
        file = self._folder(state) / DATA
        outputs = self._ask(state, file, read_rows(file), "probe")
        known = Counter("unknown" if each["perplexity"] is None else "known" for each in outputs)
        return self._tell(state, "probe", {"rows": known.total(), "perplexity_unknown": known["unknown"]})

    def _ask(self, state: LoopState, data: Path, samples: Iterable[Sample], name: str) -> list[Output]:
        """Return the model's outputs for rows, in their order."""
        folder, probe, rows = self._folder(state), self._probe, list(samples)
        out = folder / (OUTPUTS if name == "probe" else "outputs.eval.jsonl")
        given: dict[str, Any] = {"data": data, "model": _identify_model(state["model"])}
        if is_file(probe):
            found = Path(str(probe).replace("{iteration}", str(state["iteration"])))
            found = found if name == "probe" else found.with_name(f"{found.stem}.eval{found.suffix}")
            if not found.is_file():
                raise GeckoError(
                    f"probe: {found} is not there: write what {state['model']} says to each row of {data}, "
                    '{"id", "output", "logprobs"}; the same command goes on'
                )
            return list(read_outputs(found, [each["id"] for each in rows]))

        def work(of: str) -> Counts:
            if isinstance(probe, str) and is_address(probe):
                ask_policy(probe, state["model"], rows, out, of, self._progress(state, name))
            else:
                run_maker("probe", cast("Maker", probe), data, state["model"], out)
            return {}

        once(folder, name, [out.name], {**given, "probe": describe_maker(cast("Maker", probe))}, work)
        return list(read_outputs(out, [each["id"] for each in rows]))

    def judge(self, state: LoopState) -> LoopState:
        """Judge each label beside the model's output."""
        folder, config = self._folder(state), self._config
        tell = self._progress(state, "judge")

        def work(of: str) -> Counts:
            rows = list(read_rows(folder / DATA))
            pairs = zip(rows, self._ask(state, folder / DATA, rows, "probe"), strict=True)
            later = _index([*read_rows(self._seeds), *rows])
            judge = Pairs(Checker(config.toolkit), self._models, state["iteration"] - 1)
            outcomes: Counter[str] = Counter()
            by: Counter[str] = Counter()
            with Journal(folder / JUDGED, of) as journal:
                asked = done = 0
                for entry in journal.read():
                    asked, done = entry["asked"], done + len(entry["rows"])
                    outcomes.update(row["verdict"]["outcome"] for row in entry["rows"])
                    by.update(row["verdict"]["by"] for row in entry["rows"])
                left = islice(pairs, done, None)
                while some := list(islice(left, AT_ONCE)):
                    found, asked = judge.judge([(*pair, _later_of(pair[0], later)) for pair in some], asked)
                    made = [_book(*pair, one) for pair, one in zip(some, found, strict=True)]
                    journal.write(json.dumps({"rows": made, "asked": asked}, ensure_ascii=False))
                    journal.flush()
                    outcomes.update(one.outcome for one in found)
                    by.update(one.by for one in found)
                    done += len(made)
                    tell(done)
                journal.finish(lambda entry: entry["rows"])
            return {"outcomes": dict(sorted(outcomes.items())), "by": dict(sorted(by.items())), "asked": asked}

        given = {"data": folder / DATA, "outputs": self._outputs(state), "tools": describe_tools(config.toolkit)}
        return self._tell(state, "judge", once(folder, "judge", [JUDGED], {**given, **self._asks("pair_judge")}, work))

    def expand(self, state: LoopState) -> LoopState:
        """Write variants of the errors, and verify them."""
        folder, config, turn = self._folder(state), self._config, state["iteration"] - 1
        each = config.variants if self._models.has("variant_writer") else 0
        unjudged = config.ablation == "no-judge"

        def write(of: str) -> Counts:
            wanted = {*self._find(folder).errors}
            rows = (row for row in self._judged(folder) if row["id"] in wanted)
            tell = self._progress(state, "expand")
            return write_variants(rows, self._models, folder / DRAFTS, of, each=each, turn=turn, tell=tell)

        def verify(of: str) -> Counts:
            known = cast("Iterator[Sample]", read_rows(folder / DATA))
            return verify_variants(folder / DRAFTS, folder / VARIANTS, known, config.toolkit, self._models)

        given = {"judged": folder / JUDGED, "variants": each, "unjudged": unjudged, "seed": config.seed}
        written = once(folder, "drafts", [DRAFTS], given, write)
        given = {"data": folder / DATA, "drafts": folder / DRAFTS, "tools": describe_tools(config.toolkit)}
        found = once(folder, "expand", [VARIANTS], {**given, **self._asks("label_judge")}, verify)
        return self._tell(state, "expand", {**written, **found})

    def mix(self, state: LoopState) -> LoopState:
        """Write the next iteration's data set."""
        folder, config, number = self._folder(state), self._config, state["iteration"] + 1
        found = self._find(folder)
        ids = [row["id"] for row in read_rows(self._seeds)]
        first, *fresh = draw_seeds(ids, config.seed)
        new = fresh[number - 2] if number - 2 < len(fresh) else []
        chosen = mix(found, new, len(first), config.ablation, config.seed + number)
        sources = [folder / JUDGED, folder / VARIANTS, self._seeds]
        given = {"ablation": config.ablation, "seed": config.seed, "both": config.keep_both_correct}
        counts = self._write_data(number, chosen, sources, given)
        return self._open(number, state["model"], {f"{number}/data": counts})

    def _find(self, folder: Path) -> Found:
        """Return what an iteration has found, by ids."""
        found = Found()
        for row in read_rows(folder / JUDGED):
            outcome, perplexity = row["verdict"]["outcome"], row["verdict"]["perplexity"]
            if outcome in ("PRED_WRONG", "LABEL_WRONG"):
                found.errors.append(row["id"])
            if outcome == "LABEL_WRONG":
                found.corrected.add(row["id"])
            if outcome == "MASTERED" or (outcome == "BOTH_CORRECT" and self._config.keep_both_correct):
                found.mastered.append((row["id"], perplexity))
            (found.matched if outcome == "MASTERED" else found.mismatched).append(row["id"])
        if (folder / VARIANTS).is_file():
            found.variants = [(row["id"], row["from"][-1]["variant_of"]) for row in read_rows(folder / VARIANTS)]
        return without_judge(found, self._config.seed) if self._config.ablation == "no-judge" else found

    def _judged(self, folder: Path) -> Iterator[JsonObject]:
        """Yield the judged rows; where no label is verified, as they were."""
        rows = read_rows(folder / JUDGED)
        return map(_unjudge, rows) if self._config.ablation == "no-judge" else rows

    def _write_data(self, number: int, chosen: list[Chosen], sources: list[Path], given: Mapping[str, Any]) -> Counts:
        """Write a data set as samples and as rows to train on; each row's `from` says as what it is in it."""
        folder = self._config.folder / f"iteration-{number}"
        if not chosen:
            raise GeckoError(f"iteration {number}: there are no rows to train on: nothing was missed, and none is left")

        def work(of: str) -> Counts:
            wanted: dict[str, list[Chosen]] = {}
            for each in chosen:
                wanted.setdefault(each.id, []).append(each)

            def rows() -> Iterator[JsonObject]:
                for source in sources:
                    for row in self._judged(source.parent) if source.name == JUDGED else read_rows(source):
                        for each in wanted.pop(row["id"], ()):
                            yield _take(row, each, number)

            write_rows(folder / DATA, rows())
            write_rows(folder / TRAIN, (made for row in read_rows(folder / DATA) for made in FORMATS["trl"](row)))
            return {"rows": len(chosen), **Counter(each.part for each in chosen)}

        inputs: dict[str, Any] = {source.name: source for source in sources}
        return once(folder, "data", [DATA, TRAIN], {**inputs, **given, "number": number}, work)

    def _folder(self, state: LoopState) -> Path:
        return self._config.folder / f"iteration-{state['iteration']}"

    def _open(self, number: int, model: str, counts: Mapping[str, Any]) -> LoopState:
        data = self._config.folder / f"iteration-{number}" / DATA
        return {
            "iteration": number, "data": str(data), "digest": identify(data) or "", "model": model, "counts": {**counts}
        }  # fmt: skip

    def _tell(self, state: LoopState, step: str, counts: Counts) -> LoopState:
        return {"counts": {f"{state['iteration']}/{step}": counts}}

    def _asks(self, *roles: Any) -> dict[str, Any]:
        return {"asks": [role for role in roles if self._models.has(role)]}

    def _outputs(self, state: LoopState) -> Any:
        """Return what the outputs are told from others by."""
        file = self._folder(state) / OUTPUTS
        return file if file.is_file() else Path(str(self._probe).replace("{iteration}", str(state["iteration"])))

    def _progress(self, state: LoopState, step: str) -> Callable[[int], None]:
        writer, iteration = get_stream_writer(), state["iteration"]
        return lambda done: writer({"type": "loop", "iteration": iteration, "step": step, "done": done})


def _first_of(bad: list[Bad]) -> str:
    return f": {bad[0].where}: {bad[0].reason}" if bad else ": there are no rows to train on"


def _identify_model(model: str) -> str:
    """Return what tells a model from another: its files where it has any, else its name."""
    return identify(Path(model)) or model


def _book(sample: Sample, output: Output, found: Judged) -> JsonObject:
    """Return a row with its verdict: where the label was wrong it has the output's, and the verdict keeps its own."""
    row: JsonObject = {**sample}
    verdict: JsonObject = {"outcome": found.outcome, "by": found.by, "perplexity": output["perplexity"], "reasons": []}
    if found.outcome in ("MASTERED", "BOTH_CORRECT"):
        return {**row, "verdict": {**verdict, "status": "keep"}}
    wrong: list[LabelCall] = output["calls"]
    said, status = output["text"], "keep" if found.outcome == "PRED_WRONG" else "drop"
    if found.outcome == "LABEL_WRONG":
        wrong, said, status = sample["label"], sample.get("text", ""), "fix"
        row = {key: each for key, each in row.items() if key not in ("results", "also", "text")}
        row |= {"label": output["calls"], **({"text": output["text"]} if output["text"] else {})}
    return {**row, "verdict": {**verdict, "status": status, "wrong": wrong, "said": said, "analysis": found.analysis}}


def _unjudge(row: JsonObject) -> JsonObject:
    """Return a judged row with the label that it came with."""
    verdict = row["verdict"]
    if verdict["outcome"] == "MASTERED":
        return row
    if verdict["outcome"] == "LABEL_WRONG":
        wrong, said = row["label"], row.get("text", "")
        row = {**row, "label": verdict["wrong"], "text": verdict["said"]}
        verdict = {**verdict, "wrong": wrong, "said": said}
    return {**row, "verdict": {**verdict, "status": "keep", "analysis": ""}}


def _take(row: JsonObject, chosen: Chosen, number: int) -> JsonObject:
    """Return a row as the next data set has it: errors keep what was wrong, others have no verdict."""
    source = [*row["from"], {"iteration": number, "as": chosen.part}]
    kept = (
        row if chosen.part in ("error", "corrected", "repeated") else {k: v for k, v in row.items() if k != "verdict"}
    )
    return {**kept, "id": f"{row['id']}~{chosen.again}" if chosen.again else row["id"], "from": source}


def _index(rows: Iterable[Any]) -> dict[str, list[Sample]]:
    """Return rows that have a goal, by goal and start state, each once."""
    found: dict[str, dict[str, Sample]] = {}
    for row in rows:
        if row.get("goal"):
            found.setdefault(digest([row["goal"], row.get("state")]), {}).setdefault(row["id"], row)
    return {key: [*each.values()] for key, each in found.items()}


def _later_of(sample: Sample, index: Mapping[str, list[Sample]]) -> list[Sample]:
    """Return the samples that continue one's conversation to its goal, in their order."""
    if not sample.get("goal"):
        return []
    rows = index.get(digest([sample["goal"], sample.get("state")]), [])
    return sorted((each for each in rows if continues(each, sample)), key=lambda each: len(each["messages"]))
