"""The common part of commands: running one, its help, and shared options."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from types import SimpleNamespace as Options
from typing import Any, get_args

import click

FILE = click.Path()  # shells complete it; the reader of the file reports mistakes


def _format_interruption(command: str, words: list[str], given: dict[str, Any], *, saved: bool) -> str:
    if saved:
        recording = ("--record", given.get("record"), f"--record={given.get('record')}")  # needs every reply
        again = [word for word in words if word not in recording]
        again += () if "--resume" in words or command == "do" else ("--resume",)
        return f"interrupted; the finished steps are saved. To resume:\n  {shlex.join(['gecko-graph', *again])}"
    if command == "test" and given["save"]:
        return "interrupted; the finished conversations are saved: rerun the same command to resume"
    if command in ("verify", "loop", "tasks", "tools", "dialogues"):
        return "interrupted; finished work is saved: rerun the same command to resume"
    lost = command in ("run", "test") and not given["save"]
    return "interrupted" + ("; nothing was saved (--save FILE keeps a run, so that it can be resumed)" if lost else "")


class Command(click.Command):
    """A command; its examples and notes are in `epilogs.md`.

    There a list is a title followed by indented lines of a term and a text. The command's function, of the same name in
    a module of this package, is imported only when it runs.
    """

    def __init__(self, *args: Any, module: str = "", **named: Any) -> None:
        super().__init__(*args, **named)
        self._module = module

    def invoke(self, ctx: click.Context) -> Any:
        if not self._module:
            return super().invoke(ctx)
        name = str(ctx.info_name)
        try:
            function = getattr(import_module(f".{self._module}", __package__), name.replace("-", "_"))
            return int(function(Options(**ctx.params)))
        except KeyboardInterrupt as interrupted:
            message = _format_interruption(name, ctx.obj, ctx.params, saved=any(interrupted.args))
            raise KeyboardInterrupt(message) from None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the epilog: lists keep their columns, other paragraphs are wrapped."""
        here = import_module("pathlib").Path(__file__)  # imported here, because `--version` need not wait for it
        epilogs = here.with_name("epilogs.md").read_text(encoding="utf-8")
        _, _, rest = epilogs.partition(f"# {ctx.command_path}\n")
        for paragraph in filter(None, rest.partition("\n# ")[0].strip().split("\n\n")):
            title, *lines = paragraph.splitlines()
            if not lines or not lines[0].startswith(("  ", "{")):
                formatter.write_paragraph()
                formatter.write_text(" ".join([title, *lines]))
                continue
            rows = _list_knobs() if lines == ["{knobs}"] else [line.strip().partition("  ")[::2] for line in lines]
            with formatter.section(title.removesuffix(":")):
                formatter.write_dl([(term, text.strip()) for term, text in rows], col_max=formatter.width // 2)


class Commands(Command, click.Group):
    """The commands, listed in order of definition."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def _list_knobs() -> list[tuple[str, str]]:
    """Return each knob's name, with its description, allowed words and default."""
    import json

    from ..context import GeckoContext  # here, because the import is slow and seldom needed

    rows = []
    for name, field in GeckoContext.model_fields.items():
        literals = [word for part in (field.annotation, *get_args(field.annotation)) for word in get_args(part)]
        words = " | ".join(word for word in literals if isinstance(word, str))
        about = str(field.description).rstrip(".")
        about = (f"{words}: " if words else "") + about[0].lower() + about[1:]
        default = f"[{', '.join(field.default)}]" if name == "ladder" else json.dumps(field.default).strip('"')
        rows.append((name, f"{about} ({default})"))
    return rows


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def several(*options: Decorator) -> Decorator:
    return lambda function: reduce(lambda decorated, option: option(decorated), reversed(options), function)


def complete_examples(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of examples that begin with the typed text."""
    from ..scenario import examples

    return [name for name in examples() if name.startswith(incomplete)]


html = click.option("--html", metavar="FILE", type=FILE, help="Write the run as an HTML page.")
json = click.option("--json", metavar="FILE", type=FILE, help="Write the result as JSON; - for standard output.")
model = several(
    click.option("--model", metavar="NAME", help="provider:name; used instead of recorded replies."),
    click.option("--base-url", metavar="URL", help="Address of an OpenAI-compatible server."),
)
role_model = click.option(
    "--role-model",
    metavar="ROLE=NAME",
    multiple=True,
    callback=lambda _context, _option, entries: dict(each.partition("=")[::2] for each in entries),
    help="A model of one role, such as judge.",
)
start = several(
    click.option(
        "--seed-from", metavar="FILE", type=FILE, multiple=True, help="Start from real reads (rows or a HAR file)."
    ),
    click.option("--no-derive", is_flag=True, help="Do not derive a state from the document."),
)
HERE = "here"
mapped = several(
    click.option("--workers", metavar="N", type=click.IntRange(1, 256), help="Parallel processes (1)."),
    click.option(
        "--ray", metavar="[ADDRESS]", is_flag=False, flag_value=HERE, help="Run on a Ray cluster (docs/scale.md)."
    ),
)
CONTRACTS = "Contracts that replace the tools' own (repeatable)."
choice = several(
    click.option("--only", metavar="GLOB", multiple=True, help="Only tools with these names: 'issues_*' (repeatable)."),
    click.option("--contracts", metavar="FILE", type=FILE, multiple=True, help=CONTRACTS),
    click.option("--allow-remote", is_flag=True, help="Read https addresses, also those that documents refer to."),
)
