"""The single-turn tasks as the official package ships them, and their right answers as calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gecko_graph.schemas.complaints import find_faults
from gecko_graph.state import Json, JsonObject
from gecko_graph.tools import Toolkit

from ..harness.datasets import read_jsonl
from ..harness.suite import EvalError
from . import package

ANSWERED = (
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
)
IRRELEVANT = ("irrelevance", "live_irrelevance")
"""Categories whose tasks no tool fits: right is to call none."""

CATEGORIES = (*ANSWERED, *IRRELEVANT)

ALL = "single_turn"
"""Short for all of them."""

LEFT_OUT = ""
"""Among the values that are right for an argument: it may be left out."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task.

    Args:
        id: Its official id, `live_simple_19-3-15`.
        category: Its official category.
        messages: The conversation.
        functions: The tools as the benchmark writes them.
        answers: For each right call, its name and each argument's right values; None where no tool fits.
    """

    id: str
    category: str
    messages: Sequence[JsonObject]
    functions: Sequence[JsonObject]
    answers: Sequence[Mapping[str, Mapping[str, Sequence[Json]]]] | None


def category_of(task: str) -> str:
    """Return the category that a task's id names."""
    return task.rpartition("_")[0]


def chosen(text: str) -> tuple[str, ...]:
    """Return the categories that a list names, in the official order.

    Raises:
        EvalError: One is unknown.
    """
    named = [name for name in text.split(",") if name]
    named = [each for name in named for each in (CATEGORIES if name == ALL else (name,))]
    if unknown := sorted(set(named) - set(CATEGORIES)):
        raise EvalError(
            f"--category {','.join(unknown)}: the single-turn categories are {', '.join(CATEGORIES)}; {ALL} means all"
        )
    return tuple(name for name in CATEGORIES if name in named) or CATEGORIES


def tasks_of(category: str) -> Iterator[Task]:
    """Yield all tasks of a category, in the official order.

    Raises:
        EvalError: The official package is missing.
    """
    name = f"BFCL_v4_{category}.json"
    answers: dict[str, Any] = {}
    if category in ANSWERED:
        rows = read_jsonl(package.data_file(f"possible_answer/{name}"))
        answers = {row["id"]: row["ground_truth"] for row in rows}
    for row in read_jsonl(package.data_file(name)):
        yield Task(row["id"], category, row["question"][0], row["function"], answers.get(row["id"]))


def right_calls(task: Task) -> list[JsonObject]:
    """Return the right calls of a task, as a planner would make them: `{"call", "args"}`.

    Of an argument's right values the first is taken that the tool's own schema allows.
    """
    toolkit = Toolkit.from_tools(task.functions)
    return [
        {"call": name, "args": _right_arguments(toolkit[name].parameters, values)}
        for answer in task.answers or ()
        for name, values in answer.items()
    ]


def _right_arguments(schema: JsonObject, values: Mapping[str, Sequence[Json]]) -> JsonObject:
    known, required = schema.get("properties", {}), schema.get("required", ())
    made: JsonObject = {}
    for name, options in values.items():
        right = [_plain(each) for each in options if each != LEFT_OUT]
        allowed = [each for each in right if name in known and not find_faults(known[name], each)]
        if allowed or (right and LEFT_OUT not in options):
            made[name] = (allowed or right)[0]
        elif name in required and options:
            made[name] = (right or [LEFT_OUT])[0]
    return made


def _plain(value: Json) -> Json:
    """Return one value out of a right one: members of objects, also of an array's, are lists of right values."""
    if isinstance(value, dict):
        firsts = {key: next((each for each in options if each != LEFT_OUT), LEFT_OUT) for key, options in value.items()}
        return {key: one for key, one in firsts.items() if one != LEFT_OUT}
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        return [_plain(each) for each in value]
    return value
