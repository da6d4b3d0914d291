"""The parser's errors, each with the option or command that was probably meant, and its help, as wide as the screen."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn, get_args

from ..errors import did_you_mean


class ScreenFormatter(argparse.RawDescriptionHelpFormatter):
    """Help whose lists and examples keep their columns on a narrow terminal; in a pipe no line is wrapped."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if not sys.stdout.isatty():
            return super()._fill_text(text, width, indent)
        paragraphs = re.sub(r"(?<=[^\n])\n(?=\w)", " ", text)
        return "".join(f"{_wrap(line, width)}\n" for line in paragraphs.splitlines())


def _wrap(line: str, width: int) -> str:
    """Return a line of the help within `width` columns, below its last column; a command is never broken."""
    if len(line) <= width:
        return line
    head, gap, tail = re.fullmatch(r"(.*\S)(\s{2,})(\S.*)|.*", line).groups()  # type: ignore[union-attr]
    if line.startswith("  gecko-graph "):
        return f"{head}\n      {tail}" if tail else line
    below = " " * len(f"{head}{gap}" if tail else "")
    return textwrap.fill(line, width, subsequent_indent=below, break_long_words=False, break_on_hyphens=False)


class HintingParser(argparse.ArgumentParser):
    """A parser whose errors suggest the nearest option or command."""

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Parse as argparse does; an unrecognized argument is reported by its command's parser."""
        options, extra = self.parse_known_args(args, namespace)
        if extra:
            command = self.commands().get(getattr(options, "command", None) or "", self)
            listed = f"unrecognized argument{'s' if len(extra) > 1 else ''}: {shlex.join(extra)}"
            suggestion = _suggest(extra[0], command.options())
            command.error(f"{listed} ({suggestion})" if suggestion else listed)
        return options

    def format_help(self) -> str:
        """Return the help; the knobs are listed from GeckoContext."""
        if self.epilog and "{knobs}" in self.epilog:
            self.epilog = self.epilog.replace("{knobs}", _list_knobs())
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Exit with 2, the message and the name of the help, without the list of all options."""
        self.exit(2, f"gecko-graph: {message}\n  {self.prog} --help lists the options\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = list(action.choices)
            message = f"unknown command {value!r}{did_you_mean(str(value), known)}; commands: {', '.join(known)}"
            hint = f"; to rehearse a file: gecko-graph run {value}" if "." in str(value) else ""
            raise argparse.ArgumentError(None, message + hint)

    def options(self) -> list[str]:
        """Return the parser's long options."""
        return [name for action in self._actions for name in action.option_strings if name.startswith("--")]

    def commands(self) -> dict[str, HintingParser]:
        """Return the parsers of the commands by name."""
        groups = [action.choices for action in self._actions if isinstance(action, argparse._SubParsersAction)]
        return {str(name): parser for choices in groups for name, parser in choices.items()}


def _list_knobs() -> str:
    """Return a line for each knob: its name, what it is, the words that it takes, and its default."""
    from ..context import GeckoContext  # here, because it is slow to import and seldom needed

    lines = []
    for name, field in GeckoContext.model_fields.items():
        literals = [word for part in (field.annotation, *get_args(field.annotation)) for word in get_args(part)]
        words = " | ".join(word for word in literals if isinstance(word, str))
        about = str(field.description).rstrip(".")
        about = (f"{words}: " if words else "") + about[0].lower() + about[1:]
        default = f"[{', '.join(field.default)}]" if name == "ladder" else json.dumps(field.default).strip('"')
        lines.append(f"  {name:<20} {about} ({default})")
    return "\n".join(lines)


def _suggest(word: str, options: Sequence[str]) -> str:
    name = word.lstrip("-").partition("=")[0].replace("-", "_")
    if not word.startswith("-"):
        if "--task" in options:
            return "to give a task: FILE --task TEXT"
        return "to name the output: -o OUT" if "--output" in options else ""
    from ..context import GeckoContext  # here, because it is slow to import and seldom needed

    if "--set" in options and name in GeckoContext.model_fields:
        return f"to set a knob: --set {name}=VALUE"
    return did_you_mean(word.partition("=")[0], options).strip(" ()")
