"""`learn`: contracts from rows of real calls, with what the rows have not shown."""

from __future__ import annotations

from itertools import chain
from types import SimpleNamespace as Options

from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from ..display.words import clean, counted
from ..errors import GeckoError
from ..learning.learn import Learned, learn_contracts
from ..learning.observation import BadRows
from ..learning.readers import read_file
from ..scenario import read_toolkit
from .inputs import check_files, choose, screen

ENDING = (".yaml", ".yml", ".json")
SHOWN = 10


def learn(options: Options) -> int:
    """Write what was learned; 1 where the rows contradict a written contract."""
    if not options.output.endswith(ENDING):
        raise GeckoError(f"-o {options.output}: the file is named NAME.contracts.yaml, or .json")
    inputs = [("SPEC", options.spec), *(("ROWS", file) for file in options.rows)]
    check_files([*inputs, *(("--contracts", file) for file in options.contracts)], {"-o": options.output})
    toolkit = choose(read_toolkit(options.spec, allow_remote=options.allow_remote), options)
    bad, console = BadRows(), screen(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading rows", total=None)

        def tell(name: str, number: int, count: int) -> None:
            bar.update(task, description=f"learning {clean(name)}", completed=number - 1, total=count)

        rows = chain.from_iterable(read_file(file, bad, toolkit) for file in options.rows)
        learned = learn_contracts(toolkit, rows, bad=bad, progress=tell)
    try:
        learned.write(options.output)
    except OSError as error:
        raise GeckoError(f"-o {options.output}: cannot be written: {error.strerror}") from None
    _show(learned, options.output, console)
    return 1 if learned.contradicted else 0


def _show(learned: Learned, target: str, console: Console) -> None:
    counts = ", ".join(f"{count} {status}" for status, count in learned.count_rules().items())
    console.print(Text(f"{target}: {counted(len(learned.contracts), 'contract')}; rules: {counts or 'none'}", "bold"))
    for name, missing in learned.unknown.items():
        if missing:
            console.print(Text(f"  {clean(name)}: not shown: {clean('; '.join(missing[:SHOWN]))}", "dim"))
    for one in learned.contradicted:
        about = f"{one.tool}: {one.part}: {one.branch} ({counted(one.count, 'row')}: {', '.join(one.rows)})"
        console.print(Text(f"  contradicted: {clean(about)}", "red"))
    for line in [*learned.bad.lines(), *learned.notes]:
        console.print(Text(f"  {clean(line)}", "yellow"))
