"""Ground truths traced: what provenance says about values that a right agent really used, by kind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from gecko_graph import Toolkit
from gecko_graph.state import JsonObject, Step
from gecko_graph.values.places import scalars
from gecko_graph.world.given import Sources
from gecko_graph.world.provenance import trace

from ..harness.figures import Case, Record, Table
from ..harness.options import read_jsonl
from ..harness.suite import Expectation, Suite, Summary
from .tau import CONVERSATIONS, TOOLS, conversation_of, plain

LAWFUL = 0.95
KINDS = ("stated", "derived", "chosen", "no source needed")
NOW = "2024-05-15T15:00:00"
"""The airline's clock, as its policy states it."""


class Plan(NamedTuple):
    """Calls with their results, what was known before them, the tools' schemas, and which tools only read."""

    steps: Sequence[Step]
    messages: Sequence[AnyMessage]
    state: JsonObject
    schemas: Mapping[str, JsonObject]
    reading: Sequence[str] = ()

    def parameters(self, tool: str) -> JsonObject:
        return self.schemas.get(tool, {})


class Origins(Suite):
    """Origins of ground truths: BFCL's single-turn and multi-turn calls, the airline's successful conversations.

    Nothing in them was made up, but BFCL's ground truth knows more than its tasks say (that Los Angeles is LAX). BFCL's
    functions have no declared effect: all count as writes, in which plain words need a source too. Those multi-turn and
    airline tools that never change anything are reads. A case is a file.
    """

    name = "origins"
    asks = False
    planner = None

    def cases(self) -> Iterator[Case]:
        plans = {"BFCL single turn": self._single, "BFCL multi turn": self._multi, "airline": self._airline}
        yield from (Case(name, read) for name, read in plans.items())

    def run_case(self, case: Case) -> JsonObject:
        counts: Counter[str] = Counter()
        for plan in case.data():
            sources = Sources(conversation=plan.messages, state=plan.state, reading=plan.reading)
            traced = trace(plan.steps, sources, plan.parameters)
            counts.update(found[0]["kind"] for call in traced.origins.values() for found in call.values() if found)
            counts["all"] += sum(len(list(scalars(step["call"]["args"]))) for step in plan.steps)
        counts["no source needed"] = counts["all"] - sum(counts[kind] for kind in KINDS)
        return {"counts": dict(counts)}

    def _single(self) -> Iterator[Plan]:
        kinds: Any = {"user": HumanMessage, "system": SystemMessage}
        for row in read_jsonl(self.options.dataset("bfcl_tasks.jsonl.gz")):
            question = row["question"] if isinstance(row["question"][0], dict) else row["question"][0]
            calls = [(name, _first(args)) for each in row["possible_answer"] or () for name, args in each.items()]
            steps = [_step(name, args, None, number) for number, (name, args) in enumerate(calls)]
            yield Plan(steps, [kinds[each["role"]](each["content"]) for each in question], {}, row["json_schemas"])

    def _multi(self) -> Iterator[Plan]:
        documents = json.loads(self.options.dataset("bfcl_multiturn_func_docs.json").read_text(encoding="utf-8"))
        schemas = {tool.name: tool.parameters for tool in Toolkit.from_tools(list(documents.values()))}
        rows = read_jsonl(self.options.dataset("bfcl_multiturn_calls.jsonl.gz"))
        made = {row["id"]: [[each for each in turn if each.get("call")] for turn in row["turns"]] for row in rows}
        writing = {each["call"]["name"] for turns in made.values() for turn in turns for each in turn if each["patch"]}
        reading = sorted(schemas.keys() - writing)
        for task in read_jsonl(self.options.dataset("bfcl_multiturn_tasks.jsonl.gz")):
            said: list[AnyMessage] = []
            for turn, calls in zip(task["turns"], made[task["id"]], strict=True):
                said += [HumanMessage(each["content"]) for each in turn["user"]]
                ran = [each for each in calls if each["raised"] is None]
                steps = [_step(**each["call"], result=each["result"], number=n) for n, each in enumerate(ran)]
                yield Plan(steps, [*said], task["initial_config"], schemas, reading)
                said += _heard(steps, len(said))

    def _airline(self) -> Iterator[Plan]:
        tools = json.loads(self.options.dataset(TOOLS).read_text(encoding="utf-8"))["airline"]
        schemas = {tool.name: tool.parameters for tool in Toolkit.from_tools(tools)}
        reading = [name for name in schemas if name.startswith(("get", "search", "list", "calculate", "think"))]
        policy = SystemMessage(self.options.dataset("tau_airline_policy.md").read_text(encoding="utf-8"))
        for row in read_jsonl(self.options.dataset(CONVERSATIONS)):
            before: list[AnyMessage] = [policy]
            task, steps, calls = list[AnyMessage](), list[Step](), iter(conversation_of(row).calls)
            for message in row["messages"] if row["reward"] == 1 else ():
                if message["role"] == "user":
                    before += [*task, *_heard(steps, len(before))]
                    task, steps = [HumanMessage(message["content"])], []
                elif message["role"] == "tool" and (call := next(calls)).succeeded and call.name != "think":
                    args = {} if call.name == "calculate" else call.args
                    step = _step(call.name, args, plain(call.result), len(steps))
                    yield Plan([step], [*before, *_heard(steps, len(before)), *task], {"now": NOW}, schemas, reading)
                    steps.append(step)

    def summarise(self, records: Sequence[Record]) -> Summary:
        table = Table("Values of ground truths by the kind of their origin", ["ground truths", "values", *KINDS])
        chosen = []
        for record in (record for record in records if record.done):
            counts = record.values["counts"]
            table.add(record.id, counts["all"], *(f"{counts.get(kind, 0) / counts['all']:.2%}" for kind in KINDS))
            chosen.append(counts.get("chosen", 0) / counts["all"])
        holds = bool(chosen) and max(chosen) <= 1 - LAWFUL
        return Summary([table], [Expectation("at least 95 % of each are not marked", holds)])


def _step(name: str, args: JsonObject, result: Any, number: int) -> Step:
    outcome: Any = {"status": "ok", "result": result, "patch": [], "rung": "real", "simulated": False, "passed": []}
    return {"v": 1, "call": {"id": f"{name}-{number}", "name": name, "args": args}, "outcome": outcome}


def _heard(steps: Sequence[Step], number: int) -> Iterator[AnyMessage]:
    """Yield the messages of calls with their results in a conversation."""
    for step in steps:
        call, id_ = step["call"], f"{step['call']['id']}-{number}"
        yield AIMessage("", tool_calls=[{"name": call["name"], "args": call["args"], "id": id_}])
        yield ToolMessage(json.dumps(step["outcome"]["result"]), tool_call_id=id_)


def _first(possible: Mapping[str, Any]) -> JsonObject:
    """Return the first of the possible answers, without optional arguments."""
    return {name: _value(each) for name, each in possible.items() if "" not in each}


def _value(values: Any) -> Any:
    value = values[0] if isinstance(values, list) and values else values
    is_nested = isinstance(value, dict) and all(isinstance(each, list) for each in value.values())
    return _first(value) if is_nested else value


SUITE = Origins
