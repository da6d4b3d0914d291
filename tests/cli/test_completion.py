"""`completion`: scripts that real shells take, with every command and option."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from gecko_graph.cli import build_parser
from gecko_graph.scenario import examples
from tests.cli.command import mistake

COMPLETE = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_gecko_graph
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def complete(run, tmp_path):
    """Ask a real bash for the completions of the last word."""
    (tmp_path / "complete.bash").write_text(run("completion", "bash")[1])

    def ask(*words):
        command = ["bash", "--norc", "-c", COMPLETE, "bash", tmp_path / "complete.bash", "gecko-graph", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path)
        assert done.stderr == ""
        return done.stdout.split()

    return ask


def test_bash_completes_commands_options_and_names(complete):
    assert complete("") == list(build_parser().commands())
    assert complete("r") == ["run", "record"]
    assert complete("run", "--s") == ["--state", "--set", "--save", "--server"]
    assert complete("run", "case.yaml", "--role-model", "ju") == ["judge="]
    assert complete("demo", "") == list(examples())
    assert complete("completion", "z") == ["zsh"]
    assert complete("run", "") == [], "files are left to the shell"
    assert complete("run", "--save", "--") == [], "a value is no option"


def test_every_option_is_completed(complete):
    for name, parser in build_parser().commands().items():
        assert set(complete(name, "--")) == set(parser.options())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_names_every_command_and_the_shell_can_read_it(run, shell, tmp_path):
    code, out, _ = run("completion", shell)
    assert code == 0
    assert all(name in out for name in build_parser().commands())
    (tmp_path / "script").write_text(out)
    if shutil.which(shell):
        subprocess.run([shell, "-n", tmp_path / "script"], check=True, timeout=60)


def test_an_unknown_shell_is_named_with_the_known_ones(run):
    message = mistake(run("completion", "bsh"))
    assert all(part in message for part in ("'bsh'", "did you mean bash?", "bash, zsh, fish"))
