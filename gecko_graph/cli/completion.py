"""`completion`: a script that completes commands and options in a shell, written from the parser itself."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence

from ..errors import GeckoError, did_you_mean
from ..scenario.shipped import examples
from ..state import ROLES

BASH = """\
_gecko_graph() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} words
    case $previous in
        --role-model) compopt -o nospace 2> /dev/null; words={roles} ;;
        {values}) words= ;;
        *) case ${{COMP_WORDS[1]}} in
{commands}
        esac ;;
    esac
    [ "$COMP_CWORD" -eq 1 ] && words={names}
    [[ $current == -* ]] || words=$(printf '%s\\n' $words | grep -v '^-')
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o bashdefault -o default -F _gecko_graph gecko-graph
"""
SHELLS = ("bash", "zsh", "fish")


def completion(options: argparse.Namespace) -> int:
    """Print the script for a shell. Raises GeckoError for an unknown one."""
    from .arguments import build_parser

    commands = build_parser().commands()
    if options.shell == "fish":
        sys.stdout.write("\n".join(_fish(commands)) + "\n")
    elif options.shell in SHELLS:
        prefix = "autoload -U +X bashcompinit && bashcompinit\n" if options.shell == "zsh" else ""
        sys.stdout.write(prefix + _bash(commands))
    else:
        hint = did_you_mean(options.shell, SHELLS)
        raise GeckoError(f"unknown shell {options.shell!r}{hint}; shells: {', '.join(SHELLS)}")
    return 0


def _bash(commands: Mapping[str, argparse.ArgumentParser]) -> str:
    lines, values = [], set[str]()
    for name, parser in commands.items():
        lines.append(f"            {name}) words={shlex.quote(' '.join(_words(name, parser)))} ;;")
        values |= {flag for flags, takes_value, _ in _options(parser) if takes_value for flag in flags}
    return BASH.format(
        commands="\n".join(lines),
        names=shlex.quote(" ".join([*commands, "--help", "--version"])),
        roles=shlex.quote(" ".join(f"{role}=" for role in ROLES)),
        values="|".join(sorted(values - {"--role-model"})),
    )


def _fish(commands: Mapping[str, argparse.ArgumentParser]) -> Iterator[str]:
    for name, parser in commands.items():
        about = shlex.quote(parser.description or "")
        yield f"complete -c gecko-graph -n __fish_use_subcommand -f -a {name} -d {about}"
        for flags, takes_value, text in _options(parser):
            names = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in flags)
            value = " -r" if takes_value else ""
            condition = f"'__fish_seen_subcommand_from {name}'"
            yield f"complete -c gecko-graph -n {condition} {names}{value} -d {shlex.quote(text)}"


def _words(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    for flags, _, _ in _options(parser):
        yield from flags
    yield from examples() if name == "demo" else SHELLS if name == "completion" else ()


def _options(parser: argparse.ArgumentParser) -> Iterator[tuple[Sequence[str], bool, str]]:
    for action in parser._actions:
        if action.option_strings:
            yield action.option_strings, action.nargs != 0, action.help or ""
