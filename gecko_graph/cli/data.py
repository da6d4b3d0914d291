"""The `data` commands: verify rows, make tasks, run the training loop, generate tools and dialogues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace as Options
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..display.words import clean, counted
from ..errors import GeckoError
from ..scenario import read_toolkit
from ..state import RoleUsage
from ..tools import Toolkit
from ..tools.reading import is_in_module
from ..training.dialogues import MEASURED, make_dialogues
from ..training.files import Unwritten, read_rows, write_rows
from ..training.formats import FORMATS
from ..training.loop import LoopConfig, create_loop
from ..training.shards import name_of
from ..training.tasks import CHAINED, NEMO_GYM, SAMPLES, TOOLS, nemo_rows, save_tasks
from ..training.tool_writer import write_tools
from ..training.verify import Summary, verify_samples
from ..training.walks import CHAIN
from ..values.documents import format_document
from ..values.mapping import threads
from ..values.rows import find_files
from .inputs import build_models, check_files, check_needs, choose, find_map, progress, read_state, screen, write_text

STATUSES = ("keep", "fix", "open", "drop")
BAD_SHOWN, LOST_SHOWN = 20, 5


def verify(options: Options) -> int:
    """Write the rows with their verdicts, and print a summary; 1 if a row could not be read or written."""
    check_needs(options)
    given = [("ROWS", options.file), ("--answers", options.answers), ("--toolkit", options.toolkit)]
    target = None if options.shards else options.output
    check_files([*given, *(("--contracts", file) for file in options.contracts)], {"-o": target})
    toolkit = _read_tools(options)
    console = screen()
    with progress() as (_, tell):
        try:
            summary = verify_samples(
                options.file, options.output, toolkit=toolkit, model=_find_models(options), map=find_map(options),
                shards=options.shards,                answers=options.answers, to=options.to, truth=options.truth,
                tell=lambda number: tell(number, f"verifying line {number:,}"),
            )  # fmt: skip
        except Unwritten as error:
            console.print(Text(clean(str(error)), "red"))
            return 1
    show(summary, options.output, console)
    return 1 if summary.bad else 0


def _find_models(options: Options) -> Any:
    return build_models(options) if options.model or options.role_model else None


def _read_tools(options: Options) -> Toolkit | None:
    """Return the tools that execute the calls of rows with a state."""
    if not options.toolkit:
        if options.contracts:
            raise GeckoError("--contracts needs --toolkit SPEC")
        return None
    toolkit = read_toolkit(options.toolkit)
    for file in options.contracts:
        toolkit = toolkit.with_contracts(file)
    return toolkit


def show(summary: Summary, target: str, console: Console) -> None:
    """Print counts, reasons with examples, the share of decisions by a model, and unreadable rows."""
    all_ = summary.counts.total()
    words = ", ".join(f"{summary.counts[status]} {status}" for status in STATUSES if summary.counts[status])
    written = f" ({summary.written} written)" if summary.written != all_ else ""
    console.print(Text(f"{clean(target)}: {counted(all_, 'row')}{written}: {words}", "bold"))
    table = Table(box=None, pad_edge=False)
    for column in ("reason", "", "first rows with this reason"):
        table.add_column(column, justify="right" if not column else "left")
    for code, (count, examples) in sorted(summary.reasons.items(), key=lambda each: -each[1][0]):
        shown = "\n".join(f"{id_}  {path}  {message}" for id_, path, message in examples)
        table.add_row(code, str(count), Text(clean(shown, lines=True), "dim"))
    if summary.reasons:
        console.print(table)
    by = ", ".join(f"{name} {count / all_:.1%}" for name, count in summary.by.most_common())
    console.print(Text(f"decided by {by}", "dim"))
    if summary.truth:
        shares = {"sensitivity": summary.sensitivity, "specificity": summary.specificity}
        known = ", ".join(f"{name} {share:.1%}" for name, share in shares.items() if share is not None)
        console.print(Text(f"compared with the truth of {counted(summary.truth.total(), 'row')}: {known}"))
    for each in summary.bad[:BAD_SHOWN]:
        console.print(Text(clean(f"{each.where}: {each.reason}"), "yellow"))
    if len(summary.bad) > BAD_SHOWN:
        console.print(Text(f"and {len(summary.bad) - BAD_SHOWN} more unusable rows", "yellow"))


def tasks(options: Options) -> int:
    """Write tasks made from contracts; 1 if fewer were found than requested."""
    check_needs(options)
    toolkit = choose(read_toolkit(options.spec, allow_remote=options.allow_remote), options)
    states, folder = [read_state(file) for file in options.state], Path(options.output)
    named = options.spec if is_in_module(options.spec) else TOOLS
    with progress(total=options.count) as (_, tell):
        made = save_tasks(
            folder, toolkit, states, options.count, tools=named, seed=options.seed,
            model=_find_models(options), map=find_map(options), shards=options.shards,
            progress=lambda done, wanted, tried: tell(done, f"making tasks, {counted(tried, 'walk')} tried"),
        )  # fmt: skip
    _write_tools(toolkit, named, folder)
    if options.to == "nemo-gym":
        write_rows(folder / NEMO_GYM, nemo_rows(made))
    deep = sum(CHAINED in each.categories for each in made)
    summary = f"{counted(len(made), 'task')}, {deep} with {CHAIN} or more consecutive dependent calls"
    calls = Counter(call["name"] for each in made for call in each.solution)
    lines = [f"{name}: {counted(count, 'call')}" for name, count in calls.most_common()]
    _show_made(str(folder), summary, lines, "dim")
    return 0 if len(made) == options.count else 1


def _write_tools(toolkit: Toolkit, named: str, folder: Path) -> None:
    """Write the tools beside a folder's cases, unless the cases name a module."""
    if named == TOOLS:
        write_text("-o", str(folder / TOOLS), format_document(toolkit.to_openapi(), ".yaml"))


def _show_made(where: str, summary: str, lines: list[str], style: str) -> None:
    console = screen(stderr=True)
    console.print(Text(clean(f"{where}: {summary}"), "bold"))
    for line in lines:
        console.print(Text(clean(f"  {line}"), style))


def loop(options: Options) -> int:
    """Run the loop and print each step's counts; 1 if a row could not be read, or a step failed."""
    check_needs(options)
    check_files([("SEEDS", options.seeds), ("--eval", options.eval)], {})
    config = LoopConfig(
        seeds=options.seeds, folder=options.output, base=options.base, iterations=options.iterations,
        toolkit=_read_tools(options), eval=options.eval, variants=options.variants,
        keep_both_correct=not options.discard_both_correct, ablation=options.ablation, seed=options.seed,
    )  # fmt: skip
    built = create_loop(config, trainer=options.train, probe=options.probe, models=_find_models(options))
    console, known = screen(), dict[str, Mapping[str, Any]]()
    with console.status("") as status:
        try:
            part: Any
            for mode, part in built.stream({}, stream_mode=["updates", "custom"]):
                if mode == "custom":
                    status.update(f"iteration {part['iteration']}: {part['step']}, row {part['done']}")
                    continue
                for update in part.values():
                    for step, counts in update.get("counts", {}).items():
                        console.print(Text.assemble((f"{step:<12} ", "bold"), ", ".join(_words_of(counts))))
                        known[step] = counts
        except GeckoError as error:
            if not known:  # nothing could be read
                raise
            screen(stderr=True).print(Text(clean(str(error), lines=True), "red"))
            return 1
    return 1 if any(known.get(step, {}).get("unreadable") for step in ("seed", "held-out")) else 0


def _words_of(counts: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for key, value in counts.items():
        if isinstance(value, list):
            found += [f"{where}: {reason}" for where, reason in value]
        elif isinstance(value, str):
            found.append(value)
        elif value:
            words = key.replace("_", " ").lower()
            found.append(f"{value:.1%} {words}" if isinstance(value, float) else f"{value:,} {words}")
    return [clean(each) for each in found] or ["nothing"]


def tools(options: Options) -> int:
    """Write tools of a domain; 1 if fewer were written than requested."""
    check_files([], {"-o": options.output})
    with progress(total=options.count) as (_, tell):
        made = write_tools(
            options.domain, options.output, options.count, model=build_models(options), seed=options.seed,
            tell=lambda done, asked: tell(done, f"writing tools, {counted(asked, 'path')} sampled"),
        )  # fmt: skip
    lost = f", {counted(len(made['lost']), 'path')} without a tool" if made["lost"] else ""
    lines = [f"{path}: {'; '.join(faults.splitlines())}" for path, faults in made["lost"][:LOST_SHOWN]]
    _show_made(options.output, f"{counted(len(made['names']), 'tool')}{lost}", lines, "yellow")
    return 0 if len(made["names"]) == options.count else 1


def dialogues(options: Options) -> int:
    """Write dialogues about tools; 1 if fewer were kept than requested."""
    check_needs(options)
    folder = Path(options.output)
    toolkit = choose(read_toolkit(options.document, allow_remote=options.allow_remote), options)
    named = options.document if is_in_module(options.document) else TOOLS
    with progress(total=options.count) as (bar, tell):

        def costs(spent: RoleUsage) -> bool:
            bar.stop()
            _show_costs(spent)
            is_wanted = options.yes or not bar.console.is_terminal or click.confirm("Go on?", default=True, err=True)
            bar.start()
            return is_wanted

        counts = make_dialogues(
            toolkit, folder, options.count, tools=named, model=build_models(options), assistant=options.assistant,
            seed=options.seed, map=find_map(options, threads(options.at_once)), shards=options.shards, costs=costs,
            tell=lambda kept, made: tell(kept, counted(made, "dialogue")),
        )  # fmt: skip
    _write_tools(toolkit, named, folder)
    written = name_of(SAMPLES, options.shards)
    if options.to:
        rows = (row for file in find_files(folder / written) for row in read_rows(file))
        write_rows(folder / f"{options.to}.jsonl", (made for row in rows for made in FORMATS[options.to](row)))
    kept, number = counts.pop("kept", 0), counts.pop("rows", 0)
    summary = f"{counted(kept, 'dialogue')} kept, {counted(number, 'row')} in {written}"
    lines = [f"{counted(count, 'dialogue')} dropped: {why}" for why, count in counts.most_common()]
    _show_made(options.output, summary, lines, "yellow")
    return 0 if kept == options.count else 1


def _show_costs(spent: RoleUsage) -> None:
    """Print the cost of ten dialogues, estimated from the first ones."""
    share = 10 / MEASURED
    price = "" if spent["cost"] is None else f", ${spent['cost'] * share:.2f}"
    calls, given, written = (round(spent[key] * share) for key in ("calls", "input_tokens", "output_tokens"))
    summary = f"about {counted(calls, 'question')}, {given:,} input tokens, {written:,} output tokens{price}"
    _show_made("10 dialogues", f"{summary} (measured on the first {MEASURED})", [], "")
