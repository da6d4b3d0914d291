"""`living`: a state derived from a document alone, compared with the real services.

Services from PyPI are installed, each in its own environment, and started on loopback without
data; random calls (drawn by --seed) are made and recorded once. The same calls then go to `gecko-graph serve DOCUMENT`,
which also starts empty, and the answers are compared: the class of the status, the fields that were sent, when a thing
is read after a change, and which of the things that the calls created are in a list, a filtered list or a page. A
recording is kept in evals/out/living: later runs need no service (--record makes a new one).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

import httpx

from gecko_graph import Toolkit
from gecko_graph.state import JsonObject

from ..harness.options import OUT, EvalError
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


def run(argv: list[str]) -> int:
    """Compare each service with its derived state; return 1 below the expectation, 2 if a service cannot be started."""
    parser = argparse.ArgumentParser(
        prog="python -m evals living", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", action="append", choices=[*RESOURCES], help="a service (repeatable)")
    add("--calls", type=int, default=300, metavar="N", help="calls to each service (300)")
    add("--seed", type=int, default=1, metavar="N", help="which calls are drawn (1)")
    add("--record", action="store_true", help="record the calls to the services again")
    add("--environments", type=Path, default=PLACE, help="folder of the services' environments")
    options = parser.parse_args(argv)
    found = dict[str, list[JsonObject]]()
    for name in options.only or RESOURCES:
        try:
            rows, document = _record(name, options)
        except EvalError as error:
            print(f"{name}: {error}")
            return 2
        found[name] = _repeat(name, rows, document)
        _print_service(name, found[name])
    known = [row for name in found if name in KNOWN for row in found[name]]
    unseen = {name: rows for name, rows in found.items() if name not in KNOWN}
    for name, rows in unseen.items():
        print(f"{name} was unseen: {_share(rows, 'class')}, at least {UNSEEN:.0%}; at the first look {FIRST[name]}")
    is_below = any(_rate(rows, "class") < UNSEEN for rows in unseen.values())
    return max(_print_table(known) if known else 0, int(is_below))


def _record(name: str, options: argparse.Namespace) -> tuple[list[JsonObject], Path]:
    """Return the rows of a service's calls, recorded earlier or now, and its document."""
    folder = OUT / "living"
    file, document = folder / f"{name}-{options.seed}.jsonl", folder / f"{name}.openapi.yaml"
    if options.record or not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with started(name, options.environments, document) as client:
            rows = Walk(client, SERVICES[name].prefix, RESOURCES[name], options.seed).go(options.calls)
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()], document


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


def _print_service(name: str, rows: list[JsonObject]) -> None:
    print(f"{name}: same class {_share(rows, 'class')}, same status {_share(rows, 'exact')}; {_tell_refused(rows)}")
    for text, (kind, key, _) in FIGURES.items():
        print(f"  {text}: {_tell(_of(rows, kind), key)}")


def _print_table(rows: list[JsonObject]) -> int:
    """Print the figures of all known services; return 1 if one is below the expectation."""
    print(f"\n{'all known services':40} same class  same status")
    for kind in dict.fromkeys(row["kind"] for row in sorted(rows, key=lambda row: row["kind"])):
        some = _of(rows, kind)
        print(f"{kind:40} {_share(some, 'class'):11} {_share(some, 'exact')}")
    checks = [(text, _of(rows, kind), key, least) for text, (kind, key, least) in FIGURES.items()]
    print(f"{'the same class of status':40} {_tell(rows, 'class')}, at least {CLASS:.1%}; {_tell_refused(rows)}")
    for text, some, key, least in checks:
        print(f"{text:40} {_tell(some, key)}, at least {least:.0%}")
    is_right = _rate(_known(rows), "class") >= CLASS and not any(row["refused"] for row in rows)
    return 0 if is_right and all(_rate(_known(some), key) >= least for _, some, key, least in checks) else 1


def _tell_refused(rows: list[JsonObject]) -> str:
    refused = [row for row in rows if row["status"] < 300 and 400 <= row["other"] < 500]
    in_vain = sum(row["refused"] for row in refused)
    return f"{in_vain} refused in vain, {len(refused) - in_vain} as the document says"


def _known(rows: list[JsonObject]) -> list[JsonObject]:
    return [row for row in rows if not (row["unknown"] or row["against"])]


def _tell(rows: list[JsonObject], key: str) -> str:
    """Return how many are right of the answers marked as known, and of all."""
    some = [row for row in rows if key in row]
    unknown, against = (sum(bool(row[each]) for row in some) for each in ("unknown", "against"))
    told = f", {against} against the document" if against else ""
    return f"{_share(_known(some), key)} of known ({unknown} unknown{told}), {_share(some, key)} of all"


def _of(rows: list[JsonObject], kinds: str) -> list[JsonObject]:
    return [row for row in rows if row["kind"] in kinds.split("|")]


def _rate(rows: Iterable[JsonObject], key: str) -> float:
    said = [bool(row[key]) for row in rows if key in row]
    return sum(said) / len(said) if said else 1.0


def _share(rows: Iterable[JsonObject], key: str) -> str:
    said = [bool(row[key]) for row in rows if key in row]
    return f"{sum(said)}/{len(said)}"
