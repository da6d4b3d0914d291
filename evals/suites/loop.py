"""Training data without a model: does ToolMatch agree with the official verdict, and are made tasks right?"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from gecko_graph import Scenario, Toolkit, World
from gecko_graph.state import JsonObject
from gecko_graph.training.checks import KNOBS
from gecko_graph.training.env import GeckoEnv
from gecko_graph.training.match import tool_match
from gecko_graph.training.near import cut, near_misses, play
from gecko_graph.training.tasks import A_SEQUENCE, CHAINED, accepts, find_free, make_tasks, sequence_of
from gecko_graph.training.walks import CHAIN, Move, Start
from gecko_graph.values.documents import read_document

from ..bfcl.contracted import class_toolkit
from ..harness.figures import Case, Record, Table, share
from ..harness.options import ROOT, find, read_jsonl
from ..harness.suite import Expectation, Suite, Summary

AGREED, REFUSED = 0.985, 14
STATES = 20
FILES, SHOP, PHONE = "GorillaFileSystem", "../repros/exact/shop/shop", ROOT / "examples" / "phone" / "cases"
FJORD = ROOT / "evals" / "loop"
Kit = tuple[Toolkit, list[JsonObject]]
"""A toolkit with start states."""


class Loop(Suite):
    """Training data.

    "match": BFCL's recorded answers by ToolMatch with the allowed values, compared with the official verdict. "tasks":
    tasks made for files, phone and shop are solved by their solutions, refuse near-misses, and have no useless writes.
    """

    name = "loop"
    asks = False
    tools = "simulated"
    planner = None
    examples = ("", "--only match --answers 1000", "--only tasks --count 20")

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--answers", type=int, metavar="N", help="most recorded answers (all)")
        parser.add_argument("--count", type=int, default=1000, metavar="N", help="tasks of each toolkit (1000)")

    def cases(self) -> Iterator[Case]:
        data, own = self.options.data, self.options.own
        yield Case("match", partial(match_answers, data, own.answers), tools="none")
        for name, read in {"files": read_files, "phone": read_phone, "shop": read_shop}.items():
            yield Case(f"tasks: {name}", partial(look_at_tasks, read, data, own.count), group="tasks")

    def run_case(self, case: Case) -> JsonObject:
        values: JsonObject = case.data()
        return values

    def summarise(self, records: Sequence[Record]) -> Summary:
        done = {record.id: record.values for record in records if record.done}
        tables, expected, notes = [], list[Expectation](), list[str]()
        if match := done.pop("match", None):
            table = Table("Recorded answers by ToolMatch", ["as the official verdict", "matches that it refuses"])
            table.add(share(match["agreed"], match["answers"], tools="none"), match["refused"])
            tables.append(table)
            notes = [f"{count} times {cause}" for cause, count in match["causes"].items()]
            expected.append(Expectation(f"{AGREED:.1%} agree", match["agreed"] >= AGREED * match["answers"]))
            expected.append(Expectation(f"at most {REFUSED} matches are refused", match["refused"] <= REFUSED))
        if done:
            heads = ["tasks", "solutions accepted", "near-misses", "accepted", "writes without use", "different"]
            table = Table("Made tasks", ["", *heads, "most of a sequence", f"with a chain of {CHAIN}", "CPU s a task"])
            for name, one in done.items():
                counts = [one[key] for key in ("made", "solved", "misses", "accepted", "idle", "different")]
                table.add(name, *counts, one["most"], one["deep"], f"{one['seconds'] / max(1, one['made']):.2f}")
                expected += _expect(name, one)
            tables.append(table)
        return Summary(tables, expected, notes)


def _expect(name: str, one: JsonObject) -> Iterator[Expectation]:
    is_whole = one["made"] == one["wanted"] == one["different"]
    yield Expectation(f"{name}: all are made, no two alike", is_whole)
    yield Expectation(f"{name}: each solution is accepted", one["solved"] == one["made"])
    yield Expectation(f"{name}: no near-miss is accepted, no write is useless", not one["accepted"] + one["idle"])
    text = f"{name}: at most {A_SEQUENCE} of a sequence, and half with a chain of {CHAIN}"
    yield Expectation(text, one["most"] <= A_SEQUENCE and one["deep"] * 2 >= one["made"])


def match_answers(data: Path, most: int | None) -> JsonObject:
    """Return the agreement, and the disagreements by cause."""
    tasks = {(one["dataset"], one["task_id"]): one for one in read_jsonl(find("bfcl_tasks.jsonl.gz", data))}
    rows = (row for row in read_jsonl(find("bfcl_calls.jsonl.gz", data)) if row["calls"])
    agreed, refused, causes = Counter[bool](), 0, Counter[str]()
    for row in islice(rows, most):
        task, official = tasks[row["dataset"], row["task_id"]], row["official"]
        shown = {one["name"].replace(".", "_"): one["name"] for one in task["functions"]}
        own = shown if row["name_style"] == "underscore" else {}
        said = [{"name": own.get(one["name"], one["name"]), "arguments": one["arguments"]} for one in row["calls"]]
        tools, also = [_as_tool(one, task) for one in task["functions"]], task["possible_answer"]
        label = [{"name": name, "arguments": {}} for each in also for name in each]
        matches = tool_match(said, label, tools, also)
        agreed[matches == official["valid"]] += 1
        if matches != official["valid"]:
            refused += matches
            loose = tool_match(_loosened(said), label, tools, _loosened(also))
            cause = official["error_type"] if matches else "case or punctuation" if loose else "other"
            causes[f"{'match, officially wrong' if matches else 'no match, officially right'}: {cause}"] += 1
    return {"answers": agreed.total(), "agreed": agreed[True], "refused": refused, "causes": dict(causes.most_common())}


def _as_tool(function: JsonObject, task: JsonObject) -> JsonObject:
    schema = task["json_schemas"][function["name"]]
    plain = {"name": function["name"], "description": function.get("description", ""), "parameters": schema}
    return {"type": "function", "function": plain}


def _loosened(value: Any) -> Any:
    """Return a value with its texts normalised as BFCL compares them."""
    if isinstance(value, str):
        return "".join(sign for sign in value.lower().replace("'", '"') if sign not in " ,./-_*^")
    if isinstance(value, dict):
        return {key: _loosened(each) if key != "name" else each for key, each in value.items()}
    return [_loosened(each) for each in value] if isinstance(value, list) else value


def read_files(data: Path) -> Kit:
    rows = read_jsonl(find("bfcl_multiturn_tasks.jsonl.gz", data))
    roots = [row["initial_config"][FILES]["root"] for row in rows if "root" in row["initial_config"].get(FILES, {})]
    return class_toolkit(FILES), [{FILES: {"tree": root, "cwd": [*root][:1]}} for root in roots[:STATES]]


def read_phone(data: Path) -> Kit:
    phones = [Scenario.load(file) for file in sorted(PHONE.glob("*.gecko.yaml"))[:STATES]]
    return phones[0].tools, [each.state for each in phones]


def read_shop(data: Path) -> Kit:
    shop = Toolkit.from_openapi(find(f"{SHOP}.openapi.yaml", data)).with_contracts(FJORD / "fjord.contracts.yaml")
    return shop, [read_document(FJORD / "fjord.state.yaml")]


class Looked(NamedTuple):
    """The results of checking a task."""

    solved: bool
    misses: int
    accepted: int
    idle: int


def look_at_tasks(read: Any, data: Path, wanted: int) -> JsonObject:
    started = time.process_time()
    toolkit, states = read(data)
    made = list(make_tasks(toolkit, states, wanted))
    seconds = time.process_time() - started
    found = [look(task, at) for at, task in enumerate(made)]
    return {
        "wanted": wanted,
        "made": len(made),
        "seconds": seconds,
        **{key: sum(getattr(each, key) for each in found) for key in Looked._fields},
        "different": len({task.words for task in made}),
        "most": max(Counter(map(sequence_of, made)).values(), default=0),
        "deep": sum(CHAINED in task.categories for task in made),
    }


def look(task: Scenario, seed: int) -> Looked:
    """Play a task's solution, and near-misses from another seed than the task's."""
    start = Start(World(task.tools, state=task.state, context=KNOBS))
    moves = [Move(at, each["name"], each["args"]) for at, each in enumerate(task.solution)]
    env = GeckoEnv([task])
    env.reset(0)
    for call in task.solution:
        env.step([call])
    solved, free = env.step(answer="Done.").reward == 1.0, find_free(task.content["milestones"])
    end, (kept, pairs) = play(start, moves), cut(start, moves, free)
    idle = [each for each in moves if each not in kept and not task.tools.is_read(each.name)]
    misses = near_misses(start, moves, pairs, Random(seed))
    others = [miss for miss in misses if not end.is_same(start, miss, free)[0]]
    accepted = sum(accepts(task, start, miss) for miss in others)
    return Looked(solved, len(others), accepted, len(idle))


SUITE = Loop
