"""`completion`: scripts that real shells take, with every command and option."""

import os
import shlex
import shutil
import subprocess

import pytest
from click.shell_completion import ShellComplete

from gecko_graph.cli.arguments import cli
from gecko_graph.scenario import examples
from tests.cli.command import COMMAND, ENVIRONMENT

COMPLETE = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
compopt() { printf 'files\\n'; }
_gecko_graph_completion gecko-graph
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def complete(run, tmp_path):
    """Ask a real bash for the completions of the last word."""
    (tmp_path / "complete.bash").write_text(run("completion", "bash")[1])
    (tmp_path / "gecko-graph").write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    (tmp_path / "gecko-graph").chmod(0o755)
    env = {**ENVIRONMENT, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}

    def ask(*words):
        command = ["bash", "--norc", "-c", COMPLETE, "bash", tmp_path / "complete.bash", "gecko-graph", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path, env=env)
        assert done.stderr == ""
        return done.stdout.split()

    return ask


def test_bash_completes_commands_options_and_files(complete):
    assert complete("run", "--s") == ["--state", "--set", "--save", "--server", "--seed-from"]
    assert complete("run", "--save", "") == ["files"], "files are left to the shell"


def completed(*words):
    """What a shell is told, without the shell."""
    completion = ShellComplete(cli, {}, "gecko-graph", "_GECKO_GRAPH_COMPLETE")
    return [each.value for each in completion.get_completions([*words[:-1]], words[-1])]


def test_names_are_completed():
    assert completed("") == list(cli.commands)
    assert completed("run", "--reads", "r") == ["real"]
    assert completed("demo", "") == list(examples())
    assert completed("completion", "z") == ["zsh"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_can_read_its_script(run, shell, tmp_path):
    code, out, _ = run("completion", shell)
    assert code == 0
    assert "gecko-graph" in out
    (tmp_path / "script").write_text(out)
    if shutil.which(shell):
        subprocess.run([shell, "-n", tmp_path / "script"], check=True, timeout=60)
