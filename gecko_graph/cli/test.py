"""`test`: run a folder's scenarios as conversations with an agent, and report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace as Options
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from ..conversation.agent import read_agent
from ..conversation.augment import AUGMENTATIONS
from ..conversation.faults import FAULTS
from ..conversation.result import CaseResult, Group, Report, as_json, build_report, format_invented, is_passed
from ..display.page import conversations_page
from ..display.words import clean
from ..errors import GeckoError
from ..models.factory import Models
from ..scenario.cases.batch import CaseWork, PlannedCase, find_cases, load_agent, plan_cases, read_finished, run_cases
from ..scenario.cases.run import find_invented
from ..state import JsonObject
from ..values.mapping import threads
from .inputs import build_models, check_files, find_map, screen, write_text
from .person import Person

MISSES_SHOWN = 20
UNKNOWN = 5
"""The exit code if nothing failed, but a conversation neither passed nor failed."""


def test(options: Options) -> int:
    """Run all conversations; exit code 0 if all passed, 1 if one failed, else `UNKNOWN`."""
    cases = find_cases(options.cases)
    written = {f"--{name}": getattr(options, name) for name in ("save", "html", "json")}
    check_files([("CASES", file) for file in cases], written)
    console = screen(stderr=options.json == "-")
    planned = plan_cases(cases, _read_augmentations(options), options.trials)
    models = read_models(options)
    work = _make_work(options, planned, models, console)
    invents = [name for each in planned for name in find_invented(each.scenario.tools, models)]
    if invented := format_invented([name for each in planned for name in each.scenario.tools.names], invents):
        console.print(Text(clean(invented), "yellow"))
    file = Path(options.save) if options.save else None
    named = [options.model, options.simulator_model, sorted(options.role_model.items())]
    setting = json.dumps([options.agent, "a person" if options.play else options.user_model, *named])
    map_ = map if options.play else find_map(options, threads(options.at_once))
    conversations = run_cases(planned, work, setting=setting, file=file, map=map_)
    watched = _watch(conversations, planned, file, console, bar=not options.play)
    records = sorted(watched, key=lambda record: (record["file"], record["augmentation"], record["trial"]))
    report = build_report(records)
    show_report(report, records, console)
    if options.html:
        write_text("--html", options.html, conversations_page(report, records, title=f"{options.agent}"))
    if options.json:
        text = json.dumps(as_json(report, records), ensure_ascii=False, indent=1)
        write_text("--json", options.json, text + "\n")
    held = {record["score"]["status"] for record in records}
    return 1 if "failed" in held else UNKNOWN if "unknown" in held else 0


def _read_augmentations(options: Options) -> list[str]:
    groups: dict[str, list[str]] = {"all": [*AUGMENTATIONS], "faults": [*FAULTS]}
    known = [*AUGMENTATIONS, *FAULTS]
    given = [each for name in options.augment for each in groups.get(name, [name])]
    if unknown := next((each for each in given if each not in known), None):
        raise GeckoError(f"--augment {unknown}: expected {', '.join(known)}; all (tool augmentations), or faults")
    return given or [""]


def read_models(options: Options) -> Models:
    """Return the models by role: tools are simulated by `--simulator-model` only."""
    models = build_models(options)
    if options.simulator_model:
        models = models.replace(**dict.fromkeys(("simulator", "state_updater"), models.chat(options.simulator_model)))
    return models


def _make_work(options: Options, planned: Sequence[PlannedCase], models: Models, console: Console) -> CaseWork:
    """Return the function that runs a conversation; mistakes in the setup are raised before the first."""
    read_agent(load_agent(options.agent), models)
    person = Person.at(console, "--play") if options.play else None
    user = models.chat(options.user_model) if options.user_model and not person else person
    for each in planned:
        if user is None and not (each.scenario.user and each.scenario.user.script):
            raise GeckoError(f"{each.scenario.where}: its user has no script: give --user-model")
        if any(each.augmentation in AUGMENTATIONS for each in planned) and not each.scenario.needs:
            raise GeckoError(
                f"{each.scenario.where}: needs: list the tools that the task needs; the others are distractors"
            )

    def greet(one: PlannedCase) -> None:
        if person and one.scenario.user:
            person.greet(one.scenario.user, one.scenario.name)

    return CaseWork(options.agent, models, user, greet if person else None)


def _watch(records: Any, planned: Sequence[PlannedCase], file: Path | None, console: Console, *, bar: bool) -> Any:
    """Yield the records, with progress on a terminal and a line for each conversation that did not pass."""
    if file is not None and (known := len(read_finished(file))):
        console.print(Text(f"{file}: {known} conversations are already finished", "dim"))
    misses = 0
    hidden, names = not (bar and console.is_terminal), [each.scenario.name for each in planned]
    with Progress(console=console, transient=True, disable=hidden) as shown:
        task = shown.add_task(clean("".join(names[:1])), total=len(names))
        for record, following in zip(records, [*names[1:], ""], strict=True):
            shown.update(task, advance=1, description=clean(following))
            misses += not is_passed(record)
            if not is_passed(record) and misses <= MISSES_SHOWN:
                console.print(Text(clean(CaseResult(record).explain().partition("\n\n")[0], lines=True), "red"))
            yield record
    if misses > MISSES_SHOWN:
        console.print(Text(f"and {misses - MISSES_SHOWN} more that did not pass (--html FILE shows all)", "red"))


def show_report(report: Report, records: Sequence[JsonObject], console: Console) -> None:
    console.print(build_table("category", report.categories))
    if len(report.augmentations) > 1:
        console.print(build_table("augmentation", report.augmentations))
    console.print(Text(" · ".join(f"pass^{k} {value:.3f}" for k, value in enumerate(report.pass_k, 1))))
    cost = "" if report.cost is None else f", {report.cost:.4f} US dollars"
    notes = f"{report.tokens} tokens{cost} · leaks {report.leaks} · races {report.races} · aborted {report.broken}"
    console.print(Text(notes, "dim"))
    if report.at_fault:
        cases = clean(", ".join(report.at_fault))
        console.print(
            Text(f"{len(report.at_fault)} of {report.failed} failures are the user's fault: {cases}", "yellow")
        )
    passed = sum(map(is_passed, records))
    console.print(Text(f"{passed} of {len(records)} passed", "bold green" if passed == len(records) else "bold red"))


def build_table(name: str, groups: Sequence[Group]) -> Table:
    """Return a table of means: similarity, the score of doing nothing, turns; without columns of zeros."""
    table = Table(box=None, pad_edge=False)
    table.add_column(name, no_wrap=True)
    more = {"unknown": [one.unknown for one in groups], "user's fault": [one.at_fault for one in groups]}
    more = {column: counts for column, counts in more.items() if any(counts)}
    for column in ("n", "similarity", "doing nothing", "passed", *more, "turns", "calls"):
        table.add_column(column, justify="right")
    for number, one in enumerate(groups):
        similarity = _format(one.similarity) + (f" ({one.scored} scored)" if one.scored != one.held else "")
        counts = [str(one.passed), *(str(counts[number]) for counts in more.values())]
        row = [similarity, _format(one.idle), *counts, _format(one.turns, 1), _format(one.calls, 1)]
        table.add_row(Text(clean(one.name)), str(one.held), *row)
    return table


def _format(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
