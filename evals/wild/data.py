"""Parts of the suite `wild` that are no documents: the tools of an MCP server, rows of a data set, HAR writers.

Each part has three functions: its cases, how one is run, and what all of them come to.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jsonschema import Draft202012Validator

from gecko_graph import Toolkit, World, verify_samples
from gecko_graph.learning.har import read_har
from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.schemas.made_up import make_value
from gecko_graph.state import JsonObject
from gecko_graph.values.observation import BadRows

from ..harness.figures import Case, Record, Table
from ..harness.options import Options
from ..harness.suite import Expectation, Summary
from .har import ANSWERS, REQUESTS, TOOLKIT, entry
from .part import Part

MCP, SEAL = "github_mcp_tools.json.gz", "seal_tools_50.json.gz"


def _read(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def mcp_cases(options: Options) -> Iterator[Case]:
    """Yield a case for each file of tools that an MCP server lists."""
    yield Case(MCP, options.dataset(MCP), group="mcp")


def run_mcp(case: Case) -> JsonObject:
    """Return how many tools are loaded, take arguments that jsonschema accepts too, and answer them."""
    tools = _read(case.data)["tools"]
    toolkit = Toolkit.from_tools(tools)
    world = World(toolkit, state={})
    values: JsonObject = {"tools": len(tools), "loaded": len(toolkit), "accepted": 0, "by_jsonschema": 0, "answered": 0}
    lost: list[str] = []
    for given in tools:
        tool = toolkit[given["name"]]
        args: Any = make_value(tool.parameters, seed=0, key=tool.name)
        accepted = not list(find_complaints(tool, args))
        step = world.call({"name": tool.name, "args": args})
        answered = step.get("outcome", {}).get("status") == "ok"
        values["accepted"] += accepted
        values["by_jsonschema"] += Draft202012Validator(given["inputSchema"]).is_valid(args)
        values["answered"] += answered
        lost += [] if accepted and answered else [tool.name]
    return {**values, "lost": lost}


def seal_cases(options: Options) -> Iterator[Case]:
    """Yield a case for each file of rows."""
    yield Case(SEAL, options.dataset(SEAL), group="rows")


def run_seal(case: Case) -> JsonObject:
    """Return how many rows have calls that were read, and the verdicts; their tools stand in a prompt, and are not."""
    rows = _read(case.data)
    found = verify_samples(rows)
    read = sum(bool(row["label"]) for row in found.rows)
    counts = {status: found.counts[status] for status in ("keep", "open", "drop")}
    return {"rows": len(rows), "read": read, **counts, "lost": [f"{each.where}: {each.reason}" for each in found.bad]}


def har_cases(options: Options) -> Iterator[Case]:
    """Yield a case for each way in which a writer leaves a body in, or out."""
    for writer, (method, request, expected) in REQUESTS.items():
        yield Case(f"request: {writer}", ("args", entry(method, request), expected), group="har")
    for writer, (content, response, expected) in ANSWERS.items():
        yield Case(f"answer: {writer}", ("result", entry(content=content, **response), expected), group="har")


def run_har(case: Case) -> JsonObject:
    """Return whether an entry is read as it was recorded, or counted by the right cause."""
    part, written, expected = case.data
    with TemporaryDirectory() as folder:
        file, bad = Path(folder) / "a.har", BadRows()
        file.write_text(json.dumps({"log": {"version": "1.2", "entries": [written]}}), "utf-8")
        rows = [getattr(row, part) for row in read_har(file, bad, TOOLKIT)]
    found = rows or [*bad.counts]
    return {
        "entries": 1,
        "rows": len(rows),
        "right": int(found == [expected]),
        "lost": [] if found == [expected] else found,
    }


def _summarise(title: str, keys: Sequence[str], text: str, holds: Callable[[JsonObject], bool]) -> Any:
    def summarise(records: Sequence[Record]) -> Summary:
        """Return one row of sums, and each case that is lost."""
        done = [record.values for record in records if record.done]
        table = Table(title, ["", *(key.replace("_", " ") for key in keys)])
        table.add("all", *(sum(int(each[key]) for each in done) for key in keys))
        notes = [f"{record.id}: {one}" for record in records if record.done for one in record.values["lost"]]
        return Summary([table], [Expectation(text, all(map(holds, done)))], notes)

    return summarise


MCP_KEYS, ROW_KEYS = (
    ("tools", "loaded", "accepted", "by_jsonschema", "answered"),
    ("rows", "read", "keep", "open", "drop"),
)
PARTS = (
    Part(
        "mcp",
        mcp_cases,
        run_mcp,
        _summarise(
            "Tools of an MCP server",
            MCP_KEYS,
            "every tool is loaded, takes lawful arguments and answers",
            lambda one: {one[key] for key in MCP_KEYS} == {one["tools"]},
        ),
    ),
    Part(
        "rows",
        seal_cases,
        run_seal,
        _summarise(
            "Rows of Seal-Tools",
            ROW_KEYS,
            "the calls of every row are read, and none is kept whose tools are not",
            lambda one: one["read"] == one["rows"] and not one["keep"],
        ),
    ),
    Part(
        "har",
        har_cases,
        run_har,
        _summarise(
            "HAR entries by writer",
            ("entries", "rows", "right"),
            "each entry is read as it was recorded, or counted by its cause",
            lambda one: one["right"] == one["entries"],
        ),
    ),
)
