"""Undoing calls, checked on the benchmark's real classes, and undoing plans on the order service."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice, product
from pathlib import Path
from random import Random
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import GeckoContext, Models, Toolkit, World, create_gecko_agent, undo_message
from gecko_graph.real.bindings import replaced
from gecko_graph.scenario import order_service
from gecko_graph.state import Json, JsonObject
from gecko_graph.testing import recorded
from gecko_graph.training.checks import KNOBS
from gecko_graph.undo import UndoFinder
from gecko_graph.values.difference import json_equal, make_patch
from gecko_graph.values.digest import digest
from gecko_graph.values.patch import tokens
from gecko_graph.values.places import scalars_of, value_at

from ..bfcl.classes import RUNTIME
from ..bfcl.contracted import CLASSES, class_toolkit
from ..bfcl.differential import Real, Start, Values, answered, public, random_step, values_of
from ..bfcl.fidelity import recorded_calls
from ..harness.figures import Case, Record, Table, share
from ..harness.options import find, read_jsonl
from ..harness.suite import Expectation, Suite, Summary
from .fidelity import FILES, TASKS

MOST, DEEP, POOL, NEAR = 1_500, 20_000, 40, 12
"""Calls tried for one write: for two steps with all known values, for three with those of call, result and change.

Then the most values per argument, and the most values of call, result and change.
"""
COUNTS = ("writes", "have one", "of these found", "told", "told and wrong")


class Undo(Suite):
    """Ways back of writes.

    "classes": random writes on BFCL's real classes. The search knows the contracts alone; what it suggests is played on
    the real class. A write has a way back if that restores the state, or exhaustive search on the real class finds one.
    "plans": random plans of writes are carried out on the order service, and undone by the plan that is offered.
    """

    name = "undo"
    asks = False
    tools = "real"
    planner = None
    examples = ("", "--only 'TicketAPI,plans'", "--writes 10 --plans 20")

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--writes", type=int, default=60, metavar="N", help="writes of each real class (60)")
        parser.add_argument("--plans", type=int, default=300, metavar="N", help="plans on the order service (300)")

    def cases(self) -> Iterator[Case]:
        data, own = self.options.data, self.options.own
        for kind in CLASSES:
            yield Case(kind, partial(look_at_class, kind, data, own.writes), group="classes")
        for seed in range(self.options.seed, self.options.seed + own.plans):
            yield Case(f"plan {seed}", partial(undo_plan, seed), group="plans")

    def run_case(self, case: Case) -> JsonObject:
        values: JsonObject = case.data()
        return values

    def summarise(self, records: Sequence[Record]) -> Summary:
        classes, plans = ([one for one in records if one.done and one.group == key] for key in ("classes", "plans"))
        tables, expected = list[Table](), list[Expectation]()
        if classes:
            table = Table(
                "Writes of the real classes", ["class", "writes", "have a way back", "of these found", "wrong"]
            )
            for name, some in [*((one.id, [one]) for one in classes), ("all", classes)]:
                whole = {key: sum(one.values[key] for one in some) for key in COUNTS}
                found = share(whole["of these found"], whole["have one"], tools="real")
                table.add(name, whole["writes"], whole["have one"], found, whole["told and wrong"])
            tables.append(table)
            expected = [
                Expectation("each way back that is told restores the real state", not whole["told and wrong"]),
                Expectation("at least 95 % are found", whole["of these found"] >= 0.95 * whole["have one"]),
            ]
        if plans:
            table = Table(
                "Plans on the order service", ["plans", "undone as told", "with a way back for each", "writes"]
            )
            right, whole_ones = (sum(one.values[key] for one in plans) for key in ("right", "whole"))
            counts = (share(hits, len(plans), tools="real") for hits in (right, whole_ones))
            table.add(len(plans), *counts, sum(one.values["calls"] for one in plans))
            tables.append(table)
            expected.append(Expectation("the start state is back, but for what was said to stay", right == len(plans)))
        return Summary(tables, expected)


# the real classes ---------------------------------------------------------------------------------------------------


def look_at_class(kind: str, data: Path, writes: int) -> JsonObject:
    """Return how many writes can be undone according to exhaustive search, and how many of these undos are found."""
    counts: Counter[str] = Counter(dict.fromkeys(COUNTS, 0))
    toolkit = class_toolkit(kind)
    finder = UndoFinder(toolkit)
    rows = list(read_jsonl(find(TASKS, data)))
    configs = [(row["id"], row["initial_config"][kind]) for row in rows if kind in row["initial_config"]]
    files = [find(each, data) for each in FILES]
    values = Values.of(one for file in files for task in read_jsonl(file) for one in recorded_calls(task))
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
    return {**counts}


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


def undo_plan(seed: int) -> JsonObject:
    """Carry out a random plan on the order service, and undo it by the offered plan; orders are a journal there.

    A plan has writes of at least two tools. A refund cannot be undone there, nor can the order that was refunded: the
    end state must be the start state with the writes that the answer says were not undone.
    """
    rng = Random(seed)
    with order_service() as service:
        kit = with_journal(service.toolkit())
        for _ in range(3):
            place: Any = kit["placeOrder"].real
            place(sku=rng.choice(["MUG", "TEA"]), quantity=1)
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
        left = [each["call"]["id"] for each in out["execution"].get("undo", []) if each["status"] != "found"]
        agent.invoke({"messages": [undo_message()]}, config)
        kept = [each for each in made if each["call"]["id"] in left]
        right = len(made) == len(plan) and {**service.state(), "orders": 0} == expect(start, kept)
    return {"right": right, "whole": not kept, "calls": len(made)}


def with_journal(kit: Toolkit) -> Toolkit:
    """Return the service's tools with its orders declared as a journal."""
    schema = {"type": "object", "properties": {"orders": {"x-journal": True}}}
    return Toolkit(list(kit), lets=kit.lets, invariants=kit.invariants, state_schema=schema)


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


SUITE = Undo
