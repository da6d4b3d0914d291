"""`tools`, `convert` and `derive`: show a file's tools, write them as OpenAPI, derive contracts."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from types import SimpleNamespace as Options
from typing import TypeVar

from rich.console import Console
from rich.text import Text

from ..derive.contracts import derive_contracts
from ..display.words import clean, counted, cut
from ..models.answer import answer
from ..models.ask import Ask, Reply
from ..models.factory import Models
from ..scenario import read_toolkit
from ..state import JsonObject
from ..tools import Toolkit, ToolSpec
from ..tools.descriptions import convert as conversion
from ..values.documents import format_document
from ..world.state_rules import examine_contracts
from .inputs import build_models, check_files, check_needs, choose, read_state, screen, write_text

DESCRIPTION_CHARS = 300
NAMES_SHOWN = 8
Result = TypeVar("Result")


def tools(options: Options) -> int:
    """Show a file's tools, and what it leaves undefined."""
    state = read_state(options.state)
    toolkit = choose(read_toolkit(options.spec, allow_remote=options.allow_remote), options)
    console = screen()
    title = f"{clean(toolkit.title)}: " if toolkit.title else ""
    console.print(Text.assemble((f"{title}{counted(len(toolkit), 'tool')}", "bold")))
    for tool in toolkit:
        console.print(_format_head(tool))
        if tool.description.strip():
            first = clean(tool.description.strip().split("\n\n")[0], lines=True).replace("\n", " ")
            console.print(Text(f"  {cut(first, DESCRIPTION_CHARS)}", "dim"))
    if toolkit.invariants:
        console.print(Text(f"{counted(len(toolkit.invariants), 'invariant')} of the task state", "dim"))
    if len(toolkit):
        _print_problems(toolkit, console)
    else:
        console.print("The document has no operations under `paths`. Webhooks are not tools.")
    return _print_examined(toolkit, state, options.state, console) if options.state else 0


def _print_examined(toolkit: Toolkit, state: JsonObject, file: str, console: Console) -> int:
    """Print the parts of contracts that cannot be evaluated on a state; return 1 if there are any, else 0."""
    found = examine_contracts(toolkit, state)
    count = counted(sum(tool.contract is not None for tool in toolkit), "contract")
    if not found:
        console.print(Text(f"\n{count} evaluated on {clean(file)}: no problems.", "green"))
        return 0
    console.print(Text(f"\nCannot be evaluated on {clean(file)}, or violates a schema ({len(found)}):", "bold"))
    for line in found:
        console.print(Text(f"  {clean(line)}", "red"))
    return 1


def convert(options: Options) -> int:
    """Write tools as an OpenAPI document; with a model, first complete them."""
    check_needs(options)
    inputs = [("IN", options.source), *(("--contracts", file) for file in options.contracts)]
    check_files(inputs, {"-o": options.output})
    toolkit, failures = choose(read_toolkit(options.source, allow_remote=options.allow_remote), options), list[str]()
    if options.model:
        toolkit, failures = converse(conversion(toolkit), build_models(options))
    target = options.output
    write_text("-o", target, format_document(toolkit.to_openapi(), Path(target).suffix))
    console = screen(stderr=True)
    shown = "the standard output" if target == "-" else target
    console.print(Text(f"{counted(len(toolkit), 'tool')} written to {shown}"))
    for failure in failures:
        console.print(Text(clean(failure), "yellow"))
    _print_problems(toolkit, console)
    return 1 if failures else 0


def derive(options: Options) -> int:
    """Write the contracts derived from a document, and print each operation's kind with the reason."""
    inputs = [("SPEC", options.spec), ("--state", options.state)]
    check_files([*inputs, *(("--contracts", file) for file in options.contracts)], {"-o": options.output})
    toolkit = choose(read_toolkit(options.spec, allow_remote=options.allow_remote), options)
    state = read_state(options.state) if options.state else None
    found = derive_contracts(toolkit, state)
    write_text("-o", options.output, format_document(found.file, Path(options.output).suffix))
    console = screen(stderr=True)
    for name, kind in found.kinds.items():
        left = f"; left out: {found.left_out[name]}" if name in found.left_out else ""
        console.print(Text(clean(f"{name}: {kind.word}: {kind.why}{left}")))
    for line in found.tell(state or {}):
        console.print(Text(clean(line), "bold"))
    return 0


def converse(questions: Generator[list[Ask], Sequence[Reply], Result], models: Models) -> Result:
    try:
        asks = next(questions)
        while True:
            asks = questions.send(answer(list(asks), models))
    except StopIteration as done:
        result: Result = done.value
        return result


def _format_head(tool: ToolSpec) -> Text:
    parameters = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", [])
    names = ", ".join(clean(name) if name in required else f"{clean(name)}?" for name in parameters)
    head = Text.assemble((clean(tool.name), "bold"), f"({names})  ", (tool.effect or "read or write", "cyan"))
    without_model = ["contract"] if tool.contract is not None else []
    without_model += [counted(len(tool.examples), "example")] if tool.examples else []
    return head.append("".join(f", {rung}" for rung in without_model), "green")


def _print_problems(toolkit: Toolkit, console: Console) -> None:
    if not toolkit.problems:
        console.print(Text("Nothing is missing.", "green"))
        return
    console.print(Text(f"\nMissing ({len(toolkit.problems)}):", "bold"))
    by_message: dict[str, list[str]] = {}
    for problem in toolkit.problems:
        by_message.setdefault(problem.message, []).append(problem.tool)
    for message, names in sorted(by_message.items(), key=lambda entry: -len(entry[1])):
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        console.print(Text.assemble((f"  {clean(message)}: ", "yellow"), clean(", ".join(names[:NAMES_SHOWN])), more))
