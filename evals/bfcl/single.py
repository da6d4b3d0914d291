"""BFCL's single-turn tasks from the package, their right answers, and the official evaluator's verdicts.

The evaluator runs in a separate process (`single_worker.py`).
"""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from gecko_graph.models.recorded import RecordedModel
from gecko_graph.schemas.complaints import find_faults
from gecko_graph.state import Call, Json, JsonObject
from gecko_graph.tools import Toolkit

from ..harness.options import EvalError, read_jsonl
from . import package, single_worker

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
"""Categories whose tasks no tool fits: the right answer is no call."""

CATEGORIES = (*ANSWERED, *IRRELEVANT)

ALL = "single_turn"
"""Short for all single-turn categories."""

LEFT_OUT = ""
"""If among an argument's right values, the argument may be left out."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task: `answers` has for each right call its name and each argument's right values; None if no tool fits."""

    id: str
    category: str
    messages: Sequence[JsonObject]
    functions: Sequence[JsonObject]
    answers: Sequence[Mapping[str, Mapping[str, Sequence[Json]]]] | None


def chosen(text: str) -> tuple[str, ...]:
    """Return the categories that a list names, in the official order."""
    named = [name for name in text.split(",") if name]
    named = [each for name in named for each in (CATEGORIES if name == ALL else (name,))]
    if unknown := sorted(set(named) - set(CATEGORIES)):
        raise EvalError(
            f"--category {','.join(unknown)}: the single-turn categories are {', '.join(CATEGORIES)}; {ALL} means all"
        )
    return tuple(name for name in CATEGORIES if name in named) or CATEGORIES


def tasks_of(category: str) -> Iterator[Task]:
    """Yield all tasks of a category, in the official order."""
    name = f"BFCL_v4_{category}.json"
    answers: dict[str, Any] = {}
    if category in ANSWERED:
        rows = read_jsonl(package.data_file(f"possible_answer/{name}"))
        answers = {row["id"]: row["ground_truth"] for row in rows}
    for row in read_jsonl(package.data_file(name)):
        yield Task(row["id"], category, row["question"][0], row["function"], answers.get(row["id"]))


def right_calls(task: Task) -> list[JsonObject]:
    """Return the right calls of a task in the form of recorded planner replies: `{"call", "args"}`.

    Each argument gets the first right value that the tool's own schema allows.
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
    """Return one value from a right one, in which members of objects (also inside arrays) are lists of right values."""
    if isinstance(value, dict):
        firsts = {key: next((each for each in options if each != LEFT_OUT), LEFT_OUT) for key, options in value.items()}
        return {key: one for key, one in firsts.items() if one != LEFT_OUT}
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        return [_plain(each) for each in value]
    return value


def official_result(calls: Iterable[tuple[str, JsonObject]], *, text: str) -> Json:
    """Return a result as of a function-calling model: each call's name with its arguments as JSON, or the text."""
    made = [{name: json.dumps(arguments, ensure_ascii=False)} for name, arguments in calls]
    return made or text


def of_plan(plan: Sequence[Call], *, answer: str) -> Json:
    """Return a rehearsal's plan as a result, with the benchmark's tool names; without calls the answer."""
    return official_result(((call["name"], call["args"]) for call in plan), text=answer)


NONE_FITS = "None of the tools fits."
NOTHING_MORE = "There is nothing more to call."


@dataclass(frozen=True, slots=True)
class Words:
    """A planner's recorded reply: its calls as `{"call", "args"}`, or a text if there are none."""

    calls: Sequence[JsonObject]
    text: str

    @property
    def result(self) -> Json:
        """The reply in the official result format, as without a rehearsal."""
        return official_result(((call["call"], call["args"]) for call in self.calls), text=self.text)

    @property
    def planner(self) -> RecordedModel:
        """A planner that makes the calls in one message and then ends."""
        said: list[JsonObject] = [{"calls": list(self.calls)}, {"say": NOTHING_MORE}]
        return RecordedModel(turns=[{"planner": [said if self.calls else [{"say": self.text or NONE_FITS}]]}])


@dataclass(frozen=True, slots=True)
class Checked:
    """The official verdict on one result, with the evaluator's name of the error."""

    valid: bool
    error_type: str


class Checker:
    """The official evaluator. Its process starts with the first check and ends with this object."""

    def __init__(self) -> None:
        package.version()
        root = tempfile.mkdtemp(prefix="bfcl-")  # the package creates folders in its project folder
        weakref.finalize(self, shutil.rmtree, root, ignore_errors=True)
        self._worker = ProcessPoolExecutor(1, get_context("spawn"), single_worker.begin, (root,))

    def check(self, category: str, task: str, result: Json) -> Checked:
        """Return the verdict on one result in the format of a result file.

        Raises:
            EvalError: The evaluator cannot be started.
            CheckerFailed: It raised.
        """
        try:
            return Checked(*self._worker.submit(single_worker.check, category, task, result).result())
        except BrokenProcessPool as error:
            raise EvalError(f"the official evaluator ended: {error}. {package.INSTALL}") from None
