"""What is said of words that the command line does not know: what was probably meant."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn


class HintingParser(argparse.ArgumentParser):
    """A parser that says what was probably meant by a word that it does not know."""

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """As argparse does; a word too many is told in the words of its command."""
        options, extra = self.parse_known_args(args, namespace)
        if extra:
            command = self._command(getattr(options, "command", None))
            command.error(hint(extra, command.options()))
        return options

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is, without the list of all options."""
        self.exit(2, f"gecko-graph: {message}\n  {self.prog} --help shows what there is\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(None, _no_command(str(value), list(action.choices)))

    def options(self) -> list[str]:
        """The parser's long options."""
        return [name for action in self._actions for name in action.option_strings if name.startswith("--")]

    def _command(self, name: str | None) -> HintingParser:
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction) and name in action.choices:
                found: HintingParser = action.choices[name]
                return found
        return self


def hint(extra: Sequence[str], options: Sequence[str]) -> str:
    """What is said of words too many: which, and what was probably meant."""
    return "; ".join([f"not understood: {' '.join(map(repr, extra))}", *_meant(extra[0], options)])


def _no_command(word: str, commands: Sequence[str]) -> str:
    told = f"there is no command {word!r}; there are {', '.join(commands)}"
    if near := get_close_matches(word, commands, n=1):
        return f"{told}; perhaps {near[0]} is meant"
    return f"{told}; to rehearse a file: gecko-graph run {word}" if "." in word else told


def _meant(word: str, options: Sequence[str]) -> Iterator[str]:
    name = word.lstrip("-").partition("=")[0].replace("-", "_")
    if not word.startswith("-"):
        if "--task" in options:
            yield "what the user wants goes behind --task, the tools before it: FILE --task TEXT"
        elif "--output" in options:
            yield "the file to write goes behind -o"
    elif "--set" in options and name in _knobs():
        yield f"it is a knob: --set {name}=VALUE"
    elif near := get_close_matches(word.partition("=")[0], options, n=1):
        yield f"perhaps {near[0]} is meant"


def _knobs() -> Sequence[str]:
    from ..context import GeckoContext  # here, because it takes its time to import, and is seldom needed

    return list(GeckoContext.model_fields)
