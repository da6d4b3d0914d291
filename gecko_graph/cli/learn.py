"""`learn`: learn contracts from rows of real calls and probes, and let a person review the proposals."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from types import SimpleNamespace as Options
from typing import Any

from rich.console import Console
from rich.text import Text

from ..contracts.words import describe_check
from ..derive.contracts import add_derived
from ..display.page import render
from ..display.words import clean, counted
from ..errors import ContractError, GeckoError, did_you_mean
from ..learning.learn import Learned, learn_contracts
from ..learning.probe import probe
from ..learning.readers import ENDINGS, read_file
from ..learning.review import ContractProposal, find_proposals
from ..learning.shows import with_observes
from ..learning.writer import estimate, propose_rules
from ..scenario import read_toolkit
from ..tools import Toolkit
from ..values.documents import format_document, read_document
from ..values.observation import BadRows, Observation
from ..values.rows import find_files
from .inputs import (
    Tell,
    build_models,
    check_files,
    check_needs,
    choose,
    connect,
    find_map,
    progress,
    screen,
    write_text,
)
from .tools import converse

ENDING = (".yaml", ".yml", ".json")
SHOWN = 10


def learn(options: Options) -> int:
    """Write the learned contracts; 1 if the rows contradict an existing contract."""
    check_needs(options)
    if options.review:
        return _review(options)
    target = options.output or ""
    if not options.spec or not target.endswith(ENDING) or not (options.rows or options.probe):
        raise GeckoError("give SPEC, ROWS and -o NAME.contracts.yaml (or .json), or --review FILE")
    options.rows = [str(file) for source in options.rows for file in find_files(source, ENDINGS)]
    inputs = [("SPEC", options.spec), *(("ROWS", file) for file in options.rows)]
    check_files([*inputs, *(("--contracts", file) for file in options.contracts)], {"-o": target})
    toolkit = choose(read_toolkit(options.spec, allow_remote=options.allow_remote), options)
    console = screen(stderr=True)
    models = build_models(options) if options.model else None
    toolkit, _ = add_derived(toolkit)
    rows = (read_file(file, BadRows(), toolkit, server=options.server) for file in options.rows)
    toolkit = with_observes(toolkit, chain.from_iterable(rows))
    learned = _learn(toolkit, options)
    if options.probe:
        learned = _learn(toolkit, options, _probe(toolkit, learned, options, console))
    if learned.sample is None or not learned.sample.counts:
        why = "; ".join(learned.bad.lines()) or "no rows"
        raise GeckoError(f"nothing was learned or written: {why}")
    if models:
        spent = estimate(toolkit, learned, models.prompts, options.model)
        price = "" if spent["cost"] is None else f", ${spent['cost']:.4f}"
        tokens = f"about {spent['input_tokens']:,} input tokens, {spent['output_tokens']:,} output tokens{price}"
        console.print(Text(f"{options.model}: at most {counted(spent['calls'], 'question')}, {tokens}", "bold"))
        if not sys.stdin.isatty() or console.input(Text("continue? [y/N] ")).strip().lower() in ("y", "yes"):
            learned.notes.extend(converse(propose_rules(toolkit, learned), models))
    try:
        learned.write(target)
    except OSError as error:
        raise GeckoError(f"-o {target}: cannot be written: {error.strerror}") from None
    _show(learned, toolkit, target, console)
    return 1 if learned.contradicted else 0


def _learn(toolkit: Toolkit, options: Options, more: Iterable[Observation] = ()) -> Learned:
    rows = [*options.rows, *more]
    with progress("reading rows") as (_, tell):
        how: Any = {"server": options.server, "map": find_map(options), "progress": _telling("learning", tell)}
        return learn_contracts(toolkit, rows, **how)


def _probe(toolkit: Toolkit, learned: Learned, options: Options, console: Console) -> list[Observation]:
    """Probe the named sandbox, and write the rows next to the output."""
    file = Path(options.output).with_suffix(".probes.jsonl")
    sandbox = connect(toolkit, Options(**{**vars(options), "server": options.probe}))
    with progress("reading rows") as (_, tell):
        rows = probe(sandbox, learned, limit=options.probes, progress=_telling("probing", tell), observe=file)
    console.print(Text(f"{file}: {counted(len(rows), 'call')} of {clean(options.probe)}", "bold"))
    return rows


def _telling(doing: str, tell: Tell) -> Callable[[str, int, int], None]:
    return lambda name, number, count: tell(number - 1, f"{doing} {clean(name)}", total=count)


def _show(learned: Learned, toolkit: Toolkit, target: str, console: Console) -> None:
    counts = ", ".join(f"{count} {status}" for status, count in learned.count_rules().items())
    console.print(Text(f"{target}: {counted(len(learned.contracts), 'contract')}; rules: {counts or 'none'}", "bold"))
    for name, contract in learned.contracts.items():
        shown = _tell(contract["evidence"]) if "evidence" in contract else ["added to the existing contract"]
        console.print(Text(f"  {clean(name)}: {clean('; '.join(shown))}", "dim"))
        for one in (each for each in contract.get("requires", ()) if "evidence" in each):
            says = describe_check(one["check"]) or (one["id"] if " " in one["id"] else "")
            told = f"{one['evidence']['status']}: lawful if {says or 'it is as the file says'}"
            console.print(Text(f"    {clean(told)}", "dim"))
        for one in contract.get("evidence", {}).get("follows", ()):
            console.print(Text(f"    {clean(one['evidence']['status'])}: also changes {clean(one['id'])}", "dim"))
    if never := [tool.name for tool in toolkit if not learned.sample or tool.name not in learned.sample.tools()]:
        console.print(Text(f"  never called: {clean(', '.join(never))}", "dim"))
    for one in learned.contradicted:
        about = f"{one.tool}: {one.part}: {one.branch} ({counted(one.count, 'row')}: {', '.join(one.rows)})"
        console.print(Text(f"  contradicted: {clean(about)}", "red"))
    if proposed := sum(map(len, learned.proposals.values())):
        told = f"{counted(proposed, 'change')} to written contracts are proposed: gecko-graph learn --review {target}"
        console.print(Text(f"  {clean(told)}", "yellow"))
    for line in [*learned.bad.lines(), *learned.notes]:
        console.print(Text(f"  {clean(line)}", "yellow"))


def _tell(evidence: Any) -> list[str]:
    """Return what a tool's rows show, and what they do not show."""
    kinds = [f"{kind} ({count})" for kind, count in evidence["refusals"].items()]
    lines = [counted(evidence["rows"], "row"), f"refused: {', '.join(kinds[:SHOWN]) or 'never'}"]
    without = evidence["lawful"] - evidence.get("returns", {}).get("for", 0)
    lines += [f"{without} of {counted(evidence['lawful'], 'lawful call')} without a known result"] if without else []
    return [*lines, *([f"not shown: {', '.join(evidence['unknown'][:SHOWN])}"] if evidence["unknown"] else [])]


def _review(options: Options) -> int:
    """Decide on proposals: by options, as a page to read, or by asking a person one by one."""
    file, document = options.review, read_document(options.review)
    proposals = {one.id: one for one in find_proposals(document)}
    if options.html:
        check_files([("--review", file)], {"--html": options.html})
        page = render("review.html", title=clean(file), file=file, proposals=proposals.values())
        write_text("--html", options.html, page)
        return 0
    words = {**dict.fromkeys(options.accept, "a"), **dict.fromkeys(options.drop, "d")}
    if unknown := next((id_ for id_ in words if id_ not in proposals), None):
        raise GeckoError(f"{unknown}: no such proposal{did_you_mean(unknown, proposals)}")
    console = screen()
    for number, (id_, one) in enumerate(proposals.items(), 1):
        if not words:
            told = "; ".join(f"{key} {clean(str(value))}" for key, value in one.evidence.items())
            head = (f"{number}/{len(proposals)}  {clean(id_)}\n", "bold")
            console.print(Text.assemble(head, clean(one.shown(), lines=True), (f"\n{told}", "dim")))
        word = words.get(id_, "s") if words else _ask(one, console)
        if word == "q":
            break
        if word in ("a", "d"):
            one.decide("accept" if word == "a" else "drop", by=getpass.getuser())
        new = f"{file}.new"  # replaced atomically: Ctrl-C loses no decision
        write_text("--review", new, format_document(document, Path(file).suffix))
        Path(new).replace(file)
    console.print(Text(f"{file}: {counted(len(find_proposals(document)), 'proposal')} left", "bold"))
    return 0


def _ask(one: ContractProposal, console: Console) -> str:
    """Return the letter of a person's decision; an edited clause is accepted here. End of input quits."""
    while True:
        try:
            word = console.input(Text("[a]ccept, [e]dit, [d]rop, [s]kip, [q]uit: ")).strip().lower()[:1]
            if word == "e" and one.is_clause:
                one.decide("accept", by=getpass.getuser(), check=console.input("check: ").strip())
                return "e"
            if word in ("a", "d", "s", "q"):
                return word
        except ContractError as error:
            console.print(Text(clean(str(error)), "red"))
        except EOFError:
            return "q"
