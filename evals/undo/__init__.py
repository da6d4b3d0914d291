"""`undo`: undoing calls, checked on the benchmark's real classes, and undoing plans on the order service."""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, product
from random import Random
from time import perf_counter
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import GeckoContext, Models, Scenario, Toolkit, World, create_gecko_agent, undo_message
from gecko_graph.real.bindings import replaced
from gecko_graph.scenario import examples, order_service
from gecko_graph.state import Json, JsonObject
from gecko_graph.testing import recorded
from gecko_graph.training.checks import KNOBS
from gecko_graph.training.vary import vary
from gecko_graph.training.walks import Walk
from gecko_graph.undo import UndoFinder
from gecko_graph.values.difference import json_equal, make_patch
from gecko_graph.values.digest import digest
from gecko_graph.values.patch import tokens
from gecko_graph.values.places import scalars_of, value_at

from ..bfcl.classes import RUNTIME
from ..bfcl.contracted import CLASSES, class_toolkit
from ..bfcl.differential import Real, Start, Values, answered, public, random_step, values_of
from ..bfcl.fidelity import recorded_calls
from ..harness.options import SHARED, EvalError, read_jsonl
from ..loop import Given
from ..loop.tasks import kits
from ..suites.fidelity import FILES

MOST, DEEP, POOL, NEAR = 1_500, 20_000, 40, 12
"""Calls tried for one write: for two steps with all known values, for three with those of call, result and change.

Then the most values per argument, and the most values of call, result and change.
"""
PARTS = ("kits", "classes", "plans")


def run(argv: Sequence[str]) -> int:
    """Measure; return 1 if a suggested undo does not restore the state, or too few are found."""
    parser = argparse.ArgumentParser(prog="python -m evals undo", description=__doc__)
    parser.add_argument("--classes", default=",".join(CLASSES), metavar="NAME,...", help="real classes to use (all)")
    parser.add_argument("--writes", type=int, default=60, metavar="N", help="writes of each real class (60)")
    parser.add_argument("--plans", type=int, default=300, metavar="N", help="plans on the order service (300)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="seed of the first of these plans (0)")
    parser.add_argument("--only", default=",".join(PARTS), metavar="PART,...", help=", ".join(PARTS))
    given, failed = parser.parse_args(argv), 0
    for name in given.only.split(","):
        try:
            failed += globals()[f"measure_{name}"](given) if name in PARTS else parser.error(f"--only: {name!r}")
        except EvalError as missing:
            print(f"{name}: skipped: {missing}")
    return 1 if failed else 0


def measure_kits(given: Any) -> int:
    """Print how many random writes of files, phone, shop and order can be undone, and how long the search takes."""
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
    """Print, by class, how many writes can be undone according to exhaustive search, and how many undos are found."""
    have = found = told = wrong = 0
    for kind, configs, values in classes(given.classes.split(",")):
        counts = look_at_class(kind, configs, values, given.writes)
        print(f"{kind}: {', '.join(f'{count} {word}' for word, count in counts.items())}", flush=True)
        have, found = have + counts["have one"], found + counts["of these found"]
        told, wrong = told + counts["told"], wrong + counts["told and wrong"]
    print(f"all: {found} of {have} found; of {told} that were told {wrong} do not restore the real state")
    return int(wrong > 0 or found < 0.95 * have)


def look_at_class(kind: str, configs: Sequence[tuple[str, JsonObject]], values: Values, writes: int) -> Counter[str]:
    counts: Counter[str] = Counter(dict.fromkeys(("writes", "have one", "of these found", "told", "told and wrong"), 0))
    toolkit = class_toolkit(kind)
    finder = UndoFinder(toolkit)
    for real, before, after, (name, args), result in random_writes(kind, configs, values, writes):
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


def classes(kinds: Sequence[str]) -> Iterator[tuple[str, list[Any], Values]]:
    """Yield the real classes, each with the benchmark's states and the values of recorded calls."""
    tasks = list(read_jsonl(SHARED / "bfcl_multiturn_tasks.jsonl.gz"))
    files = [SHARED / each for each in FILES]
    values = Values.of(one for file in files for task in read_jsonl(file) for one in recorded_calls(task))
    for kind in kinds:
        yield kind, [(row["id"], row["initial_config"][kind]) for row in tasks if kind in row["initial_config"]], values


def random_writes(kind: str, configs: Sequence[tuple[str, JsonObject]], values: Values, writes: int) -> Iterator[Any]:
    """Yield random writes of a class: the class, the states before and after, the call, and its result."""
    seed = made = 0
    while configs and made < writes and seed < 20 * writes:
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
            if not json_equal(public(before), public(after)):
                made += 1
                yield real, before, after, (name, args), result


def call(real: Real, state: JsonObject, name: str, args: JsonObject) -> tuple[Json, JsonObject]:
    """Return the real class's answer to a call in a state, and the state after it."""
    instances = real.classes.instances(state)
    result, _ = answered(getattr(instances[real.start.kind], name), args)
    return result, real.classes.read(instances)


def way_of(finder: UndoFinder, toolkit: Toolkit, name: str, args: JsonObject, before: JsonObject) -> Any:
    """Return the calls suggested to undo a write, from contracts alone; None if there are none."""
    hidden: Any = before[RUNTIME]  # contracts also keep the classes' private attributes
    begin = {key: {**part, **hidden.get(key, {}).get("private", {})} for key, part in public(before).items()}
    world = World(toolkit, state=begin, context=KNOBS)
    step = world.call({"name": name, "args": args})
    if "outcome" not in step or step["outcome"]["status"] != "ok" or not step["outcome"]["patch"]:
        return None
    found = finder.find(step["call"], step["outcome"], begin, world.state)
    return found["calls"] if found["status"] == "found" else None


def play(real: Real, state: JsonObject, way: Sequence[Any], result: Json) -> JsonObject:
    """Return the real state after the suggested calls, with their holes filled from the real result."""
    for each in way:
        args = dict(each["args"])
        for hole in each["bindings"]:
            value = value_at(result, hole["path"])
            args = args if value is None else replaced(args, hole["argument"], value)
        _, state = call(real, state, each["name"], args)
    return state


def search(real: Real, before: JsonObject, after: JsonObject, toolkit: Toolkit, args: JsonObject, result: Json) -> bool:
    """Return whether one or more calls of the class restore the state, trying all known values."""
    near, wide = values_around(before, after, args, result)
    goal, narrow = public(before), [each for each in wide if each in near[:NEAR]] + ["..", True, False]
    first = Reach(real, goal, toolkit, wide, most=MOST)
    return first.reaches(after, 2) or Reach(real, goal, toolkit, narrow, most=DEEP).reaches(after, 3)


def values_around(
    before: JsonObject, after: JsonObject, args: JsonObject, result: Json
) -> tuple[list[Json], list[Json]]:
    """Return the values of a call, its result and its change; and these with the values of the states."""
    goal, wide = public(before), list[Json]()
    patch = [*make_patch(public(after), goal), *make_patch(goal, public(after))]
    changes = [each for one in patch for each in scalars_of([one.get("value"), tokens(one["path"])])]
    near = [*args.values(), *(each for _, each in values_of(result)), *changes]
    for value in [*near, *(each for _, each in values_of([goal, public(after)])), "..", True, False]:
        if value not in wide and not isinstance(value, dict):
            wide.append(value)
    return near, wide


class Reach:
    """A search on the real class with a limited number of calls."""

    def __init__(self, real: Real, goal: JsonObject, toolkit: Toolkit, pool: Sequence[Json], *, most: int) -> None:
        self._real, self._goal = real, goal
        self.options = [*options(toolkit, pool)]
        self.calls, self._most = 0, most

    def reaches(self, start: JsonObject, depth: int) -> bool:
        """Return whether at most `depth` calls lead to the goal; each state is expanded once."""
        states, seen = [start], {digest(public(start))}
        for _ in range(depth):
            found = list[JsonObject]()
            for each in self._ends(states):
                if json_equal(public(each), self._goal):
                    return True
                if (mark := digest(public(each))) not in seen:
                    seen.add(mark)
                    found.append(each)
            states = found
        return False

    def _ends(self, states: Iterable[JsonObject]) -> Iterator[JsonObject]:
        """Yield the states after one more call."""
        for state in states:
            for name, tried in self.options:
                self.calls += 1
                if self.calls > self._most:
                    return
                with suppress(ValueError, TypeError):
                    yield call(self._real, state, name, tried)[1]


def options(toolkit: Toolkit, pool: Sequence[Json]) -> Iterator[tuple[str, JsonObject]]:
    """Yield calls of all tools that write, with the pool's values of the right types; at most 200 per tool."""
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


def measure_plans(given: Any) -> int:
    """Carry out random plans on the order service, and undo them by the offered plan; orders are a journal there.

    A plan has writes of at least two tools. A refund cannot be undone there, nor can the order that was refunded: the
    end state must be the start state with the writes that the answer says were not undone.
    """
    whole = right = calls = 0
    tools: Counter[str] = Counter()
    for seed in range(given.first, given.first + given.plans):
        rng = Random(seed)
        with order_service() as service:
            kit = with_journal(service.toolkit())
            for _ in range(3):
                service_call(kit, "placeOrder", sku=rng.choice(["MUG", "TEA"]), quantity=1)
            start, plan = service.state(), draw_plan(rng, service.state())
            agent = create_gecko_agent(
                kit, model=Models(planner=recorded(planner=[[*plan, {"say": "Done."}]])), interrupt_on="none",
                checkpointer=InMemorySaver(), context=GeckoContext(),
            )  # fmt: skip
            config: Any = {"configurable": {"thread_id": "1"}}
            checks = [{"description": "anything", "check": "True"}]
            asked: Any = ("user", json.dumps(plan))  # so that the values are the user's own
            out = agent.invoke({"messages": [asked], "task_state": start, "checklist": checks}, config)
            made = [each for each in out["execution"]["calls"] if each["status"] == "ok"]
            calls += len(made)
            tools.update(each["call"]["name"] for each in made)
            ways = out["execution"].get("undo", [])
            left = [each["call"]["id"] for each in ways if each["status"] != "found"]
            agent.invoke({"messages": [undo_message()]}, config)
            kept = [each for each in made if each["call"]["id"] in left]
            right += len(made) == len(plan) and {**service.state(), "orders": 0} == expect(start, kept)
            whole += not kept
            seen = seed + 1 - given.first
            if seen % 20 == 0 or seen == given.plans:
                print(f"plans: {right} of {seen} were undone, except for the orders and the writes reported as kept")
                print(f"  {whole} with an undo for each write; {calls} writes: {dict(tools)}", flush=True)
    return int(right < given.plans)


def with_journal(kit: Toolkit) -> Toolkit:
    """Return the service's tools with its orders declared as a journal."""
    schema = {"type": "object", "properties": {"orders": {"x-journal": True}}}
    return Toolkit(list(kit), lets=kit.lets, invariants=kit.invariants, state_schema=schema)


def service_call(kit: Toolkit, name: str, **args: Json) -> None:
    real: Any = kit[name].real
    real(**args)


def draw_plan(rng: Random, state: JsonObject) -> list[JsonObject]:
    """Return two to four random writes, of at least two tools."""
    orders = rng.sample(sorted(state["orders"]), len(state["orders"]))
    names = ["placeOrder", "cancelOrder"]
    names += [rng.choice([*names, "refundOrder"]) for _ in range(rng.randrange(3))]
    plan: list[JsonObject] = []
    for name in rng.sample(names, len(names)):
        order = orders.pop() if name != "placeOrder" and orders else ""
        new: JsonObject = rng.choice([{"sku": "MUG", "quantity": 1}, {"sku": "TEA", "quantity": rng.randrange(1, 4)}])
        args: JsonObject = {"order_id": order} if order else new
        more = {"amount": rng.randrange(1, 6)} if order and name == "refundOrder" else {}
        plan.append({"call": name if order else "placeOrder", "args": {**args, **more}})
    return plan


def expect(start: JsonObject, kept: Iterable[Any]) -> JsonObject:
    """Return the state after the calls that were not undone, without the orders."""
    balance, items = start["balance"], {key: {**item} for key, item in start["items"].items()}
    for each in kept:
        name, args, result = each["call"]["name"], each["call"]["args"], each["result"]
        if name == "refundOrder":
            balance += args["amount"]
            continue
        sign = 1 if name == "cancelOrder" else -1
        balance += sign * result["total"]
        items[result["sku"]]["stock"] += sign * result["quantity"]
    return {**start, "balance": round(balance, 2), "items": items, "orders": 0}
