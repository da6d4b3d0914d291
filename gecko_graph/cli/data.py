"""`data verify`: the rows of a data set, each with what is made of its label; `data tasks`: a folder of cases."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace as Options

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from ..display.words import clean, counted
from ..errors import GeckoError
from ..scenario import read_toolkit
from ..scenario.tools import is_in_module
from ..tools import Toolkit
from ..training.output import NEMO_GYM, nemo_rows, save_tasks
from ..training.rows import Unwritten, write_rows
from ..training.verify import Summary, verify_samples
from ..training.walks import CHAIN
from ..values.documents import format_document
from .inputs import build_models, check_files, check_needs, choose, read_state, screen, write_text

STATUSES = ("keep", "fix", "open", "drop")
BAD_SHOWN = 20
TOOLS = "tools.openapi.yaml"


def verify(options: Options) -> int:
    """Write the rows with their verdicts, and show what was found; 1 where a row could not be read or written."""
    check_needs(options)
    given = [("FILE", options.file), ("--answers", options.answers), ("--toolkit", options.toolkit)]
    check_files([*given, *(("--contracts", file) for file in options.contracts)], {"-o": options.output})
    toolkit = read_tools(options)
    models = build_models(options) if options.model or options.role_model else None
    console = screen()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("lines", total=None)
        try:
            summary = verify_samples(
                options.file, options.output, toolkit=toolkit, model=models, workers=options.workers,
                answers=options.answers, to=options.to, truth=options.truth,
                tell=lambda number: bar.update(task, completed=number, description=f"line {number}"),
            )  # fmt: skip
        except Unwritten as error:
            console.print(Text(clean(str(error)), "red"))
            return 1
    show(summary, options.output, console)
    return 1 if summary.bad else 0


def read_tools(options: Options) -> Toolkit | None:
    """Return the tools that make the calls of rows with a state."""
    if not options.toolkit:
        if options.contracts:
            raise GeckoError("--contracts needs --toolkit SPEC")
        return None
    toolkit = read_toolkit(options.toolkit)
    for file in options.contracts:
        toolkit = toolkit.with_contracts(file)
    return toolkit


def show(summary: Summary, target: str, console: Console) -> None:
    """Print counts, reasons with examples, what a model decided, and rows that could not be read."""
    all_ = summary.counts.total()
    words = ", ".join(f"{summary.counts[status]} {status}" for status in STATUSES if summary.counts[status])
    written = f" ({summary.written} written)" if summary.written != all_ else ""
    console.print(Text(f"{clean(target)}: {counted(all_, 'row')}{written}: {words}", "bold"))
    table = Table(box=None, pad_edge=False)
    for column in ("reason", "", "rows with it, the first ones"):
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
        console.print(Text(f"beside the truth of {counted(summary.truth.total(), 'row')}: {known}"))
    for each in summary.bad[:BAD_SHOWN]:
        console.print(Text(clean(f"{each.where}: {each.reason}"), "yellow"))
    if len(summary.bad) > BAD_SHOWN:
        console.print(Text(f"and {len(summary.bad) - BAD_SHOWN} more rows that cannot be used", "yellow"))


def tasks(options: Options) -> int:
    """Write tasks made from contracts; 1 where fewer were found than wanted."""
    check_needs(options)
    toolkit = choose(read_toolkit(options.spec, allow_remote=options.allow_remote), options)
    states, folder = [read_state(file) for file in options.state], Path(options.output)
    models = build_models(options) if options.model or options.role_model else None
    named = write_toolkit(toolkit, options.spec, folder)
    console = screen(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("making tasks", total=options.count)

        def tell(done: int, wanted: int, tried: int) -> None:
            bar.update(task, completed=done, description=f"making tasks, {counted(tried, 'walk')}")

        made = save_tasks(
            folder, toolkit, states, options.count, tools=named, seed=options.seed, model=models, progress=tell
        )
    if options.to == "nemo-gym":
        write_rows(folder / NEMO_GYM, nemo_rows(made))
    deep = sum(each.chain >= CHAIN for each in made)
    told = (
        f"{folder}: {counted(len(made), 'task')}, {deep} with {CHAIN} or more calls in a row that depend on each other"
    )
    console.print(Text(told, "bold"))
    for name, count in Counter(call["name"] for each in made for call in each.solution).most_common():
        console.print(Text(f"  {clean(name)}: {counted(count, 'call')}", "dim"))
    return 0 if len(made) == options.count else 1


def write_toolkit(toolkit: Toolkit, spec: str, folder: Path) -> str:
    """Write the tools beside a folder's cases, unless a module has them; return how the cases name them."""
    if is_in_module(spec):
        return spec
    folder.mkdir(parents=True, exist_ok=True)
    write_text("-o", str(folder / TOOLS), format_document(toolkit.to_openapi(), ".yaml"))
    return TOOLS
