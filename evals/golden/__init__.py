"""`golden`: compare numbers that must not change in a refactoring with stored ones.

They are the suites' tables with a digest of each case, the shared OpenAPI documents, and the output of each command.
Times are left out. A part that cannot run here (no data, no official package) is skipped and keeps its stored rows.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from difflib import unified_diff
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias
from unittest.mock import patch

from gecko_graph import Toolkit
from gecko_graph.cli import main
from gecko_graph.errors import ToolkitError

from ..bfcl import categories, suite_of
from ..harness.command import measure, options_of, parser_of
from ..harness.figures import Measured, Table, format_cell
from ..harness.options import OUT, ROOT, SHARED, EvalError
from ..harness.report import Result
from ..harness.runner import select
from ..harness.suite import by_group

SUITES = {
    "bfcl-single": "bfcl --category single_turn",
    "bfcl-multi": "bfcl --category multi_turn",
    "fidelity": "fidelity",
    "validation": "validation",
    "tau": "tau",
    "policy": "policy",
    "toolsandbox": "toolsandbox",
    "scores": "toolsandbox --scores",
    "fair": "fair --augment plain",
    "misled": "misled",
    "origins": "origins",
    "reality": "reality --runs 60",
    "speed": "speed --only calls*,shop*",
}
"""The command of each part."""

COUNTED = {"reality", "speed"}
"""Suites of which only tables are stored, without means: processes race, or a service draws its order numbers."""
TIMES = re.compile(r"\b(seconds|ms|µs)\b")
"""Columns, and keys of a case, with times."""
MOST_DIGESTS = 300
SPEC = ("name", "description", "parameters", "result", "effect", "examples", "binding", "tags", "idempotency")


@dataclass(frozen=True, slots=True)
class Part:
    """The result of a part: texts by row; for a row of digests also the names of its cases."""

    rows: dict[str, str]
    cases: dict[str, list[str]] = field(default_factory=dict)


def run_suite(words: str) -> Part:
    """Run a suite by its command, without its report."""
    from ..__main__ import find

    called, *argv = words.split()
    kind = suite_of(categories(argv)) if called == "bfcl" else find(called)
    assert isinstance(kind, type), called
    given = parser_of(kind, called).parse_args([*argv, "--fresh"])
    options = options_of(kind, given)
    suite = kind(replace(options, out=OUT / "golden" / options.out.name))
    chosen = select(suite.cases(), only=options.only)
    result = measure(suite, chosen, given=given, command=f"python -m evals {words}")
    part = Part(dict(rows_of(result, steady=called not in COUNTED)))
    for group, some in by_group([] if called in COUNTED else result.records).items():
        size = -(-len(some) // MOST_DIGESTS)
        kept = [[one.id, one.status, one.reason, without_times(one.values)] for one in some]
        digests = [digest(kept[start : start + size])[:4] for start in range(0, len(some), size)]
        part.rows[f"cases / {group}"] = " ".join(digests)
        part.cases[f"cases / {group}"] = [
            one.id + (f" and {size - 1} more" if size > 1 else "") for one in some[::size]
        ]
    return part


def rows_of(result: Result, *, steady: bool) -> Iterator[tuple[str, str]]:
    """Yield the rows of a run's tables without times (and, unless `steady`, without means), and its expectations."""
    seen = Counter[str]()
    for table in result.figures:
        if not isinstance(table, Table):
            continue
        counts = [not TIMES.search(column) for column in table.columns]
        for cells in table.rows:
            name = f"{table.title} / {format_cell(cells[0])}"
            seen[name] += 1
            some = [cell for cell, is_count in zip(cells[1:], counts[1:], strict=True) if is_count]
            texts = [format_cell(cell) for cell in some if steady or not isinstance(cell, Measured)]
            yield name + (f" #{seen[name]}" if seen[name] > 1 else ""), " | ".join(texts)
    for number, each in enumerate(result.expectations, 1):
        yield f"must hold / {number}", f"{'holds' if each.holds else 'DOES NOT HOLD'}: {each.text}"


def without_times(value: Any) -> Any:
    if isinstance(value, list):
        return [*map(without_times, value)]
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if not TIMES.fullmatch(key)}
    return value


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=asdict).encode()).hexdigest()[:16]


def read_documents() -> Part:
    """Import each shared OpenAPI document: tools, findings by kind, digests of the specs and the written document."""
    paths = sorted((SHARED / "openapi").glob("*.*"))
    if not paths:
        raise EvalError(f"no documents in {SHARED / 'openapi'}")
    rows = {}
    for path in paths:
        try:
            toolkit = Toolkit.from_openapi(path)
        except ToolkitError as error:
            rows[path.name] = str(error).replace(str(path.parent), "")
            continue
        specs = [[getattr(tool, key) for key in SPEC] for tool in toolkit]
        found = dict(sorted(Counter(problem.kind for problem in toolkit.problems).items()))
        rows[path.name] = (
            f"{len(toolkit)} tools, {found}, specs {digest(specs)}, written {digest(toolkit.to_openapi())}"
        )
    return Part(rows)


# the output of each `gecko-graph` command, without paths, times and ports; no model is asked. The stored file is also
# the\nlist of commands: a line `$ gecko-graph ...` added to it is run

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
    r"No way back (?:was found in time|is known: \d+ calls were tried without success)": "No way back was found",
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}": "ID",
}


def read_texts() -> dict[str, str]:
    _, *parts = re.split(rf"^{re.escape(PROMPT)}(.*)\n", STORED.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(map(str.strip, parts[::2]), parts[1::2], strict=True))


def run_commands() -> Part:
    """Run all commands in a temporary folder, in this process; a row is a command, its exit code and its output."""
    with TemporaryDirectory(prefix="golden-") as folder, chdir(folder):
        shutil.copytree(ROOT / "examples", "examples")
        Path("agents.py").write_text(AGENTS, "utf-8")
        with patch.dict(os.environ, ENVIRONMENT), patch.object(sys, "path", [folder, *sys.path]):
            return Part({line: run_one(line, folder) for line in read_texts()})


def run_one(line: str, folder: str) -> str:
    """Run a command and return its exit code, its output, and digests of the files that it wrote."""
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


# all parts compared with the stored rows

ROWS = ROOT / "evals" / "golden.json"
PARTS: Mapping[str, Callable[[], Part]] = {
    **{name: partial(run_suite, words) for name, words in SUITES.items()},
    "documents": read_documents,
    "commands": run_commands,
}
HERE = frozenset({"reality"})
"""Parts that start a server, which ends with this process."""

MOST_NAMED = 12
"""Most changed cases that are named per row."""


def run(argv: Sequence[str]) -> int:
    """Measure and compare, several parts in parallel; return 0, or 1 if something has changed."""
    parser = argparse.ArgumentParser(prog="python -m evals golden", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="NAME", help=", ".join(PARTS))
    parser.add_argument("--write", action="store_true", help="store the results")
    given = parser.parse_args(argv)
    stored = {**json.loads(ROWS.read_text("utf-8")), "commands": read_texts()}
    has_moved = False
    for name, part, words in run_parts(given.only):
        print(f"{name}: {words}", file=sys.stderr, flush=True)
        if part is None:
            continue
        lines = [f"{name}: {line}" for line in differences(stored.get(name, {}), part)]
        print("\n".join(lines) or f"{name}: as stored, {len(part.rows)} rows", flush=True)
        has_moved, stored[name] = has_moved or bool(lines), part.rows
    if given.write:
        texts = stored.pop("commands")
        STORED.write_text("".join(f"{PROMPT} {row}".strip() + f"\n{texts[row]}" for row in texts), "utf-8")
        ROWS.write_text(json.dumps(stored, ensure_ascii=False, indent=1, sort_keys=True) + "\n", "utf-8")
    return 1 if has_moved and not given.write else 0


Ended: TypeAlias = tuple[str, Part | None, str]
"""A part's name, its result, and its duration; or why it was skipped."""


def run_parts(names: Sequence[str]) -> Iterator[Ended]:
    """Yield the parts as they end: those in HERE in this process, the others in a process per processor."""
    apart = [name for name in names if name not in HERE]
    with ProcessPoolExecutor(min(len(apart), os.cpu_count() or 1) or 1, get_context("fork")) as processes:
        waiting = [processes.submit(run_part, name) for name in apart]
        yield from map(run_part, [name for name in names if name in HERE])
        yield from (each.result() for each in as_completed(waiting))


def run_part(name: str) -> Ended:
    """Run a part; an exception counts as a change. Its progress is hidden, because several parts run in parallel."""
    started = time.monotonic()
    with redirect_stderr(io.StringIO()):
        try:
            part = PARTS[name]()
        except EvalError as missing:
            return name, None, f"left out: {missing}"
        except Exception as error:  # noqa: BLE001 - a part may fail in any way
            part = Part({"broken": f"{type(error).__name__}: {error}"})
    return name, part, f"{time.monotonic() - started:.0f} s"


def differences(before: Mapping[str, str], part: Part) -> Iterator[str]:
    """Yield the changes, row by row: long texts as a diff, digests of cases by the cases' names."""
    for row in sorted({*before, *part.rows}):
        old, new = before.get(row, "nothing"), part.rows.get(row, "nothing")
        if old == new:
            continue
        if row in part.cases and len(old.split()) == len(new.split()):
            pairs = zip(part.cases[row], old.split(), new.split(), strict=True)
            moved = [name for name, one, other in pairs if one != other]
            yield f"{row}: {len(moved)} moved: {', '.join(moved[:MOST_NAMED])}"
        elif "\n" in old + new:
            yield "\n".join(unified_diff(old.splitlines(), new.splitlines(), row, "now", n=1, lineterm=""))
        else:
            yield f"{row}:\n  - {old}\n  + {new}"
