"""`learn`: contracts from rows of real calls, with what the rows have not shown; and a person's review of them."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from types import SimpleNamespace as Options
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from ..display.page import render
from ..display.words import clean, counted
from ..errors import ContractError, GeckoError
from ..learning.learn import Learned, learn_contracts
from ..learning.observation import BadRows, Observation, write_rows
from ..learning.probe import probe
from ..learning.readers import read_file
from ..learning.review import Proposal, decide, find_proposals, pick
from ..learning.writer import estimate, propose_rules
from ..scenario import read_toolkit
from ..tools import Toolkit
from ..values.documents import format_document, read_document
from .inputs import build_models, check_files, check_needs, choose, connect, screen, write_text
from .tools import converse

ENDING = (".yaml", ".yml", ".json")
SHOWN = 10


def learn(options: Options) -> int:
    """Write what was learned; 1 where the rows contradict a written contract."""
    check_needs(options)
    if options.review:
        return _review(options)
    target = options.output or ""
    if not options.spec or not target.endswith(ENDING) or not (options.rows or options.probe):
        raise GeckoError("give SPEC, ROWS and -o NAME.contracts.yaml (or .json), or --review FILE")
    inputs = [("SPEC", options.spec), *(("ROWS", file) for file in options.rows)]
    check_files([*inputs, *(("--contracts", file) for file in options.contracts)], {"-o": target})
    toolkit, console = (
        choose(read_toolkit(options.spec, allow_remote=options.allow_remote), options),
        screen(stderr=True),
    )
    models = build_models(options) if options.model else None
    learned = _learn(toolkit, options, console)
    if options.probe:
        learned = _learn(toolkit, options, console, _probe(toolkit, learned, options, console))
    if models:
        spent = estimate(toolkit, learned, models.prompts, options.model)
        price = "" if spent["cost"] is None else f", ${spent['cost']:.4f}"
        tokens = f"about {spent['input_tokens']:,} tokens read, {spent['output_tokens']:,} written{price}"
        console.print(Text(f"{options.model}: at most {counted(spent['calls'], 'question')}, {tokens}", "bold"))
        if not sys.stdin.isatty() or console.input("ask it? [y/N] ").strip().lower() in ("y", "yes"):
            learned.notes.extend(converse(propose_rules(toolkit, learned), models))
    try:
        learned.write(target)
    except OSError as error:
        raise GeckoError(f"-o {target}: cannot be written: {error.strerror}") from None
    _show(learned, toolkit, target, console)
    return 1 if learned.contradicted else 0


def _learn(toolkit: Toolkit, options: Options, console: Console, more: Iterable[Observation] = ()) -> Learned:
    bad = BadRows()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading rows", total=None)

        def tell(name: str, number: int, count: int) -> None:
            bar.update(task, description=f"learning {clean(name)}", completed=number - 1, total=count)

        read = (read_file(file, bad, toolkit, server=options.server) for file in options.rows)
        return learn_contracts(toolkit, chain(chain.from_iterable(read), more), bad=bad, progress=tell)


def _probe(toolkit: Toolkit, learned: Learned, options: Options, console: Console) -> list[Observation]:
    """Probe the sandbox that was named, and write the rows beside the output."""
    sandbox = connect(toolkit, Options(**{**vars(options), "server": options.probe}))
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("probing", total=options.probes)

        def tell(name: str, number: int, count: int) -> None:
            bar.update(task, description=f"probing {clean(name)}", completed=number, total=count)

        rows = probe(sandbox, learned, limit=options.probes, progress=tell)
    file = Path(options.output).with_suffix(".probes.jsonl")
    write_rows(file, rows)
    console.print(Text(f"{file}: {counted(len(rows), 'call')} of {clean(options.probe)}", "bold"))
    return rows


def _show(learned: Learned, toolkit: Toolkit, target: str, console: Console) -> None:
    counts = ", ".join(f"{count} {status}" for status, count in learned.count_rules().items())
    console.print(Text(f"{target}: {counted(len(learned.contracts), 'contract')}; rules: {counts or 'none'}", "bold"))
    for name, contract in learned.contracts.items():
        console.print(Text(f"  {clean(name)}: {clean('; '.join(_tell(contract['evidence'])))}", "dim"))
    if never := [tool.name for tool in toolkit if not learned.sample or tool.name not in learned.sample.tools()]:
        console.print(Text(f"  never called: {clean(', '.join(never))}", "dim"))
    for one in learned.contradicted:
        about = f"{one.tool}: {one.part}: {one.branch} ({counted(one.count, 'row')}: {', '.join(one.rows)})"
        console.print(Text(f"  contradicted: {clean(about)}", "red"))
    for line in [*learned.bad.lines(), *learned.notes]:
        console.print(Text(f"  {clean(line)}", "yellow"))


def _tell(evidence: Any) -> list[str]:
    """Return what a tool's rows have shown, and what they have not."""
    kinds = [f"{kind} ({count})" for kind, count in evidence["refusals"].items()]
    lines = [counted(evidence["rows"], "row"), f"refused: {', '.join(kinds[:SHOWN]) or 'never'}"]
    without = evidence["lawful"] - evidence.get("returns", {}).get("for", 0)
    lines += [f"{without} of {counted(evidence['lawful'], 'lawful call')} without a known result"] if without else []
    return [*lines, *([f"not shown: {', '.join(evidence['unknown'][:SHOWN])}"] if evidence["unknown"] else [])]


def _review(options: Options) -> int:
    """Have a person decide on proposals, by options, as a page to read, or one after the other."""
    file, by, document = options.review, getpass.getuser(), read_document(options.review)
    proposals = find_proposals(document)
    if options.html:
        check_files([("--review", file)], {"--html": options.html})
        write_text("--html", options.html, render("review.html", title=clean(file), file=file, proposals=proposals))
        return 0
    for word in ("accept", "drop"):
        for one in [pick(proposals, id_) for id_ in getattr(options, word)]:
            decide(one, word, by=by)
            _save(file, document)
    if options.accept or options.drop:
        return 0
    console = screen()
    for number, one in enumerate(proposals, 1):
        console.print(Text(f"{number}/{len(proposals)}  {clean(one.id)}", "bold"))
        told = "; ".join(f"{key} {clean(str(value))}" for key, value in one.evidence.items())
        console.print(Text.assemble(clean(one.shown(), lines=True), (f"\n{told}", "dim")))
        try:
            if not _ask(one, by, console):
                break
        except EOFError:
            break
        finally:
            _save(file, document)  # also after Ctrl-C: nothing that was decided is lost
    console.print(Text(f"{file}: {counted(len(find_proposals(document)), 'proposal')} left", "bold"))
    return 0


def _ask(one: Proposal, by: str, console: Console) -> bool:
    """Ask what becomes of a proposal; return whether to go on."""
    while True:
        word = console.input("[a]ccept, [e]dit, [d]rop, [s]kip, [q]uit: ").strip().lower()[:1]
        try:
            if word == "e" and one.clause is not None:
                decide(one, "accept", by=by, check=console.input("check: ").strip())
            elif word in ("a", "d"):
                decide(one, "accept" if word == "a" else "drop", by=by)
            if word in ("a", "d", "s", "q") or (word == "e" and one.clause is not None):
                return word != "q"
        except ContractError as error:
            console.print(Text(clean(str(error)), "red"))


def _save(file: str, document: Any) -> None:
    """Write a file whole or not at all."""
    new = Path(f"{file}.new")
    try:
        new.write_text(format_document(document, Path(file).suffix), encoding="utf-8")
        os.replace(new, file)
    except OSError as error:
        raise GeckoError(f"--review {file}: cannot be written: {error.strerror}") from None
