"""`data tools`: tools that do not exist yet; `data dialogues`: conversations about a document's tools."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace as Options

import click
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from ..display.words import clean, counted
from ..scenario import read_toolkit
from ..state import RoleUsage
from ..training.dialogues import SAMPLES, make_dialogues
from ..training.tool_writer import write_tools
from .data import write_toolkit
from .inputs import build_models, check_files, check_needs, choose, screen

_SHOWN = 5


def tools(options: Options) -> int:
    """Write tools of a domain; 1 where fewer were written than wanted."""
    check_files([], {"-o": options.output})
    console = screen(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("writing tools", total=options.count)
        made = write_tools(
            options.domain, options.output, options.count, model=build_models(options), seed=options.seed,
            tell=lambda done, asked: bar.update(task, completed=done, description=f"{counted(asked, 'path')} drawn"),
        )  # fmt: skip
    lost = f", {counted(len(made.lost), 'path')} without one" if made.lost else ""
    console.print(Text(f"{clean(options.output)}: {counted(len(made.names), 'tool')}{lost}", "bold"))
    for path, faults in made.lost[:_SHOWN]:
        console.print(Text(clean(f"  {' / '.join(path)}: {'; '.join(faults)}"), "yellow"))
    return 0 if len(made.names) == options.count else 1


def dialogues(options: Options) -> int:
    """Write dialogues about tools; 1 where fewer were kept than wanted."""
    check_needs(options)
    toolkit = choose(read_toolkit(options.document), options)
    folder = Path(options.output)
    named = write_toolkit(toolkit, options.document, folder)
    console = screen(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("dialogues", total=options.count)

        def costs(spent: RoleUsage, left: int) -> bool:
            bar.stop()
            _show_costs(spent, left, console)
            is_wanted = options.yes or not console.is_terminal or click.confirm("Go on?", default=True, err=True)
            bar.start()
            return is_wanted

        counts = make_dialogues(
            toolkit, folder, options.count, tools=named, model=build_models(options), assistant=options.assistant,
            seed=options.seed, to=options.to, costs=costs,
            tell=lambda kept, made: bar.update(task, completed=kept, description=f"{counted(made, 'dialogue')} made"),
        )  # fmt: skip
    kept = counts.pop("kept", 0)
    told = f"{folder}: {counted(kept, 'dialogue')} kept, {counted(counts.pop('rows', 0), 'row')} in {SAMPLES}"
    console.print(Text(clean(told), "bold"))
    for why, number in counts.most_common():
        console.print(Text(f"  {counted(number, 'dialogue')} dropped: {why}", "yellow"))
    return 0 if kept == options.count else 1


def _show_costs(spent: RoleUsage, left: int, console: Console) -> None:
    """Tell what ten dialogues cost, and what those that are left do, by the first two."""
    for number in dict.fromkeys((10, left)):
        price = "" if spent["cost"] is None else f", ${spent['cost'] * number:.2f}"
        calls, given, written = (spent[key] * number for key in ("calls", "input_tokens", "output_tokens"))
        tokens = f"about {counted(calls, 'question')}, {given:,} tokens read, {written:,} written{price}"
        console.print(Text(f"{counted(number, 'dialogue')}: {tokens} (measured on the first two)", "bold"))
