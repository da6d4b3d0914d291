"""The multi-turn tasks of the shared file, and their tools as toolkits on the real classes."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

from langchain_core.messages import MessageLikeRepresentation

from gecko_graph import Toolkit, ToolSpec
from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.state import JsonObject
from gecko_graph.values.places import pointer_tokens

from ..harness.options import EvalError, find, read_jsonl
from . import ALL_MULTI_TURN, LONG_CONTEXT, MULTI_TURN, package
from .classes import Classes

FILE = "bfcl_multiturn_tasks.jsonl.gz"
RECORDED = "bfcl_multiturn_recorded.jsonl.gz"
CATEGORY_HELP = f"of {', '.join(MULTI_TURN)}, or {ALL_MULTI_TURN} for the first three ({MULTI_TURN[0]})"


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: the user's messages, the ground truth's calls (none if nothing can be done), and tools that it adds.

    `before` is the conversation before the turn, if it is played alone.
    """

    messages: Sequence[Mapping[str, str]]
    truth: Sequence[str]
    arriving: Sequence[str]
    before: Sequence[MessageLikeRepresentation] = ()

    @property
    def said(self) -> list[tuple[str, str]]:
        """The turn's messages; if it only adds tools, the benchmark's default message."""
        if self.messages:
            return [(each["role"], each["content"]) for each in self.messages]
        prompts = package.load("constants.default_prompts")
        return [("user", prompts.DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC)]


@dataclass(frozen=True)
class Task:
    """A multi-turn task, with the tools of its first turn.

    `past` are calls made on the real classes before the first turn, `start` is the task state after these; None for
    that of the configuration.
    """

    id: str
    category: str
    classes: Sequence[str]
    config: Mapping[str, Any]
    tools: Sequence[str]
    turns: Sequence[Turn]
    past: Sequence[str] = ()
    start: JsonObject | None = None

    @cached_property
    def real(self) -> Classes:
        """The executable classes with the task's configuration, in the task's start state."""
        made = Classes(self.classes, self.config, long_context=self.is_long)
        made.initial_state = made.initial_state if self.start is None else self.start
        return made

    @property
    def is_long(self) -> bool:
        return self.category == LONG_CONTEXT

    def begin(self, turns: int) -> Task:
        return replace(self, turns=self.turns[:turns])

    @cached_property
    def _toolkits(self) -> dict[tuple[str, ...], Toolkit]:
        return {}

    def toolkit(self, turn: int) -> Toolkit:
        """Return the tools of a turn, answered by the real classes, and so without checks of results."""
        names = tuple(spec.name for spec in self.specs(turn))
        if names not in self._toolkits:
            self._toolkits[names] = Toolkit(map(self._spec, names))
        return self._toolkits[names]

    def truthful(self, turn: int) -> Toolkit:
        """Return the tools of a turn for the ground truth, which may go beyond the documents (`errata`)."""
        return for_truth(self, turn, self.toolkit(turn), self._spec)

    def errata(self) -> Iterator[str]:
        """Yield where the ground truth breaks the documents: a tool not offered, an argument of a wrong type."""
        for number, turn in enumerate(self.turns):
            toolkit = self.toolkit(number)
            for text in turn.truth:
                call = self.read(text)
                if call["call"] not in toolkit:
                    yield f"{self.id}, turn {number + 1}: the truth calls {call['call']}, which is not offered"
                else:
                    found = find_complaints(toolkit[call["call"]], call["args"])
                    yield from (
                        f"{self.id}, turn {number + 1}: {text}: the document wants {each['expected']} at {each['path']}"
                        for each in found
                    )

    def _spec(self, name: str) -> ToolSpec:
        return replace(documents(self.real.owners[name])[name], simulate=self.real.simulate(name), result=None)

    def specs(self, turn: int) -> list[ToolSpec]:
        arrived = [name for each in self.turns[: turn + 1] for name in each.arriving]
        documented = {name: spec for each in self.classes for name, spec in documents(each).items()}
        return [documented[name] for name in [*self.tools, *arrived]]

    def read(self, call: str) -> JsonObject:
        """Return a call as a recorded planner reply; a call that cannot be parsed has its text as arguments."""
        try:
            return read_call(call, signature=self._signature)
        except NoCall:
            return {"call": call.partition("(")[0], "args": call}

    def _signature(self, name: str) -> inspect.Signature | None:
        return self.real.signature(name) if name in self.real.owners else None


def for_truth(task: Task, turn: int, toolkit: Toolkit, spec_of: Callable[[str], ToolSpec]) -> Toolkit:
    """Return a turn's tools, extended by the withheld tools and the arguments that the ground truth uses."""
    calls = [task.read(each) for each in task.turns[turn].truth]
    withheld = [call["call"] for call in calls if call["call"] not in toolkit]
    given = [*toolkit, *map(spec_of, dict.fromkeys(withheld))]
    wide = [widened(spec, [call["args"] for call in calls if call["call"] == spec.name]) for spec in given]
    return toolkit if all(a is b for a, b in zip(wide, toolkit, strict=False)) and not withheld else Toolkit(wide)


def widened(spec: ToolSpec, given: Sequence[JsonObject]) -> ToolSpec:
    """Return the tool with any value allowed for those arguments whose rule the given arguments break."""
    wrong = {
        token for args in given for each in find_complaints(spec, args) for token in pointer_tokens(each["path"])[:1]
    }
    if not wrong:
        return spec
    properties = {key: {} if key in wrong else rule for key, rule in spec.parameters["properties"].items()}
    return replace(spec, parameters={**spec.parameters, "properties": properties})


@cache
def documents(name: str) -> dict[str, ToolSpec]:
    file = package.load(package.BACKENDS).MULTI_TURN_FUNC_DOC_FILE_MAPPING[name]
    lines = package.data_file(f"multi_turn_func_doc/{file}").read_text(encoding="utf-8").splitlines()
    return {tool.name: tool for tool in Toolkit.from_tools([json.loads(line) for line in lines if line.strip()])}


def read_tasks(folder: Path, categories: Sequence[str]) -> Iterator[Task]:
    """Yield the tasks of some categories, in the file's order; tasks with a long context come from the package."""
    if set(categories) - {LONG_CONTEXT}:
        for row in read_jsonl(find(FILE, folder)):
            if f"multi_turn_{row['category']}" in categories:
                yield task_of(row)
    if LONG_CONTEXT in categories:
        yield from map(task_of, packaged(LONG_CONTEXT))


def categories_of(text: str) -> list[str]:
    named = text.split(",")
    return [name for name in MULTI_TURN if name in named or (ALL_MULTI_TURN in named and name != LONG_CONTEXT)]


def read_recorded(
    folder: Path, categories: Sequence[str], file: Path | None = None
) -> Iterator[tuple[Task, JsonObject]]:
    """Yield recorded trajectories, each with the task in the form that its model was given."""
    if LONG_CONTEXT in categories:
        raise EvalError(f"{LONG_CONTEXT}: there are no recorded trajectories; leave it out of --category")
    rows = {row["id"]: row for row in read_jsonl(find(FILE, folder))}
    for row in read_jsonl(file or find(RECORDED, folder)):
        if not {"model", "category", "task_id", "turns", "v3_task"} <= set(row):
            raise EvalError(f"{file}: a row is not a recorded trajectory; see {RECORDED}")
        if f"multi_turn_{row['category']}" in categories and row["task_id"] in rows:
            yield task_of(rows[row["task_id"]], other=row["v3_task"]), row


def packaged(category: str) -> Iterator[JsonObject]:
    """Yield the tasks of a category from the official package, as rows like those of the shared file."""
    name = f"BFCL_v4_{category}.json"
    truths = {row["id"]: row["ground_truth"] for row in read_jsonl(package.data_file(f"possible_answer/{name}"))}
    for row in read_jsonl(package.data_file(name)):
        pairs = zip(row["question"], truths[row["id"]], strict=True)
        yield {
            **row,
            "category": category.removeprefix("multi_turn_"),
            "tool_names": [tool for each in row["involved_classes"] for tool in documents(each)],
            "missed_function": row.get("missed_function"),
            "turns": [{"user": question, "ground_truth": truth} for question, truth in pairs],
        }


def task_of(row: Mapping[str, Any], *, other: Mapping[str, Any] | None = None) -> Task:
    """Return the task of a row; an earlier form (`v3_task`) replaces questions, configuration and ground truth."""
    arriving = row["missed_function"] or {}
    if other is None:
        pairs = [(turn["user"], turn["ground_truth"]) for turn in row["turns"]]
        config = row["initial_config"]
    else:
        # tasks of that version have more turns of truth than of user messages, so they cannot be played to the end
        pairs = list(zip_longest(other["question"], other["ground_truth"], fillvalue=[]))
        config = other["initial_config"]
    turns = [Turn(question, truth, arriving.get(str(number), [])) for number, (question, truth) in enumerate(pairs)]
    return Task(
        id=row["id"],
        category=f"multi_turn_{row['category']}",
        classes=row["involved_classes"],
        config=config,
        tools=row["tool_names"],
        turns=turns,
    )


# calls as the benchmark writes them, `cp(source='a', destination='b')`, and as planner replies, by name and arguments


class NoCall(ValueError):
    """A text that is not a call with literal values."""


def read_call(text: str, *, signature: Callable[[str], inspect.Signature | None]) -> JsonObject:
    """Return a call as a recorded planner reply, `{"call", "args"}`; it is parsed, never evaluated.

    `signature` names positional arguments. Raises NoCall for what is not a call of a name with literals.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
            raise NoCall(f"expected a call of a tool by name, got: {text[:200]}")
        positional = [ast.literal_eval(each) for each in tree.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in tree.keywords if each.arg}
    except (SyntaxError, ValueError) as error:
        raise NoCall(f"{text[:200]}: {error}") from None
    name = tree.func.id
    known = signature(name)
    names = list(known.parameters) if known else []
    names += [f"positional_{number}" for number in range(len(names), len(positional))]
    return {"call": name, "args": plain({**dict(zip(names, positional, strict=False)), **named})}


def plain(value: Any) -> Any:
    """Return the value with lists for tuples and sets, as in JSON."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(item) for item in value]
    return value


def write_call(name: str, args: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in args.items())})"
