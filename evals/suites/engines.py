"""`engines`: the quick test of a value compared with the whole check, on recorded calls, documents and random pairs."""

from __future__ import annotations

import gzip
import json
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

from gecko_graph import Toolkit
from gecko_graph.errors import GeckoError
from gecko_graph.schemas.made_up import Impossible, make_value
from gecko_graph.schemas.rules import explain, quick_test, rules_of
from gecko_graph.state import Json, JsonObject
from gecko_graph.tools.function_dicts import spec_of_dict
from gecko_graph.values.digest import find_non_json
from gecko_graph.values.documents import parse_document

from ..engines.pairs import change, make_pair
from ..harness.figures import Case, Record, Table, median_of
from ..harness.options import read_jsonl
from ..harness.suite import Expectation, Suite, Summary, by_group
from .wild import FOLDERS

CHUNK = 1_000
MUTANTS = 20
"""Changed values per made-up value of a document's schema."""
KINDS = {
    "both_valid": "valid by both",
    "both_wrong": "wrong by both",
    "only_quick": "valid by the quick test alone",
    "only_whole": "valid by the whole check alone",
    "untested": "left to the whole check",
}
Pair = tuple[Any, Json]
Pairs = Callable[[], Iterator[Pair]]


class Engines(Suite):
    """Engines: does `jsonschema-rs`, when it is used, agree with our `jsonschema` on each value?

    Differences are counted in both directions; the schema and the value of each are listed. `left to the whole check`
    are pairs whose schema has no quick test, or whose value cannot be stored as JSON in a checkpoint.
    """

    name = "engines"
    asks = False
    tools = "none"
    examples = ("", "--pairs 200000 --only 'random*'")

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--pairs", type=int, default=50_000, metavar="N", help="random pairs (50,000)")

    def cases(self) -> Iterator[Case]:
        data = self.options.data
        for at in range(0, sum(1 for _ in read_jsonl(self.options.dataset("bfcl_calls.jsonl.gz"))), CHUNK):
            yield Case(f"calls {at}", partial(recorded, data, at), group="recorded calls")
        for folder in FOLDERS:
            for path in sorted((data / folder).iterdir()):
                yield Case(path.name, partial(of_document, path), group=folder)
        for at in range(0, self.options.own.pairs, CHUNK):
            yield Case(f"random {at}", partial(random_pairs, at), group="random pairs")

    def run_case(self, case: Case) -> JsonObject:
        pairs: Pairs = case.data
        return compare(pairs())

    def summarise(self, records: Sequence[Record]) -> Summary:
        table = Table("Verdicts", ["", "pairs", *KINDS.values()])
        times = Table("Processor time, µs a value", ["", "whole check", "quick test"], "Where there is a quick test.")
        done = [record for record in records if record.done]
        for group, some in [*by_group(done).items(), ("all", done)]:
            sums = [sum(record.values[kind] for record in some) for kind in KINDS]
            table.add(group, sum(sums), *sums)
            tested = [record.values for record in some if record.values["us_quick"]]
            if tested and group != "all":
                times.add(group, *(median_of([one[key] for one in tested]) for key in ("us_whole", "us_quick")))
        differing = [one for record in done for one in record.values["differing"]]
        text = "what the quick test finds valid, the whole check finds valid"
        return Summary([table, times], [Expectation(text, not sum(r.values["only_quick"] for r in done))], differing)


def compare(pairs: Iterator[Pair]) -> JsonObject:
    """Return how both judge pairs of schema and value, and their time per value."""
    counts, differing, spent = Counter[str](), list[str](), [0.0, 0.0]
    for _, group in groupby(pairs, key=lambda pair: id(pair[0])):
        rules = test = None
        for one, value in group:
            if rules is None:
                rules = rules_of(one)
                test = quick_test(rules)
            if test is None or find_non_json(value):
                counts["untested"] += 1
                continue
            began = process_time()
            is_valid = next(explain(rules, value), None) is None
            between = process_time()
            is_quick = test(value)
            spent[0] += between - began
            spent[1] += process_time() - between
            kind = (
                ("both_valid" if is_quick else "only_whole") if is_valid else "only_quick" if is_quick else "both_wrong"
            )
            counts[kind] += 1
            if is_valid is not is_quick:
                differing.append(f"{kind}: {json.dumps(one)[:500]}: {json.dumps(value)[:200]}")
    tested = max(sum(counts.values()) - counts["untested"], 1)
    times = {"us_whole": 1e6 * spent[0] / tested, "us_quick": 1e6 * spent[1] / tested}
    return {**{kind: counts[kind] for kind in KINDS}, **times, "differing": differing}


def recorded(data: Path, at: int) -> Iterator[Pair]:
    """Yield the recorded calls from a row on: the parameters of the called function, and the arguments."""
    tasks = {(task["dataset"], task["task_id"]): task for task in read_jsonl(data / "bfcl_tasks.jsonl.gz")}
    for number, row in enumerate(read_jsonl(data / "bfcl_calls.jsonl.gz")):
        if not at <= number < at + CHUNK:
            continue
        specs = [spec_of_dict(one, where="") for one in tasks[row["dataset"], row["task_id"]]["functions"]]
        by_name = {spec.name.replace(".", "_"): spec.parameters for spec in specs}
        for call in row["calls"]:
            if parameters := by_name.get(call["name"].replace(".", "_")):
                yield parameters, call["arguments"]


def of_document(path: Path) -> Iterator[Pair]:
    """Yield made-up values for the parameters and results of a document's tools, changed values, and its examples."""
    try:
        is_packed = path.suffix == ".gz"
        text = gzip.decompress(path.read_bytes()).decode() if is_packed else ""
        toolkit = Toolkit.from_openapi(parse_document(text, where=path.name) if is_packed else path)
    except GeckoError:
        return
    for tool in toolkit:
        shown = [(tool.parameters, each.args) for each in tool.examples]
        for schema in (tool.parameters, tool.result):
            if schema is not None:
                try:
                    yield from mutants(schema, make_value(schema, seed=0, key=tool.name), tool.name)
                except Impossible:
                    continue
        yield from shown


def mutants(schema: Any, value: Json, name: str) -> Iterator[Pair]:
    chance = Random(name)
    yield schema, value
    yield from ((schema, change(chance, value)) for _ in range(MUTANTS))


def random_pairs(at: int) -> Iterator[Pair]:
    return map(make_pair, range(at, at + CHUNK))


SUITE = Engines
