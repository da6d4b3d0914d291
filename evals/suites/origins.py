"""Ground truths traced: values that a right agent really used, and what provenance says of them, by kind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from gecko_graph import Toolkit
from gecko_graph.state import JsonObject, Step
from gecko_graph.values.leaves import scalars
from gecko_graph.world.provenance import Sources, trace

from ..harness.datasets import find, read_jsonl
from ..harness.figures import Table
from ..harness.suite import Case, Expectation, Record, Suite, Summary
from .tau.replay import conversation_of, plain

LAWFUL = 0.95
KINDS = ("stated", "derived", "chosen", "no source needed")
Plan = tuple[list[Step], list[AnyMessage], JsonObject]
"""The calls with their results, the messages before them, the given state."""


class Origins(Suite):
    """Origins of ground truths: BFCL's single-turn and multi-turn calls, the airline's successful conversations.

    Nothing in them was made up, but BFCL's ground truth knows what its tasks do not say (that Los Angeles is LAX).
    BFCL's functions have no declared effect: all of them count as writes, in which plain words need a source too; of
    the multi-turn tools and the airline's those that never change anything are reads. A case is a file.
    """

    name = "origins"
    asks = False
    planner = None

    def cases(self) -> Iterable[Case]:
        """Yield a case per file of ground truths."""
        for name in ("BFCL single turn", "BFCL multi turn", "airline"):
            yield Case(name, name)

    def run_case(self, case: Case) -> JsonObject:
        """Trace each plan, and count its values by kind."""
        plans = {"BFCL single turn": self._single, "BFCL multi turn": self._multi, "airline": self._airline}
        counts: Counter[str] = Counter()
        for (steps, messages, state), schemas, reading in plans[case.id]():
            sources = Sources(conversation=messages, state=state, reading=reading)
            origins, _ = trace(steps, sources, partial(_schema, schemas))
            counts.update(found[0]["kind"] for call in origins.values() for found in call.values() if found)
            counts["all"] += sum(len(list(scalars(step["call"]["args"]))) for step in steps)
        counts["no source needed"] = counts["all"] - sum(counts[kind] for kind in KINDS)
        return {"counts": dict(counts)}

    def _single(self) -> Iterator[tuple[Plan, Mapping[str, JsonObject], Sequence[str]]]:
        for row in read_jsonl(find("bfcl_tasks.jsonl.gz", self.options.data)):
            question = row["question"] if isinstance(row["question"][0], dict) else row["question"][0]
            kinds: Any = {"user": HumanMessage, "system": SystemMessage}
            calls = [(name, args) for answer in row["possible_answer"] or () for name, args in answer.items()]
            steps = [_step(name, _first(args), None, number) for number, (name, args) in enumerate(calls)]
            yield (steps, [kinds[each["role"]](each["content"]) for each in question], {}), row["json_schemas"], ()

    def _multi(self) -> Iterator[tuple[Plan, Mapping[str, JsonObject], Sequence[str]]]:
        documents = json.loads(find("bfcl_multiturn_func_docs.json", self.options.data).read_text(encoding="utf-8"))
        schemas = {tool.name: tool.parameters for tool in Toolkit.from_tools(list(documents.values()))}
        made = {row["id"]: row["turns"] for row in read_jsonl(find("bfcl_multiturn_calls.jsonl.gz", self.options.data))}
        done = [each for turns in made.values() for turn in turns for each in turn if each.get("call")]
        reading = schemas.keys() - {each["call"]["name"] for each in done if each["patch"]}
        for task in read_jsonl(find("bfcl_multiturn_tasks.jsonl.gz", self.options.data)):
            said: list[AnyMessage] = []
            for turn, calls in zip(task["turns"], made[task["id"]], strict=True):
                said += [HumanMessage(each["content"]) for each in turn["user"]]
                ran = [each for each in calls if each.get("call") and each["raised"] is None]
                steps = [_step(**each["call"], result=each["result"], number=n) for n, each in enumerate(ran)]
                yield (steps, [*said], task["initial_config"]), schemas, [*reading]
                for step in steps:
                    said += _messages(step, len(said))

    def _airline(self) -> Iterator[tuple[Plan, Mapping[str, JsonObject], Sequence[str]]]:
        tools = Toolkit.from_tools(
            json.loads(find("tau_tools.json", self.options.data).read_text(encoding="utf-8"))["airline"]
        )
        schemas = {tool.name: tool.parameters for tool in tools}
        reading = [name for name in schemas if name.startswith(("get", "search", "list", "calculate", "think"))]
        policy = find("tau_airline_policy.md", self.options.data).read_text(encoding="utf-8")
        for row in read_jsonl(find("tau_airline_gpt4o.jsonl.gz", self.options.data)):
            if row["reward"] != 1:
                continue
            said: list[AnyMessage] = [SystemMessage(policy)]
            calls = iter(conversation_of(row).calls)
            steps: list[Step] = []
            for message in row["messages"]:
                if message["role"] == "user":
                    for step in steps:
                        said += _messages(step, len(said))
                    steps = []
                    said.append(HumanMessage(message["content"]))
                elif message["role"] == "tool" and (call := next(calls)).succeeded and call.name != "think":
                    args = {} if call.name == "calculate" else call.args
                    steps.append(_step(call.name, args, plain(call.result), len(steps)))
                    yield ([*steps[-1:]], _heard(said, steps[:-1]), {"now": "2024-05-15T15:00:00"}), schemas, reading

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return the share of each kind."""
        table = Table("Values of ground truths by the kind of their origin", ["ground truths", "values", *KINDS])
        shares = []
        for record in (record for record in records if record.done):
            counts = record.values["counts"]
            table.add(record.id, counts["all"], *(f"{counts.get(kind, 0) / counts['all']:.2%}" for kind in KINDS))
            shares.append(1 - counts.get("chosen", 0) / counts["all"])
        return Summary([table], [Expectation("at least 95 % of each are not marked", min(shares, default=0) >= LAWFUL)])


def _heard(said: Sequence[AnyMessage], steps: Sequence[Step]) -> list[AnyMessage]:
    *earlier, task = said
    return [*earlier, *(message for step in steps for message in _messages(step, len(said))), task]


def _step(name: str, args: JsonObject, result: Any, number: int) -> Step:
    outcome: Any = {"status": "ok", "result": result, "patch": [], "rung": "real", "simulated": False, "passed": []}
    return {"v": 1, "call": {"id": f"{name}-{number}", "name": name, "args": args}, "outcome": outcome}


def _messages(step: Step, number: int) -> list[AnyMessage]:
    call, id_ = step["call"], f"{step['call']['id']}-{number}"
    made = AIMessage("", tool_calls=[{"name": call["name"], "args": call["args"], "id": id_}])
    return [made, ToolMessage(json.dumps(step["outcome"]["result"]), tool_call_id=id_)]


def _schema(schemas: Mapping[str, JsonObject], name: str) -> JsonObject:
    return schemas.get(name, {})


def _first(value: Any) -> Any:
    """Return the first of the possible answers, without arguments that may be left out."""
    return {name: _read(each) for name, each in value.items() if "" not in each}


def _read(values: Any) -> Any:
    value = values[0] if isinstance(values, list) and values else values
    nested = isinstance(value, dict) and all(isinstance(each, list) for each in value.values())
    return _first(value) if nested else value


SUITE = Origins
