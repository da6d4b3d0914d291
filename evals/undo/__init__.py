"""`undo`: ways back, looked at on the benchmark's real classes, and plans on the order service that are undone."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, product
from random import Random
from time import perf_counter
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import GeckoContext, Models, Scenario, Toolkit, World, create_gecko_agent, undo_message
from gecko_graph.scenario import examples, order_service
from gecko_graph.state import Json, JsonObject
from gecko_graph.testing import recorded
from gecko_graph.training.tasks import KNOBS
from gecko_graph.training.vary import vary
from gecko_graph.training.walks import Walk
from gecko_graph.values.difference import json_equal
from gecko_graph.world.undo import UndoFinder

from ..bfcl.classes import RUNTIME
from ..bfcl.contracted import CLASSES, class_toolkit
from ..bfcl.differential import Real, Start, Values, answered, public, random_step, values_of
from ..bfcl.fidelity import recorded_calls
from ..harness.options import SHARED, EvalError, read_jsonl
from ..loop import Given
from ..loop.tasks import kits
from ..suites.fidelity import FILES

MOST, POOL = 1_500, 40
"""Calls that the exhaustive search tries for one write, and values of one argument."""


def run(argv: Sequence[str]) -> int:
    """Measure; returns 1 where a way back that was told does not restore, or too few are found."""
    parser = argparse.ArgumentParser(prog="python -m evals undo", description=__doc__)
    parser.add_argument("--writes", type=int, default=60, metavar="N", help="writes of each real class (60)")
    parser.add_argument("--plans", type=int, default=300, metavar="N", help="plans on the order service (300)")
    parser.add_argument("--only", default="kits,classes,plans", metavar="PART,...", help="kits, classes, plans")
    given, failed = parser.parse_args(argv), 0
    for name in given.only.split(","):
        try:
            part = {"kits": measure_kits, "classes": measure_classes, "plans": measure_plans}[name]
            failed += part(given)
        except EvalError as missing:
            print(f"{name}: left out: {missing}")
    return 1 if failed else 0


def measure_kits(given: Any) -> int:
    """Print, for random writes of files, phone, shop and order, how many have a way back, and how long that takes."""
    order = Scenario.load(examples()["order"])
    known: dict[str, tuple[Toolkit, list[JsonObject]]] = {
        **kits(Given(SHARED, 0)),
        "order": (order.tools, [order.state]),
    }
    for name, (toolkit, states) in known.items():
        finder, words, times = UndoFinder(toolkit), defaultdict[str, Counter[str]](Counter), list[float]()
        for seed in range(given.writes // 4):
            rng = Random(seed)
            walk = Walk(vary(World(toolkit, context=KNOBS), rng.choice(states), rng), rng)
            for _ in range(20):
                before = walk.world.state
                step = walk.move(rng.choice(list(toolkit)))
                if step and step["outcome"]["patch"]:
                    started = perf_counter()
                    found = finder.find(step["call"], step["outcome"], before, walk.world.state)
                    times.append(perf_counter() - started)
                    words[step["call"]["name"]][found["status"]] += 1
        print(f"{name}: {len(times)} writes, mean {sum(times) / len(times):.3f} s, longest {max(times):.3f} s")
        for tool, counts in sorted(words.items()):
            print(f"  {tool}: {', '.join(f'{count} {word}' for word, count in counts.most_common())}")
    return 0


# the real classes ---------------------------------------------------------------------------------------------------


def measure_classes(given: Any) -> int:
    """Print, class by class, how many writes have a way back by exhaustive search, and how many of them are found."""
    tasks = list(read_jsonl(SHARED / "bfcl_multiturn_tasks.jsonl.gz"))
    files = [SHARED / each for each in FILES]
    values = Values.of(one for file in files for task in read_jsonl(file) for one in recorded_calls(task))
    have = found = told = wrong = 0
    for kind in CLASSES:
        configs = [(row["id"], row["initial_config"][kind]) for row in tasks if kind in row["initial_config"]]
        counts = look_at_class(kind, configs, values, given.writes)
        print(f"{kind}: {', '.join(f'{count} {word}' for word, count in counts.items())}", flush=True)
        have, found = have + counts["have one"], found + counts["of these found"]
        told, wrong = told + counts["told"], wrong + counts["told and wrong"]
    print(f"all: {found} of {have} found; of {told} that were told {wrong} do not restore the real state")
    return int(wrong > 0 or found < 0.95 * have)


def look_at_class(kind: str, configs: Sequence[tuple[str, JsonObject]], values: Values, writes: int) -> Counter[str]:
    """Return what became of so many random writes of a class."""
    counts: Counter[str] = Counter(dict.fromkeys(("writes", "have one", "of these found", "told", "told and wrong"), 0))
    toolkit, seed = class_toolkit(kind), 0
    finder = UndoFinder(toolkit)
    while configs and counts["writes"] < writes and seed < 20 * writes:
        seed += 1
        rng = Random(f"{kind} {seed}")
        task, config = rng.choice(configs)
        real = Real(Start(kind, task, config))
        for _ in range(rng.randrange(1, 6)):
            name, args = random_step(rng, kind, values, public(real.state))
            before = real.state
            try:
                result, after = call(real, before, name, args)
            except ValueError:
                break
            real.state = after
            if json_equal(public(before), public(after)):
                continue
            counts["writes"] += 1
            way = way_of(finder, toolkit, name, args, before)
            restored = None
            if way is not None:
                counts["told"] += 1
                restored = json_equal(public(play(real, after, way, result)), public(before))
                counts["told and wrong"] += not restored
            exists = bool(restored) or search(real, before, after, toolkit, args, result)
            counts["have one"] += exists
            counts["of these found"] += bool(restored)
    return counts


def call(real: Real, state: JsonObject, name: str, args: JsonObject) -> tuple[Json, JsonObject]:
    """Return what the real class answers to a call in a state, and the state after it."""
    instances = real.classes.instances(state)
    result, _ = answered(getattr(instances[real.start.kind], name), args)
    return result, real.classes.read(instances)


def way_of(finder: UndoFinder, toolkit: Toolkit, name: str, args: JsonObject, before: JsonObject) -> Any:
    """Return the calls that are told for a write, by contract alone; None where none are."""
    hidden: Any = before[RUNTIME]  # contracts keep what the classes keep beside their attributes, too
    begin = {key: {**part, **hidden.get(key, {}).get("private", {})} for key, part in public(before).items()}
    world = World(toolkit, state=begin, context=KNOBS)
    step = world.call({"name": name, "args": args})
    if "outcome" not in step or step["outcome"]["status"] != "ok" or not step["outcome"]["patch"]:
        return None
    found = finder.find(step["call"], step["outcome"], begin, world.state)
    return found["calls"] if found["status"] == "found" else None


def play(real: Real, state: JsonObject, way: Sequence[Any], result: Json) -> JsonObject:
    """Return the real state after the calls that were told, their holes filled from the real result."""
    for each in way:
        args = dict(each["args"])
        for hole in each["bindings"]:
            key, path = hole["argument"].removeprefix("$."), hole["path"].removeprefix("$.").split(".")
            value: Any = result
            for part in path:
                value = value.get(part) if isinstance(value, dict) else None
            args[key] = args.get(key) if value is None else value
        _, state = call(real, state, each["name"], args)
    return state


def search(real: Real, before: JsonObject, after: JsonObject, toolkit: Toolkit, args: JsonObject, result: Json) -> bool:
    """Return whether any call of the class, or two, restore the state: every value around is tried."""
    goal, pool = public(before), list[Json]()
    for value in [*args.values(), *(each for _, each in values_of([result, public(before), public(after)]))]:
        if value not in pool and not isinstance(value, dict):
            pool.append(value)
    pool += ["..", True, False]
    left = [MOST]
    reached = [*ends(real, [after], toolkit, pool, left)]
    second = (each for each in reached[:20] if not json_equal(public(each), public(after)))
    return any(json_equal(public(each), goal) for each in (*reached, *ends(real, second, toolkit, pool, left)))


def ends(
    real: Real, states: Iterable[JsonObject], toolkit: Toolkit, pool: Sequence[Json], left: list[int]
) -> Iterator[JsonObject]:
    """Yield the states that one more call leads to."""
    for state in states:
        for name, tried in options(toolkit, pool):
            left[0] -= 1
            if left[0] < 0:
                return
            with suppress(ValueError, TypeError):
                yield call(real, state, name, tried)[1]


def options(toolkit: Toolkit, pool: Sequence[Json]) -> Any:
    """Yield calls of all tools that write, with the values of the pool that their types take."""
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list}
    for tool in toolkit:
        rules = tool.parameters["properties"]
        if tool.reads:
            continue
        values = []
        for rule in rules.values():
            kind: Any = kinds.get(str(rule.get("type")), dict)
            fits = [one for one in pool if isinstance(one, kind) and (kind is bool or not isinstance(one, bool))]
            values.append([*rule.get("enum", []), *fits][:POOL])
        for some in islice(product(*values), 200):
            yield tool.name, dict(zip(rules, some, strict=True))


# plans on the order service -----------------------------------------------------------------------------------------


def measure_plans(given: Any) -> int:
    """Carry random plans out on the order service, and undo them by the offered plan; orders are a journal there."""
    same = undone = calls = 0
    for seed in range(given.plans):
        rng = Random(seed)
        with order_service() as service:
            toolkit = service.toolkit()
            schema = {**(toolkit.state_schema or {"type": "object"})}
            schema["properties"] = {**schema.get("properties", {})}
            schema["properties"]["orders"] = {**schema["properties"].get("orders", {}), "x-journal": True}
            kit = Toolkit(list(toolkit), lets=toolkit.lets, invariants=toolkit.invariants, state_schema=schema)
            start = service.state()
            items = [key for key, item in start["items"].items() if item["stock"]]
            plan: list[JsonObject] = [
                {"call": "placeOrder", "args": {"sku": rng.choice(items), "quantity": 1}}
                for _ in range(rng.randrange(1, 4))
            ]
            agent = create_gecko_agent(
                kit, model=Models(planner=recorded(planner=[[*plan, {"say": "Done."}]])), interrupt_on="none",
                checkpointer=InMemorySaver(), context=GeckoContext(undo_s=2),
            )  # fmt: skip
            config: Any = {"configurable": {"thread_id": "1"}}
            checks = [{"description": "anything", "check": "true"}]
            agent.invoke({"messages": [("user", "go")], "task_state": start, "checklist": checks}, config)
            calls += len(service.log())
            agent.invoke({"messages": [undo_message()]}, config)
            end = service.state()
            undone += len(end["orders"]) > len(start["orders"])
            same += {**end, "orders": 0} == {**start, "orders": 0}
    print(f"plans: {same} of {given.plans} came back to the start but for the orders; {calls} real calls in {undone}")
    return int(same < given.plans)
