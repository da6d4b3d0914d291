"""What each command of `gecko-graph` prints, without places, times and ports; no model is asked.

The stored file `commands.txt` is also the list: a line `$ gecko-graph ...` that is added to it is run.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from gecko_graph.cli import main

from ..harness.options import ROOT
from .parts import Part, digest

STORED = ROOT / "evals" / "golden" / "commands.txt"
PROMPT = "$ gecko-graph"
AGENTS = """
from langchain.agents import create_agent
from gecko_graph.testing import scripted

def good(tools):
    return create_agent(scripted({"call": "set_wifi", "args": {"on": False}}, {"say": "Wifi is off."}), tools)

def bad(tools):
    return create_agent(scripted({"say": "Wifi is off."}), tools)
"""
ENVIRONMENT = {"COLUMNS": "100", "NO_COLOR": "1", "OPENAI_API_KEY": "none"}
PLAIN = {
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?": "TIME",
    r"127\.0\.0\.1:(?!9\b)\d+": "ADDRESS",
    r'("time": )[\d.]+|("ms": )[\d.]+': r"\1\2TIME",
    r"\b\d+\.\d s\b": "TIME",
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}": "ID",
}


def read_texts() -> dict[str, str]:
    """Return the stored commands, each with its text."""
    _, *parts = re.split(rf"^{re.escape(PROMPT)}(.*)\n", STORED.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(map(str.strip, parts[::2]), parts[1::2], strict=True))


def run_commands() -> Part:
    """Run all commands in a folder of their own, in this process; a row is a command, its exit code and its texts."""
    with TemporaryDirectory(prefix="golden-") as folder, chdir(folder):
        shutil.copytree(ROOT / "examples", "examples")
        Path("agents.py").write_text(AGENTS, "utf-8")
        with patch.dict(os.environ, ENVIRONMENT), patch.object(sys, "path", [folder, *sys.path]):
            return Part({line: run_one(line, folder) for line in read_texts()})


def run_one(line: str, folder: str) -> str:
    """Run a command; returns its exit code, what it printed, and digests of the files that it left."""
    before = {path: path.stat().st_mtime_ns for path in Path().glob("*.*")}
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", io.StringIO()):
        code = main(shlex.split(line))
    text = f"exit code {code}\n{out.getvalue()}" + "".join(f"2> {each}\n" for each in err.getvalue().splitlines())
    for path in sorted(Path().glob("*.*")):
        if path.suffix != ".sqlite" and before.get(path) != path.stat().st_mtime_ns:
            text += f"{path} {digest(plain(path.read_text('utf-8'), folder))}\n"
    return plain(text, folder)


def plain(text: str, folder: str) -> str:
    """Return a text without what differs between two runs."""
    text = text.replace(folder, "FOLDER").replace(str(ROOT), "ROOT")
    for pattern, name in PLAIN.items():
        text = re.sub(pattern, name, text)
    return text
