"""Schemathesis against a server: how valid and invalid requests of a document are answered.

It is a program on the PATH, `schemathesis`, in its own environment; the generated requests and their answers are read
from its report.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from gecko_graph import Toolkit
from gecko_graph.state import JsonObject
from gecko_graph.tools.openapi.fields import fields_of

CHECKS = ("not_a_server_error", "response_schema_conformance")
"""Its checks that must hold for every answer."""
LIMITS = {"enum", "const", "format", "pattern", "minLength", "maxLength"}


def find_schemathesis() -> str | None:
    return shutil.which("schemathesis")


def run_schemathesis(program: str, document: Path, url: str, *, examples: int, seed: int = 1) -> JsonObject:
    """Return counts of valid and invalid requests by status, and the failures.

    `valid_refused` are valid requests that were answered with 422; `faults` are answers of 500 and above, and those
    that break their schema; each is listed by operation and status. Requests that are valid as sent (`same_on_wire`)
    are counted apart: Schemathesis holds `?tags=0` to be invalid for a list of texts.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.ndjson"
        options = ["--phases", "examples,coverage,fuzzing", "-n", str(examples), "--seed", str(seed)]
        options += ["--continue-on-failure", "--max-failures", "1000000", "--warnings", "off", "--no-color"]
        options += ["--generation-database", "none", "-H", "Authorization: Bearer any"]
        options += ["--report", "ndjson", "--report-ndjson-path", str(report)]
        command = [program, "run", str(document.resolve()), "-u", url, *options]
        made = subprocess.run(command, capture_output=True, text=True, cwd=folder)  # it leaves files there
        if not report.exists():
            raise RuntimeError(f"schemathesis: {(made.stdout + made.stderr)[-500:]}")
        return _count(_cases(report), find_text_lists(document))


def _cases(report: Path) -> Iterator[JsonObject]:
    for line in report.read_text(encoding="utf-8").splitlines():
        recorder = json.loads(line).get("ScenarioFinished", {}).get("recorder") or {}
        for name, case in recorder.get("cases", {}).items():
            response = (recorder["interactions"].get(name) or {}).get("response")
            meta = case["value"].get("meta") or {}
            if response and meta:
                yield {
                    "where": recorder["label"],
                    "mode": meta["generation"]["mode"],
                    "about": (meta["phase"]["data"] or {}).get("description") or "",
                    "at": (meta["phase"]["data"] or {}).get("parameter") or "",
                    "status": response["status_code"],
                    "headers": {key.lower(): value for key, value in response["headers"].items()},
                    "failed": [
                        each["name"] for each in recorder["checks"].get(name, []) if each["status"] == "failure"
                    ],
                }


def find_text_lists(document: Path) -> set[tuple[str, str]]:
    """Return the query parameters, by operation, that are lists of any texts: each query is valid for them."""
    found = set[tuple[str, str]]()
    for tool in Toolkit.from_openapi(document):
        assert tool.binding
        operation = f"{tool.binding.method.upper()} {tool.binding.path}"
        for name, one in fields_of(tool, "query"):
            items = one.said.schema.get("items", {})
            if one.said.schema.get("type") == "array" and items.get("type") == "string" and not items.keys() & LIMITS:
                found.add((operation, name))
    return found


def _count(cases: Iterator[JsonObject], text_lists: set[tuple[str, str]]) -> JsonObject:
    valid, invalid, by_schema = Counter[str](), Counter[str](), Counter[bool]()
    refused, accepted, faults = Counter[str](), Counter[str](), Counter[str]()
    same_on_wire = 0
    for one in cases:
        if one["mode"] == "negative" and (one["where"], one["at"]) in text_lists:
            same_on_wire += 1
            continue
        status, line = one["status"], f"{one['where']}: {one['status']} {one['about']}"[:200]
        (valid if one["mode"] == "positive" else invalid)[str(status)] += 1
        if one["mode"] == "positive":
            refused[line] += status in (415, 422)
            if one["headers"].get("x-gecko-rung") == ["schema"]:
                by_schema[status < 300] += 1
        else:
            accepted[line] += status < 400
        for check in CHECKS:
            faults[f"{check}: {line}"] += check in one["failed"]
    found: JsonObject = {
        "valid": dict(valid),
        "invalid": dict(invalid),
        "by_schema": [by_schema[True], by_schema.total()],
        "same_on_wire": same_on_wire,
    }
    lists = {"valid_refused": refused, "invalid_accepted": accepted, "faults": faults}
    return found | {name: {line: count for line, count in each.items() if count} for name, each in lists.items()}
