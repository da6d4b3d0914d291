"""`living`: a state derived from a document alone, compared with the real services."""

from __future__ import annotations

import json
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import httpx

from gecko_graph import Toolkit
from gecko_graph.state import JsonObject

from ..harness.figures import Case, Measured, Record, Table, share
from ..harness.options import OUT
from ..harness.suite import Expectation, Suite, Summary
from ..services.installed import SERVICES, started
from ..services.resources import RESOURCES
from ..services.walk import MARK, Walk, repeat
from ..speed.server import running

KNOWN = ("langgraph", "prefect", "chroma", "changedetection")
"""The services whose documents and answers were known when the rules were written; the others were unseen."""

FIRST = {"kinto": "240/301", "phoenix": "284/301", "zenml": "292/301", "airflow": "300/300"}
"""The results of the first look at the services, with the rules of that time."""

CLASS, UNSEEN = 0.985, 0.92
PLACE = Path(tempfile.gettempdir()) / "living"
FIGURES: dict[str, tuple[str, str, float]] = {
    "sent fields right, read after update": ("read after update", "given", 0.95),
    "a list holds the right own things": ("list all", "members", 0.95),
    "a filtered list or a page does": ("list filtered|list page", "members", 0.90),
}
"""What is compared besides statuses: in which kinds of calls, under which key, and the least expected share.

An answer that is marked as unknown as a whole (`X-Gecko-Made-Up: true`) is neither right nor wrong, and counted
separately. So is what a service does against its own document: it does not refuse a missing thing although it documents
404, or never returns a member that it accepts and documents.
"""
KEPT = ("kind", "status", "other", "class", "exact", "unknown", "against", "refused", "members", "given")


class Living(Suite):
    """Services from PyPI, each in an environment of its own, beside the state that is derived from their documents.

    They are started on loopback without data; random calls (drawn by --seed; 0 is 1) are made and recorded once. The
    same calls then go to `gecko-graph serve DOCUMENT`, which also starts empty, and the answers are compared: the class
    of the status, the fields that were sent, when a thing is read after a change, and which of the things that the
    calls created are in a list, a filtered list or a page. A recording is kept in evals/out/living: later runs need no
    service (--record makes a new one).
    """

    name = "living"
    asks = False
    tools = "simulated"
    planner = None
    at_once = 1
    examples = ("", "--only kinto --seed 3")

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--calls", type=int, default=300, metavar="N", help="calls to each service (300)")
        add("--record", action="store_true", help="record the calls to the services again")
        add("--environments", type=Path, default=PLACE, metavar="DIR", help="folder of the services' environments")

    def cases(self) -> Iterator[Case]:
        yield from (Case(name, group="known" if name in KNOWN else "unseen") for name in RESOURCES)

    def run_case(self, case: Case) -> JsonObject:
        rows = _repeat(case.id, *self._record(case.id))
        return {"rows": [{key: row[key] for key in KEPT if key in row} for row in rows]}

    def _record(self, name: str) -> tuple[list[JsonObject], Path]:
        """Return the rows of a service's calls, recorded earlier or now, and its document."""
        own, seed, folder = self.options.own, self.options.seed or 1, OUT / "living"
        file, document = folder / f"{name}-{seed}.jsonl", folder / f"{name}.openapi.yaml"
        if own.record or not file.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            with started(name, own.environments, document) as client:
                rows = Walk(client, SERVICES[name].prefix, RESOURCES[name], seed).go(own.calls)
            file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()], document

    def summarise(self, records: Sequence[Record]) -> Summary:
        done = [(record.id, record.values["rows"]) for record in records if record.done]
        known = [row for name, rows in done if name in KNOWN for row in rows]
        tables = [table_of("The same class of status", [*done, ("all known", known)], "class")]
        for text, (kinds, key, _) in FIGURES.items():
            some = [(name, [row for row in rows if row["kind"] in kinds.split("|")]) for name, rows in done]
            tables.append(table_of(text.capitalize(), some, key))
        by_kind = Table("By kind of call", ["all services", "same class", "same status"])
        for kind in sorted({row["kind"] for _, rows in done for row in rows}):
            some_rows = [row for _, rows in done for row in rows if row["kind"] == kind]
            by_kind.add(kind, *(share_of(some_rows, key) for key in ("class", "exact")))
        expected = [
            Expectation(f"{name} was unseen: at least {UNSEEN:.0%} of the same class; at first {FIRST[name]}", holds)
            for name, holds in ((name, share_of(rows, "class").value >= UNSEEN) for name, rows in done if name in FIRST)
        ]
        return Summary([*tables, by_kind], [*expected, *(expect_of_known(known) if known else ())])


def expect_of_known(rows: Sequence[JsonObject]) -> Iterator[Expectation]:
    figures = {"the same class of status": ("", "class", CLASS), **FIGURES}
    for text, (kinds, key, least) in figures.items():
        some = [row for row in sure(rows) if key in row and (not kinds or row["kind"] in kinds.split("|"))]
        yield Expectation(
            f"known services, {text}: {least:.1%}", sum(map(bool, (row[key] for row in some))) >= least * len(some)
        )
    yield Expectation("no known service's call is refused in vain", not any(row["refused"] for row in rows))


def table_of(title: str, parts: Sequence[tuple[str, Sequence[JsonObject]]], key: str) -> Table:
    """Return what is right by service: of the answers that are marked as known, and of all."""
    table = Table(title, ["service", "of known", "unknown", "against the document", "of all", "refused in vain"])
    for name, rows in parts:
        if some := [row for row in rows if key in row]:
            counts = (sum(bool(row[each]) for row in some) for each in ("unknown", "against"))
            table.add(
                name, share_of(sure(some), key), *counts, share_of(some, key), sum(row["refused"] for row in some)
            )
    return table


def sure(rows: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the rows that are neither unknown nor against the service's document."""
    return [row for row in rows if not (row["unknown"] or row["against"])]


def share_of(rows: Sequence[JsonObject], key: str) -> Measured:
    return share(sum(bool(row[key]) for row in rows), len(rows), tools="simulated")


def _repeat(name: str, rows: list[JsonObject], document: Path) -> list[JsonObject]:
    command = ("-m", "gecko_graph", "serve", str(document), "--port", "0")
    options = {"timeout": 60, "trust_env": False, "headers": SERVICES[name].headers}
    with running(*command) as (_, address), httpx.Client(base_url=address, **options) as client:  # type: ignore[arg-type]
        found = [*repeat(client, "", rows)]
    resources, tools = RESOURCES[name], Toolkit.from_openapi(document)
    for row in found:
        unkept = row.get("wrong", {}).keys() & {*resources[row["res"]].unkept}
        is_refused = row["status"] < 300 and 400 <= row["other"] < 500
        row["refused"] = is_refused and str(row["other"]) not in _documented(row, tools)
        row["against"] = (is_refused and not row["refused"]) or bool(unkept and unkept == row["wrong"].keys())
    return found


def _documented(row: JsonObject, tools: Toolkit) -> Iterable[str]:
    """Return the statuses that the document has for a row's call."""
    steps = MARK.sub("{}", row["path"]).strip("/").split("/")
    for binding in (tool.binding for tool in tools if tool.binding and tool.binding.method == row["method"].lower()):
        parts = binding.path.strip("/").split("/")[-len(steps) :]
        if len(parts) == len(steps) and all(map(_fits, parts, steps)):
            return binding.responses
    return ()


def _fits(part: str, step: str) -> bool:
    return part.startswith("{") or part == step


SUITE = Living
