"""`milestones`: derived from one conversation, tested on others: successes accepted, failures caught.

BFCL's multi-turn tasks as conversations: the truth, two models' recorded plans, and the truth with one change. A plan's
success is decided on the real classes: by the official comparison of the end states, and by finding each result of the
truth's reads among the plan's results. The conversations run by contract, independently of this.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from random import Random
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from gecko_graph import GeckoContext, Toolkit, World
from gecko_graph.conversation.channels import address
from gecko_graph.conversation.derive import SUCCESS, derive_milestones, score_conversation
from gecko_graph.state import Json, JsonObject

from ..bfcl.contracted import classes_toolkit
from ..bfcl.drawn import normal
from ..bfcl.official import Replay, check, same_state
from ..bfcl.tasks import Task, task_of, widened, write_call
from ..harness.figures import Case, Record, Table, share, share_of_clusters
from ..harness.options import read_jsonl
from ..harness.suite import Expectation, Suite, Summary

TASKS, TRUTH = "bfcl_multiturn_tasks.jsonl.gz", "bfcl_multiturn_calls.jsonl.gz"
RECORDED = "bfcl_multiturn_recorded_calls.jsonl.gz"
WANTED = 0.95


class Milestones(Suite):
    """Milestones derived from one good conversation, tested on others, whose success is decided independently.

    A case is a multi-turn task of BFCL. Milestones are derived from the conversation of its truth. The others are two
    models' recorded plans, and the truth with one change; their success is decided on BFCL's real classes.
    """

    name = "milestones"
    tools = "simulated"
    planner = None
    asks = False
    asides = ("differences",)
    examples = ("", "--each 3 --seed 1 --differences 40")

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--each", type=int, default=1, metavar="N", help="changes of each kind to a BFCL task (1)")
        parser.add_argument("--differences", type=int, default=10, metavar="N", help="wrong verdicts to list (10)")

    def cases(self) -> Iterator[Case]:
        """Yield a case per task."""
        rows = {row["id"]: row for row in read_jsonl(self.options.dataset(TRUTH))}
        tasks = {row["id"]: row for row in read_jsonl(self.options.dataset(TASKS)) if row["category"] == "base"}
        self._calls: dict[tuple[str, ...], list[JsonObject]] = {}
        for row in rows.values():
            calls = self._calls.setdefault(tuple(row["classes"]), [])
            calls.extend(call for turn in plan_of(row) for call in turn)
        self._plans: dict[str, list[Plan]] = {}
        for row in read_jsonl(self.options.dataset(RECORDED)):
            if row["id"] in tasks and len(row["turns"]) == len(tasks[row["id"]]["turns"]):
                self._plans.setdefault(row["id"], []).append(plan_of(row))
        for id_, task in tasks.items():
            yield Case(id_, {"task": task, "truth": rows[id_]}, group=f"multi_turn_{task['category']}")

    def run_case(self, case: Case) -> JsonObject:
        own, *others = self._routes(case)
        return {"own": own, "routes": others}

    def _routes(self, case: Case) -> Iterator[JsonObject]:
        row, task = case.data["truth"], task_of(case.data["task"])
        texts = ["\n".join(each["content"] for each in turn["user"]) for turn in case.data["task"]["turns"]]
        names, start, truth = tuple(row["classes"]), normal(row["initial_state"]), plan_of(row)
        tools = classes_toolkit(names)
        good = converse(tools, start, texts, truth)
        goal = derive_milestones(good["toolkit"], good)
        recorded = [("a recorded plan", plan) for plan in self._plans.get(row["id"], [])]
        changes = mutate(truth, self._calls[names], f"{self.options.seed}:BFCL:{case.id}", self.options.own.each)
        for kind, plan in [("itself", truth), *recorded, *changes]:
            made = converse(tools, start, texts, plan)
            similarity = score_conversation(goal, made["toolkit"], made)["similarity"] or 0.0
            judged, does = judge(task, truth, plan), str([[write(call) for call in turn] for turn in plan])[:600]
            yield {
                "kind": kind,
                "success": judged.end,
                "official": judged.official,
                "accepted": similarity >= SUCCESS,
                "similarity": similarity,
                "does": does,
            }

    def summarise(self, records: Sequence[Record]) -> Summary:
        done = [record for record in records if record.done]
        routes = [each for record in done for each in record.values["routes"]]
        own = all(record.values["own"]["accepted"] for record in done)
        holds = [Expectation("each derived goal accepts the conversation it came from", own)]
        for word, success in (("successes accepted", True), ("failures caught", False)):
            of = [each for each in routes if each["success"] == success]
            right = sum(each["accepted"] == success for each in of)
            holds.append(Expectation(f"at least {WANTED:.0%} of {word}", right >= WANTED * len(of)))
        other = all(any(each["success"] for each in record.values["routes"]) for record in done)
        holds.append(Expectation("at least one other successful route each", other))
        return Summary([_whole(done), _by_kind(routes)], holds, list(self._notes(records)))

    def _notes(self, records: Sequence[Record]) -> Iterator[str]:
        wrong = [
            f"{'rejected' if each['success'] else 'missed'}: {record.id}: {each['kind']}: {each['does']}"
            for record in records
            if record.done
            for each in record.values["routes"]
            if each["success"] != each["accepted"]
        ]
        yield from wrong[: self.options.own.differences]
        judged = [each for record in records if record.done for each in record.values["routes"] if "official" in each]
        if judged:
            same = sum(each["official"] == each["accepted"] for each in judged)
            oracle = sum(each["official"] == each["success"] for each in judged)
            yield f"BFCL's official checker, turn by turn: {same} of {len(judged)} derived verdicts are its own"
            yield f"BFCL's official checker, turn by turn: {oracle} of {len(judged)} verdicts by the end are its own"


def _whole(records: Sequence[Record]) -> Table:
    heads = ["tasks", "other conversations", "successes accepted", "failures caught"]
    table = Table("Derived milestones on other conversations (intervals over the tasks)", heads)
    right = []
    for success in (True, False):
        parts = [[each for each in record.values["routes"] if each["success"] == success] for record in records]
        counted = [(sum(each["accepted"] == success for each in part), len(part)) for part in parts if part]
        right.append(share_of_clusters(counted, tools="simulated"))
    table.add(len(records), sum(len(record.values["routes"]) for record in records), *right)
    return table


def _by_kind(routes: Sequence[JsonObject]) -> Table:
    table = Table("By what was changed", ["change", "successes accepted", "failures caught"])
    for kind in dict.fromkeys(each["kind"] for each in routes):
        right = []
        for success in (True, False):
            of = [each for each in routes if each["kind"] == kind and each["success"] == success]
            hits = sum(each["accepted"] == success for each in of)
            right.append(share(hits, len(of), tools="simulated") if of else "-")
        table.add(kind, *right)
    return table


Plan = Sequence[Sequence[JsonObject]]
"""Turns of calls, each `{"name", "args"}`, perhaps with the recorded `result`."""


class Judged(NamedTuple):
    """Whether a plan succeeds, by its results at the end, and by the official checker turn by turn."""

    end: bool
    official: bool


FAILING: JsonObject = {"name": "no_such_tool", "args": {}}

LEAST_ID = 5
"""Least length of a drawn identifier; varying times and prices are shorter or contain a blank."""


def write(call: JsonObject) -> str:
    """Return a call as Python code."""
    return write_call(call["name"], call["args"])


def judge(task: Task, truth: Plan, plan: Plan) -> Judged:
    """Return whether a plan succeeds, according to the real classes."""
    wanted, wanted_state = _run(task, truth)
    made, state = _run(task, plan)
    given = [text for turn in made for text in turn]
    for turn, calls in zip(wanted, truth, strict=True):
        for text, call in zip(turn, calls, strict=True):
            if not call["patch"] and text not in given:
                return Judged(False, _official(task, plan))
    same = same_state(_unordered(state), _unordered(wanted_state))
    return Judged(same, _official(task, plan))


def _unordered(instances: dict[str, Any]) -> dict[str, Any]:
    """Return copies of instances with their lists of plain values sorted, because their order has no meaning."""
    made = {name: copy(instance) for name, instance in instances.items()}
    for each in made.values():
        for key, value in vars(each).items():
            if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
                setattr(each, key, sorted(value, key=str))
    return made


def _official(task: Task, plan: Plan) -> bool:
    return check(task, [[[write(call)] for call in turn] for turn in plan]).valid


def _run(task: Task, plan: Plan) -> tuple[list[list[str]], dict[str, Any]]:
    with Replay(task) as real:
        answers: list[list[str]] = []
        instances: dict[str, Any] = {}
        for turn in plan:
            texts, instances = real.run([write(call) for call in turn])
            answers.append(texts)
        return answers, instances


def converse(toolkit: Toolkit, start: JsonObject, texts: Sequence[str], plan: Plan) -> JsonObject:
    """Return the conversation of a plan: after each turn's calls the agent answers with their results."""
    toolkit = _widen(toolkit, [call for turn in plan for call in turn])
    world = World(toolkit, state=start, context=GeckoContext(semantic_validation=False))
    messages: list[AnyMessage] = []
    renamed: dict[str, Json] = {}
    for text, turn in zip(texts, plan, strict=False):
        messages.append(address(HumanMessage(text), "user", "agent", steps=len(world.log)))
        results = []
        for number, call in enumerate(turn):
            args = _rename(call["args"], renamed)
            id_ = f"{len(messages)}-{number}"
            asked = AIMessage("", tool_calls=[{"name": call["name"], "args": args, "id": id_}])
            messages.append(address(asked, "agent", "tools", steps=len(world.log)))
            step = world.call({"name": call["name"], "args": args, "id": id_})
            result = step["outcome"]["result"] if "outcome" in step else None
            results.append(result)
            renamed |= _pair(call.get("result"), result)
            answer = ToolMessage(json.dumps(result), tool_call_id=id_)
            messages.append(address(answer, "tools", "agent", steps=len(world.log)))
        said = "; ".join(json.dumps(result, ensure_ascii=False) for result in results) or "Nothing to do."
        messages.append(address(AIMessage(said), "agent", "user", steps=len(world.log)))
    return {"messages": messages, "world": world.snapshot(), "toolkit": toolkit}


def _widen(toolkit: Toolkit, calls: Sequence[JsonObject]) -> Toolkit:
    names = dict.fromkeys(call["name"] for call in calls if call["name"] in toolkit)
    wide = [widened(toolkit[name], [call["args"] for call in calls if call["name"] == name]) for name in names]
    for each in wide:
        toolkit = toolkit.replace(each)
    return toolkit


def _rename(args: Json, renamed: Mapping[str, Json]) -> Any:
    if isinstance(args, dict):
        return {key: _rename(value, renamed) for key, value in args.items()}
    return renamed.get(json.dumps(args), args) if not isinstance(args, list) else args


def _pair(old: Json, new: Json) -> dict[str, Json]:
    """Return new identifiers by the recorded ones at the same place."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return {}
    pairs = ((value, new[key]) for key, value in old.items() if key in new and value != new[key])
    return {
        json.dumps(one): other
        for one, other in pairs
        if type(one) in (int, str) and type(one) is type(other) and len(str(one)) >= LEAST_ID and " " not in str(one)
    }


def plan_of(row: Mapping[str, Any]) -> Plan:
    """Return the calls of a recorded task."""
    return [
        [{**step["call"], "result": step["result"], "patch": step["patch"]} for step in turn] for turn in row["turns"]
    ]


def mutate(plan: Plan, others: Sequence[JsonObject], seed: str, each: int) -> Iterator[tuple[str, Plan]]:
    """Yield plans with one change, as kind and plan; `others` are writes of other tasks on the same tools."""
    chance, places = Random(seed), [(turn, at) for turn, calls in enumerate(plan) for at in range(len(calls))]
    for kind, make in KINDS.items():
        for _ in range(each):
            if places and (made := make(Change(plan, *chance.choice(places), others, chance))) is not None:
                yield kind, made


class Change(NamedTuple):
    """The place of a change: a call of a plan, by turn and index."""

    plan: Plan
    turn: int
    at: int
    others: Sequence[JsonObject]
    chance: Random

    @property
    def call(self) -> JsonObject:
        found: JsonObject = self.plan[self.turn][self.at]
        return found

    def into(self, *calls: JsonObject, length: int = 1) -> Plan:
        """Return the plan with these calls instead of `length` calls, starting at the changed one."""
        turn = self.plan[self.turn]
        return [
            *self.plan[: self.turn],
            [*turn[: self.at], *calls, *turn[self.at + length :]],
            *self.plan[self.turn + 1 :],
        ]

    def another(self, *, writes: bool) -> JsonObject | None:
        """Return a call of another task: one that changes something and has other arguments, or one that only reads."""
        is_other = [each for each in self.others if not writes or each["args"] != self.call["args"]]
        made = [each for each in is_other if bool(each["patch"]) is writes]
        if not made:
            return None
        call = self.chance.choice(made)
        return {"name": call["name"], "args": call["args"]}


def alter(one: Change) -> Plan | None:
    """Replace one argument by the value of another task, or by a different one."""
    keys = [key for key, value in one.call["args"].items() if isinstance(value, str | int | float)]
    if not keys:
        return None
    key = one.chance.choice(keys)
    value = one.call["args"][key]
    same = [other["args"][key] for other in one.others if key in other["args"] and other["args"][key] != value]
    made = one.chance.choice(same) if same else _other_value(value)
    return one.into({**one.call, "args": {**one.call["args"], key: made}})


def _other_value(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int | float) else f"{value}x"


def swap(one: Change) -> Plan | None:
    """Swap a call and the next one."""
    after = one.plan[one.turn][one.at + 1 : one.at + 2]
    return one.into(*after, one.call, length=2) if after else None


KINDS: Mapping[str, Callable[[Change], Plan | None]] = {
    "a call left out": lambda one: one.into(),
    "another argument": alter,
    "a call more": lambda one: one.into(one.call, other) if (other := one.another(writes=True)) else None,
    "two calls swapped": swap,
    "a call twice": lambda one: one.into(one.call, one.call),
    "a look more": lambda one: one.into(other, one.call) if (other := one.another(writes=False)) else None,
    "each look twice": lambda one: [
        [same for call in turn for same in ([call] if call["patch"] else [call, call])] for turn in one.plan
    ],
    "a failing attempt before": lambda one: [[FAILING, *one.plan[0]], *one.plan[1:]],
}


SUITE = Milestones
