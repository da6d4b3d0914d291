"""What each command of `gecko-graph` prints, without places, times and ports; no model is asked."""

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

from ..harness.datasets import ROOT
from .parts import Part, digest

HELP = "demo run do test record tools convert history completion"
FILES, SHOP, CASES = "examples/files/file-the-report.yaml", "examples/shop/shop.openapi.yaml", "examples/phone/cases"
NOWHERE = "--model openai:any --base-url http://127.0.0.1:9/v1"
COMMANDS = f"""

--help
demo --list
demo shop
demo calendar
demo airline
demo order
demo order --yes
demo --html demo.html
run {FILES} --save runs.sqlite --thread a --json run.json --html run.html --write-state state.json --log log.jsonl
run {FILES} --save runs.sqlite --thread a --resume
run {FILES} --save runs.sqlite --thread a --set max_retries=0 --resume
run {FILES} --set max_retries=0
run {FILES} --set seed=7
run {FILES} --set max_retires=0
run {FILES} --only mkdir
run {SHOP} --task "Buy tea" {NOWHERE}
run missing.yaml
run {SHOP}
run examples/order/order-with-refund.yaml --server http://127.0.0.1:9
history runs.sqlite
history runs.sqlite a --html history.html
history runs.sqlite a --blame /cwd/1
history runs.sqlite b
do runs.sqlite a
tools {SHOP}
tools {SHOP} --only 'show*'
tools examples/calendar/calendar.openapi.yaml
tools examples/airline/airline.tools.yaml
tools examples/files/files.openapi.yaml --state state.json
tools {CASES}/phone.openapi.yaml
convert examples/airline/airline.tools.yaml -o airline.yaml
convert {SHOP} -o shop.json
record {FILES} --out kept.yaml
test {CASES}/wifi-off.gecko.yaml --agent agents:good --save done.jsonl --html test.html --json test.json
test {CASES}/wifi-off.gecko.yaml --agent agents:bad --augment all --at-once 1
test {CASES}/wifi-off.gecko.yaml --agent agents:none
test examples/files --agent agents:good
completion bash
frobnicate
run --frobnicate
"""
AGENTS = """
from langchain.agents import create_agent
from gecko_graph.testing import scripted


def good(tools):
    return create_agent(scripted({"call": "set_wifi", "args": {"on": False}}, {"say": "Wifi is off."}), tools)


def bad(tools):
    return create_agent(scripted({"say": "Wifi is off."}), tools)
"""
PLAIN = {
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?": "TIME",
    r"127\.0\.0\.1:(?!9\b)\d+": "ADDRESS",
    r'("time": )[\d.]+|("ms": )[\d.]+': r"\1\2TIME",
    r"\b\d+\.\d s\b": "TIME",
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}": "ID",
}


def run_commands(*, fresh: bool) -> Part:
    """Run all commands in a folder of their own, in this process; a row is a command, its exit code and its texts."""
    del fresh
    rows = {}
    lines = [*COMMANDS.splitlines()[1:], *(f"{name} --help" for name in HELP.split())]
    with TemporaryDirectory(prefix="golden-") as folder, chdir(folder):
        shutil.copytree(ROOT / "examples", "examples")
        Path("agents.py").write_text(AGENTS, "utf-8")
        environment = {"COLUMNS": "100", "NO_COLOR": "1", "OPENAI_API_KEY": "none"}
        with patch.dict(os.environ, environment), patch.object(sys, "path", [folder, *sys.path]):
            for line in lines:
                rows[line] = run_one(line, folder)
    return Part(rows)


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
    for place, name in ((folder, "FOLDER"), (str(ROOT), "ROOT")):
        text = text.replace(place, name)
    for pattern, name in PLAIN.items():
        text = re.sub(pattern, name, text)
    return text
