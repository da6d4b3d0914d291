"""`living`: how many operations of published documents get a kind, and a hundred of them to be read by eye."""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from gecko_graph import Toolkit, ToolkitError, derive_contracts
from gecko_graph.derive.kinds import STATEFUL, Kind
from gecko_graph.values.documents import parse_document

from ..harness.options import SHARED

FOLDERS = ("openapi", "openapi_wild")
LEAST, MOST_S = 0.68, 5.0


def run(argv: list[str]) -> int:
    """Print the coverage of the documents; 1 where it is below what is expected, 2 without documents."""
    parser = argparse.ArgumentParser(prog="python -m evals living", description=__doc__)
    parser.add_argument("--documents", action="store_true", help="coverage of the shared documents, without network")
    parser.add_argument("--data", type=Path, default=SHARED, help="where they lie")
    parser.add_argument("--draw", type=int, metavar="SEED", help="print 100 operations, drawn by this seed")
    options = parser.parse_args(argv)
    if not options.documents:
        parser.error("expected --documents")
    rows, seconds = list[tuple[str, str, str, Kind]](), 0.0
    for name, toolkit in read_documents(options.data):
        began = time.process_time()
        kinds = derive_contracts(toolkit).kinds
        seconds += time.process_time() - began
        bound = ((tool.name, tool.binding) for tool in toolkit if tool.binding)
        found = [(name, one.method.upper(), one.path, kinds[tool]) for tool, one in bound]
        print(f"{name[:40]:40} {len(found):4}  {_counts(found)}")
        rows += found
    if not rows:
        print(f"no documents in {options.data}")
        return 2
    answered = sum(kind.word in STATEFUL for *_, kind in rows) / len(rows)
    viewed = sum(kind.word == "view" for *_, kind in rows) / len(rows)
    print(f"\n{len(rows)} operations in {seconds:.2f} s of CPU: {_counts(rows)}")
    print(f"{answered:.1%} have a kind that a state answers, {viewed:.1%} read what no operation changes (`view`)")
    if options.draw is not None:
        drawn = random.Random(options.draw).sample(rows, min(100, len(rows)))
        for name, method, path, kind in drawn:
            things = f" of {kind.things.name} by {kind.things.key}" if kind.things else ""
            print(f"{name[:6]} {method} {path}: {kind.word}{things}: {kind.why}")
    return 0 if answered >= LEAST and seconds <= MOST_S else 1


def read_documents(folder: Path) -> Iterator[tuple[str, Toolkit]]:
    """Yield each document that can be read, by its file's name."""
    for path in sorted(path for each in FOLDERS for path in (folder / each).glob("*")):
        try:
            if path.suffix == ".gz":
                with gzip.open(path, "rt", encoding="utf-8") as text:
                    yield path.name, Toolkit.from_openapi(parse_document(text.read(), where=path.stem))
            else:
                yield path.name, Toolkit.from_openapi(path)
        except (ToolkitError, json.JSONDecodeError):
            continue  # a part of another document, or one that is broken on purpose


def _counts(rows: list[tuple[str, str, str, Kind]]) -> str:
    counts = Counter(kind.word for *_, kind in rows)
    return ", ".join(f"{word} {count}" for word, count in counts.most_common())
