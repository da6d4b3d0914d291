"""Q on data: real calls' answers, and the same answers made wrong on purpose, before written and learned conditions.

A service that answers wrongly gives empty lists, the result of another call, fields that are missing, or what was true
before: a read as the task began, a write that was not made.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from gecko_graph import Contract, ToolSpec
from gecko_graph.errors import EvaluationFailed
from gecko_graph.state import Json, JsonObject
from gecko_graph.values.difference import json_equal
from gecko_graph.world.commit import is_void

from ..harness.figures import Table, share
from .contracted import class_toolkit
from .fidelity import Recorded, is_kept_out, recorded_calls

RIGHT = "right"
LIES = ("empty", "of another call", "a field missing", "an old state")
ARMS = ("not empty alone", "learned", "by hand", "both")
"""What stands before an answer: that a read is not empty (ToolGate, D.2), and with it postconditions."""

FILES = ("bfcl_multiturn_calls.jsonl.gz", "bfcl_multiturn_recorded_calls.jsonl.gz")
"""The calls of the ground truth, and of two models."""

LEAST = 3
"""Calls that a learned condition must hold in; it must have seen two different values."""


class Answer(NamedTuple):
    """What a service answers to a recorded call, and the state that it leaves."""

    kind: str
    result: Json
    after: JsonObject


def answers(one: Recorded, earlier: Sequence[Recorded], start: JsonObject) -> Iterator[Answer]:
    """Yield the right answer, and those of the lies that are not the same.

    Args:
        one: The call; the real tool carried it out.
        earlier: Other calls of the task that succeeded.
        start: The state that the task began in.
    """
    yield Answer(RIGHT, one.result, one.after)
    other = next((each for each in reversed(earlier) if not json_equal(each.result, one.result)), None)
    lies = [
        Answer(LIES[0], emptied(one.result), one.after),
        *([Answer(LIES[1], other.result, one.after)] if other is not None else []),
        *([Answer(LIES[2], lacking(one.result), one.after)] if isinstance(one.result, dict) and one.result else []),
        *([Answer(LIES[3], *old)] if (old := outdated(one, start)) is not None else []),
    ]
    for lie in lies:
        if not (json_equal(lie.result, one.result) and json_equal(lie.after, one.after)):
            yield lie


def emptied(result: Json) -> Json:
    """Return a result of the same form with nothing in it."""
    if isinstance(result, dict):
        return {key: emptied(each) for key, each in result.items()}
    return [] if isinstance(result, list) else "" if isinstance(result, str) else None


def lacking(result: JsonObject) -> Json:
    """Return a result without its first field."""
    first = next(iter(result))
    return {key: each for key, each in result.items() if key != first}


def outdated(one: Recorded, start: JsonObject) -> tuple[Json, JsonObject] | None:
    """Return the answer of a service with an old state: a write that it has not made, a read as the task began."""
    if not json_equal(one.before, one.after):
        return one.result, one.before
    tool = class_toolkit(one.kind).get(one.name)
    if tool is None or tool.contract is None:
        return None
    run = open_call(tool, tool.contract, one, start)
    try:
        answer = run.answer() if run.refusal() is None else None
    except EvaluationFailed:
        return None
    return (answer.result, one.after) if answer is not None else None


def open_call(tool: ToolSpec, contract: Contract, one: Recorded, state: JsonObject) -> Any:
    """Return a contract opened on a recorded call."""
    call: Any = {"id": "call_1", "name": one.name, "args": one.args}
    return contract.open(args=one.args, parameters=tool.parameters, state=state, call=call, now=None, seed=0)


def stopped_by(one: Recorded, answer: Answer, learned: Mapping[str, Contract]) -> JsonObject:
    """Return by arm whether an answer is stopped."""
    tool = class_toolkit(one.kind)[one.name]
    is_read = json_equal(one.before, one.after)
    void = is_read and is_void(answer.result)
    by_hand = _breaks(tool, tool.contract, one, answer)
    by_rows = _breaks(tool, learned.get(one.name), one, answer)
    return dict(zip(ARMS, (void, void or by_rows, void or by_hand, void or by_rows or by_hand), strict=True))


def _breaks(tool: ToolSpec, contract: Contract | None, one: Recorded, answer: Answer) -> bool:
    return contract is not None and bool(
        open_call(tool, contract, one, one.before).violations(answer.result, answer.after)
    )


def judge_task(task: Mapping[str, Any], learned: Mapping[str, Contract]) -> JsonObject:
    """Return what stops the answers to a recorded task's calls: by kind of answer how many there are, and by arm."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * (1 + len(ARMS)))
    wrongly: list[str] = []
    earlier: list[Recorded] = []
    for one in lawful_calls(task):
        for answer in answers(one, earlier, task["initial_state"]):
            stopped = stopped_by(one, answer, learned)
            counts[answer.kind] = [sum(pair) for pair in zip(counts[answer.kind], [1, *stopped.values()], strict=True)]
            if answer.kind == RIGHT:
                wrongly += [f"{arm}: {one.name}({json.dumps(one.args)})" for arm, word in stopped.items() if word]
        earlier.append(one)
    return {"answers": dict(counts), "wrongly": wrongly}


def lawful_calls(task: Mapping[str, Any]) -> Iterator[Recorded]:
    """Yield the recorded calls that the real tool carried out and P admits: what a result is judged of."""
    for one in recorded_calls(task):
        tool = class_toolkit(one.kind).get(one.name)
        if (
            tool is None
            or tool.contract is None
            or one.fails
            or (one.kind == "MathAPI" and isinstance(one.result, str))
        ):
            continue  # a printed object is text, which no condition looks into
        if open_call(tool, tool.contract, one, one.before).refusal() is None:
            yield one


def learn_of(tasks: Iterable[Mapping[str, Any]]) -> dict[str, Contract]:
    """Return what is learned of the tasks that are not kept out."""
    return learn(one for task in tasks if not is_kept_out(task["id"]) for one in lawful_calls(task))


def table_of(title: str, values: Sequence[JsonObject]) -> Table:
    """Return what each arm stops, by kind of answer."""
    table = Table(title, ["answer", *ARMS])
    table.note = "Right: the real tool's own, so what is stopped of it is stopped wrongly."
    for kind in (RIGHT, *LIES):
        counts = [each["answers"][kind] for each in values if kind in each["answers"]]
        asked, *stopped = (sum(column) for column in zip(*counts, strict=True)) if counts else (0,)
        if asked:
            table.add(kind, *(share(count, asked, tools="real") for count in stopped))
    return table


# learned of rows -------------------------------------------------------------------------------------------


def learn(rows: Iterable[Recorded]) -> dict[str, Contract]:
    """Return contracts of postconditions alone, by tool: what every row bears out.

    That a result is an object with certain fields of certain types; that a field is an argument, or what the state has
    under a root key; and which root keys a call always changes.
    """
    by_tool: dict[str, list[Recorded]] = defaultdict(list)
    for row in rows:
        by_tool[row.name].append(row)
    return {name: _written(name, some) for name, some in by_tool.items() if len(some) >= LEAST}


def _written(name: str, rows: Sequence[Recorded]) -> Contract:
    checks = [*_form(rows), *_same(rows), *_changed(rows)]
    ensures = [{"check": check, "error": f"{name}: not as in the rows: {check}"} for check in checks]
    return Contract.load({"at": rows[0].kind, "ensures": ensures}, where=f"learned: {name}")


TYPES: Mapping[type, str] = {
    str: "str", int: "(int, float)", float: "(int, float)", dict: "dict", list: "(list, str, dict)",
}  # fmt: skip


def _form(rows: Sequence[Recorded]) -> Iterator[str]:
    """Yield what holds of every result's form: its fields and their types."""
    results = [row.result for row in rows]
    if not all(isinstance(each, dict) for each in results):
        kinds = {TYPES.get(type(each)) for each in results}
        yield from (f"isinstance(result, {kind})" for kind in kinds if kind and len(kinds) == 1)
        return
    for key in sorted(set.intersection(*(set(each) for each in results))):
        kinds = {TYPES.get(type(each[key])) for each in results}
        place = f"result[{json.dumps(key)}]"
        yield f"isinstance({place}, {kind})" if len(kinds) == 1 and (kind := next(iter(kinds))) else f"defined({place})"


def _same(rows: Sequence[Recorded]) -> Iterator[str]:
    """Yield which field of every result is an argument, or stands in the state."""
    result, args, state = rows[0].result, rows[0].args, rows[0].after.get(rows[0].kind, {})
    fields = _readers("result", result, lambda row: row.result) if isinstance(result, dict) else [("result", _result)]
    sources = [
        *_readers("args", args, lambda row: row.args),
        *_readers("state", state, lambda row: row.after.get(row.kind)),
    ]
    for place, read in fields:
        seen = [read(row) for row in rows]
        if any(each is None for each in seen) or all(json_equal(each, seen[0]) for each in seen):
            continue
        for source, look in sources:
            if all(json_equal(each, look(row)) for each, row in zip(seen, rows, strict=True)):
                yield f"{place} == {source}"
                break


Reader: TypeAlias = Callable[[Recorded], Any]


def _result(row: Recorded) -> Any:
    return row.result


def _readers(name: str, keys: Iterable[str], whole: Reader) -> list[tuple[str, Reader]]:
    """Return the members of a value as a contract names them, each with what reads it of a row."""

    def reader(key: str) -> Reader:
        return lambda row: _at(whole(row), key)

    return [(f"{name}[{json.dumps(key)}]", reader(key)) for key in keys]


def _changed(rows: Sequence[Recorded]) -> Iterator[str]:
    """Yield which root keys of the state every call changes."""
    for key in rows[0].after.get(rows[0].kind, {}):
        pairs = [(_at(row.before.get(row.kind), key), _at(row.after.get(row.kind), key)) for row in rows]
        if not any(json_equal(*pair) for pair in pairs):
            yield f"state[{json.dumps(key)}] != before[{json.dumps(key)}]"


def _at(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None
