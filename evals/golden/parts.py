"""The parts of `golden` that are counted: suites of `python -m evals`, and the shared OpenAPI documents."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from gecko_graph import Toolkit
from gecko_graph.errors import ToolkitError

from ..bfcl import categories, suite_of
from ..harness.command import measure, options_of, parser_of
from ..harness.figures import Measured, Table, format_cell
from ..harness.options import OUT, SHARED, EvalError
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
"""Part to its command."""

COUNTED = {"reality", "speed"}
"""Suites of which tables alone are kept, without means: processes race, or a service draws its order numbers."""
TIMES = re.compile(r"\b(seconds|ms|µs)\b")
"""Columns, and keys of a case, that hold times."""
MOST_DIGESTS = 300
SPEC = ("name", "description", "parameters", "result", "effect", "examples", "binding", "tags", "idempotency")


@dataclass(frozen=True, slots=True)
class Part:
    """What a part came to: texts by row; of a row with a digest a case, the names of the cases."""

    rows: dict[str, str]
    cases: dict[str, list[str]] = field(default_factory=dict)


def run_suite(words: str) -> Part:
    """Run a suite by its command, without its report.

    Raises:
        EvalError: Something that it needs is not here.
    """
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
    """Yield the rows of a run's tables without times, where not steady also without means, and what must hold."""
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
    """Return a JSON value without the times in it."""
    if isinstance(value, list):
        return [*map(without_times, value)]
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if not TIMES.fullmatch(key)}
    return value


def digest(value: Any) -> str:
    """Return the digest of a value, as JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=asdict).encode()).hexdigest()[:16]


def read_documents() -> Part:
    """Import each shared OpenAPI document: tools, findings by kind, digests of the specs and of what is written back.

    Raises:
        EvalError: They are not here.
    """
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
