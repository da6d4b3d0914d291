"""Checks of tasks made for files, phone and shop: solved by their solutions, near-misses refused, no useless writes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random
from typing import NamedTuple

from gecko_graph import Scenario, Toolkit, World
from gecko_graph.state import JsonObject
from gecko_graph.training.checks import KNOBS
from gecko_graph.training.env import GeckoEnv
from gecko_graph.training.near import cut, near_misses, play
from gecko_graph.training.tasks import A_SEQUENCE, CHAINED, accepts, find_free, make_tasks, sequence_of
from gecko_graph.training.walks import CHAIN, Move, Start
from gecko_graph.values.documents import read_document

from ..bfcl.contracted import class_toolkit
from ..harness.options import ROOT, read_jsonl
from . import Given, Told

COUNT, STATES = 1_000, 20
FILES, SHOP, PHONE = "GorillaFileSystem", "../repros/exact/shop/shop", ROOT / "examples" / "phone" / "cases"


@cache
def kits(given: Given) -> dict[str, tuple[Toolkit, list[JsonObject]]]:
    """Return toolkits by name, with start states."""
    rows = read_jsonl(given.data / "bfcl_multiturn_tasks.jsonl.gz")
    roots = [row["initial_config"][FILES]["root"] for row in rows if "root" in row["initial_config"].get(FILES, {})]
    trees = [{FILES: {"tree": root, "cwd": [*root][:1]}} for root in roots[:STATES]]
    phones = [Scenario.load(file) for file in sorted(PHONE.glob("*.gecko.yaml"))[:STATES]]
    document, ours = given.data / f"{SHOP}.openapi.yaml", ROOT / "evals" / "loop"
    shop = Toolkit.from_openapi(document).with_contracts(ours / "fjord.contracts.yaml")
    return {
        "files": (class_toolkit(FILES), trees),
        "phone": (phones[0].tools, [each.state for each in phones]),
        "shop": (shop, [read_document(ours / "fjord.state.yaml")]),
    }


class Looked(NamedTuple):
    """The results of checking a task."""

    solved: bool
    misses: int
    accepted: int
    idle: int


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


def tell(name: str, made: Sequence[Scenario], seconds: float, wanted: int) -> Iterator[Told]:
    """Yield the checks of a toolkit's tasks."""
    found = [look(task, at) for at, task in enumerate(made)]
    most = max(Counter(map(sequence_of, made)).values(), default=0)
    deep, words = sum(CHAINED in task.categories for task in made), {task.words for task in made}
    yield Told(f"{name}: {len(made)} tasks, {seconds / max(1, len(made)):.2f} CPU s each", len(made) == wanted)
    yield Told(f"{name}: {sum(each.solved for each in found)} solutions accepted", all(each.solved for each in found))
    misses, accepted = sum(each.misses for each in found), sum(each.accepted for each in found)
    yield Told(f"{name}: {misses} near-misses with another end, {accepted} accepted", not accepted)
    yield Told(f"{name}: {sum(each.idle for each in found)} writes without use", not any(each.idle for each in found))
    yield Told(f"{name}: {len(words)} different", len(words) == len(made))
    yield Told(f"{name}: at most {most} of a sequence", most <= A_SEQUENCE)
    yield Told(f"{name}: {deep} with a chain of {CHAIN}", deep * 2 >= len(made))


def measure(given: Given) -> Iterator[Told]:
    """Make and check tasks of each toolkit."""
    for name, (toolkit, states) in kits(given).items():
        started, wanted = time.process_time(), given.limit or COUNT
        made = list(make_tasks(toolkit, states, wanted))
        yield from tell(name, made, time.process_time() - started, wanted)
