"""Recorded conversations at the gate: each write of a real agent is judged in the state that its tool saw."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import AnyMessage

from gecko_graph import Toolkit, World
from gecko_graph.state import Call, Json, JsonObject
from gecko_graph.tools.check import Rejection
from gecko_graph.training.checks import to_langchain
from gecko_graph.values.difference import json_equal
from gecko_graph.values.digest import clone
from gecko_graph.values.documents import read_document
from gecko_graph.world.rung import Answer

from ..harness.options import ROOT
from ..suites.tau import conversation_of, plain
from .risk import RiskGate

EXAMPLE = ROOT / "examples" / "airline"
CONTRACTS = EXAMPLE / "airline.contracts.yaml"
NOW = "2024-05-15T15:00:00"
"""The clock of the written policy, in EST like the database's times."""
WRITES = (
    "book_reservation",
    "cancel_reservation",
    "update_reservation_flights",
    "update_reservation_baggages",
    "update_reservation_passengers",
    "send_certificate",
)
RULES = ("policy", "sense")


@dataclass(frozen=True, slots=True)
class Gate:
    """The tools with the written policy, and the real tools' behaviour without it."""

    policy: Toolkit
    real: Toolkit

    @classmethod
    def of(cls, tools: Sequence[Mapping[str, Any]]) -> Gate:
        """Return the gate of tau-bench's airline; `real` has the same contracts without the clauses of the policy."""
        bare = Toolkit.from_tools(tools)
        return cls(bare.with_contracts(CONTRACTS), bare.with_contracts(without_rules(read_document(CONTRACTS))))

    def check(self, call: JsonObject, state: JsonObject, calls: Sequence[JsonObject]) -> Rejection | None:
        """Return why the policy refuses a call; a call that cannot be evaluated is refused too."""
        return self.policy.check(call, state, calls=calls, unclear="refuse")


def without_rules(part: Any) -> Any:
    """Return contracts in which every clause of the kinds `policy` and `sense` holds."""
    if isinstance(part, list):
        return [without_rules(each) for each in part]
    if not isinstance(part, dict):
        return part
    if part.get("kind") in RULES:
        return {**{key: value for key, value in part.items() if key != "when"}, "check": "True"}
    return {key: without_rules(value) for key, value in part.items()}


def judge_conversation(row: Mapping[str, Any], gate: Gate, start: World, risk: RiskGate | None = None) -> JsonObject:
    """Judge each write of a recorded conversation.

    Every write is judged alone, in the state that the real tool saw: the real results are recorded even for writes that
    the gate would have refused. A write is a call of a writing tool that the real tool executed. It is right if the
    task's ground truth contains the same call; each call of the truth counts once.

    Args:
        row: A row of the shared file, or only `messages`; without a ground truth no write is known to be right.
        gate: The tools.
        start: A world of the real tools on the database; each conversation gets a fork of it.
        risk: If given, also judges each write with a fake risk model.

    Returns:
        `writes`: each with `tool`, `right` (or None), `clauses` that refuse it and their `kinds`, `text`; `errors`: how
        many calls the real tools refused; `errors_same`: how many of them the contracts refuse with the same error;
        `differing`: writes whose contract has another result than the real tool; `missing`: writes of the ground truth
        that were not made; `ms`: processor time of each evaluation of the gate.
    """
    truth = truth_of(row)
    wanted = [each for each in truth or () if each["name"] in WRITES]
    world, calls = start.fork(), list[JsonObject]()
    made: dict[str, list[Any]] = {key: [] for key in ("writes", "differing", "ms", "errors")}
    known = [real for real in conversation_of(row).calls if real.name in gate.real.names]
    for number, real in enumerate(known):
        call: JsonObject = {"name": real.name, "args": real.args}
        result = plain(real.result) if real.succeeded else real.result
        if real.name in WRITES:
            before = world.state
            started = time.process_time()
            refused = gate.check(call, before, calls)
            made["ms"].append((time.process_time() - started) * 1e3)
            if real.succeeded:
                right = None if truth is None else _take(call, wanted)
                made["writes"].append({**_written(call, refused), "right": right})
                if risk and right is not None:
                    said, seed = said_before(row, number, gate), f"{row.get('task_id')} {row.get('trial')} {number}"
                    made["writes"][-1]["risk"] = risk.judge(call, world, said, is_wrong=not right, seed=seed)
            else:
                system = gate.real.check(call, before, calls=calls)
                made["errors"].append(system is not None and system.get("error") == real.result)
        own: Call = {"id": f"real_{number}", "name": real.name, "args": real.args}
        entry = world.record(own, Answer("ok" if real.succeeded else "error", result))
        if real.name in WRITES and real.succeeded and (entry["drift"] or "departure" in entry):
            made["differing"].append(f"{_text(call)}: {entry['drift'] or entry['departure']['message']}")
        calls.append({**call, "status": "ok" if real.succeeded else "error", "result": result})
    same, errors = sum(made["errors"]), len(made["errors"])
    return {**made, "errors": errors, "errors_same": same, "missing": [_text(call) for call in wanted]}


def said_before(row: Mapping[str, Any], number: int, gate: Gate) -> list[AnyMessage]:
    """Return a conversation up to one of its calls."""
    said, made = list[Any](), list[int]()
    for at, message in enumerate(row["messages"]):
        calls = [each.get("function", each) for each in message.get("tool_calls") or ()]
        ids = [str(each.get("id")) for each in message.get("tool_calls") or ()]
        made += [at for each in calls if each["name"] in gate.real.names]
        own = [
            {"id": id_, "name": call["name"], "args": call["arguments"], "type": "tool_call"}
            for id_, call in zip(ids, calls, strict=True)
            if isinstance(call["arguments"], dict)
        ]
        said.append({**message, "content": message.get("content") or "", **({"tool_calls": own} if calls else {})})
    return to_langchain(said[: made[number]])


def truth_of(row: Mapping[str, Any]) -> list[JsonObject] | None:
    """Return the calls of a row's ground truth; None if it has none, or only text."""
    task = row.get("task")
    actions = task.get("actions") if isinstance(task, dict) else None
    if not isinstance(actions, list):
        return None
    return [{"name": each["name"], "args": each.get("kwargs", each.get("arguments", {}))} for each in actions]


def judge_ground_truth(row: Mapping[str, Any], gate: Gate, start: World) -> JsonObject:
    """Judge the writes of a task's ground truth, each after the reads that it needs; return `writes` as above."""
    world, calls, writes = start.fork(), list[JsonObject](), []
    for call in ground_truth_calls(row):
        if call["name"] in WRITES:
            writes.append(_written(call, gate.check(call, world.state, calls)))
        outcome = world.call(call).get("outcome", {"status": "error", "result": None})
        calls.append({**call, "status": outcome["status"], "result": outcome["result"]})
    return {"writes": writes}


def ground_truth_calls(row: Mapping[str, Any]) -> Iterator[JsonObject]:
    """Yield the writes of a task's ground truth, each after reads of what it names."""
    for call in truth_of(row) or ():
        if call["name"] in WRITES:
            args = call["args"]
            yield from ({"name": name, "args": {key: args[key]}} for key, name in LOOK_UP.items() if key in args)
            yield call


def _written(call: JsonObject, refused: Rejection | None) -> JsonObject:
    broken = refused.get("violations", []) if refused else []
    others = [] if refused is None else ["schema" if "complaints" in refused else "unclear"]
    clauses = [str(each["clause"]) for each in broken] or others
    kinds = sorted({str(each["kind"]) for each in broken})
    return {"tool": call["name"], "clauses": clauses, "kinds": kinds, "text": _text(call)}


def _take(call: JsonObject, wanted: list[JsonObject]) -> bool:
    """Return whether a call is among the wanted ones, and remove it from them."""
    found = next((number for number, each in enumerate(wanted) if json_equal(each, call)), None)
    return found is not None and bool(wanted.pop(found))


def _text(call: Mapping[str, Json]) -> str:
    args = call["args"] if isinstance(call["args"], dict) else {}
    named = args.get("reservation_id") or f"{args.get('user_id')} {args.get('amount') or args.get('destination')}"
    return f"{call['name']}({named})"


# hand-made violations, each with a lawful twin that differs in one thing


FILE = Path(__file__).parent / "violations.yaml"
SHOWN = 200
"""Most characters of a value in text."""

LOOK_UP = {"user_id": "get_user_details", "reservation_id": "get_reservation_details"}


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call, the task state before the conversation, and the calls before it."""

    state: JsonObject
    calls: list[JsonObject]
    call: JsonObject


@dataclass(frozen=True, slots=True)
class Violation:
    """A call that one clause must refuse, and its lawful twin.

    `also` are clauses that it necessarily breaks too: what does not exist was not looked up, for example.
    """

    id: str
    clause: str
    tool: str
    also: frozenset[str]
    unlawful: Attempt
    lawful: Attempt
    breach: JsonObject

    def tell(self, attempt: Attempt) -> str:
        """Describe one of the two calls, with the arguments and the part of the state in which they differ."""
        args = {key: attempt.call["args"].get(key) for key in {**LOOK_UP, **self.breach.get("args", {})}}
        told = [f"{key}: {_short(value)}" for key, value in args.items() if value is not None]
        told += [f"{place.strip('/')}: {_short(_at(attempt.state, place))}" for place in self.breach.get("state", {})]
        told += [f"look-ups before: {len(attempt.calls)}"] if "calls" in self.breach else []
        return f"{self.tool}({'; '.join(told)})"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _at(state: Any, place: str) -> Any:
    for key in place.strip("/").split("/"):
        state = state[int(key)] if isinstance(state, list) else state.get(key) if isinstance(state, dict) else None
    return state


def read_violations(path: Path = FILE) -> Iterator[Violation]:
    """Yield the violations of a file; `violations.yaml` describes the format."""
    document: Any = read_document(path)
    for number, case in enumerate(document["cases"], 1):
        tool, clause, given = case["tool"], case["clause"], case.get("given", {})
        plain = {"args": document["base"][tool], "state": {}}
        lawful = _changed(plain, given)
        broken, kept = (_attempt(document["state"], tool, one) for one in (_changed(lawful, case["breach"]), lawful))
        also = frozenset(case.get("also", []))
        yield Violation(f"{number}:{tool}:{clause}", clause, tool, also, broken, kept, case["breach"])


def broken_clauses(toolkit: Toolkit, attempt: Attempt) -> list[str] | None:
    """Return the clauses that refuse a call in a `World` after the earlier calls; None if the call succeeds."""
    world = World(toolkit, state=attempt.state)
    for call in attempt.calls:
        world.call(call)
    step = world.call(attempt.call)
    if "outcome" not in step:
        return ["schema"]
    outcome = step["outcome"]
    if outcome["status"] == "ok":
        return None
    return [str(broken["clause"]) for broken in outcome.get("violations", [])] or ["unclear"]


def _changed(one: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "args": {**one["args"], **change.get("args", {})},
        "state": {**one["state"], **change.get("state", {})},
        "calls": change.get("calls", one.get("calls")),
    }


def _attempt(state: JsonObject, tool: str, one: Mapping[str, Any]) -> Attempt:
    own = clone(state)
    for place, value in one["state"].items():
        *parents, last = place.strip("/").split("/")
        inner: Any = own
        for key in parents:
            inner = inner[int(key) if isinstance(inner, list) else key]
        inner[last] = value
    calls = one["calls"]
    if calls is None:
        calls = [(name, {key: one["args"][key]}) for key, name in LOOK_UP.items() if key in one["args"]]
    return Attempt(own, [{"name": name, "args": args} for name, args in calls], {"name": tool, "args": one["args"]})
