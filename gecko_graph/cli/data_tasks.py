"""`data tasks`: tasks made from contracts, a folder of cases and samples."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace as Options

from rich.progress import Progress
from rich.text import Text

from ..display.words import clean, counted
from ..scenario import read_toolkit
from ..scenario.tools import is_in_module
from ..state import Json
from ..training.output import save_tasks
from ..training.walks import CHAIN
from ..values.documents import format_document
from .inputs import build_models, check_needs, choose, read_state, screen, write_text


def tasks(options: Options) -> int:
    """Write tasks made from contracts; 1 where fewer were found than wanted."""
    check_needs(options)
    toolkit = choose(read_toolkit(options.spec, allow_remote=options.allow_remote), options)
    states, folder = [read_state(file) for file in options.state], Path(options.output)
    models = build_models(options) if options.model or options.role_model else None
    named: Json = options.spec
    if not is_in_module(options.spec):
        named = "tools.openapi.yaml"
        folder.mkdir(parents=True, exist_ok=True)
        write_text("-o", str(folder / named), format_document(toolkit.to_openapi(), ".yaml"))
    console = screen(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("making tasks", total=options.count)

        def tell(done: int, wanted: int, tried: int) -> None:
            bar.update(task, completed=done, description=f"making tasks, {counted(tried, 'walk')}")

        made = save_tasks(
            folder, toolkit, states, options.count, tools=named, seed=options.seed, model=models, progress=tell
        )
    deep = sum(each.chain >= CHAIN for each in made)
    told = (
        f"{folder}: {counted(len(made), 'task')}, {deep} with {CHAIN} or more calls in a row that depend on each other"
    )
    console.print(Text(told, "bold"))
    for name, count in Counter(call["name"] for each in made for call in each.solution).most_common():
        console.print(Text(f"  {clean(name)}: {counted(count, 'call')}", "dim"))
    return 0 if len(made) == options.count else 1
