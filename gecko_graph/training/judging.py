"""The second tier: a model judges each step (paper, section 3.2), and accepted plans replace wrong labels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

from ..create import create_gecko
from ..errors import GeckoError, RunFailure
from ..graph import Gecko
from ..models.answer import answer
from ..models.ask import Ask, QuestionId
from ..models.cache import of_item
from ..models.factory import Models
from ..models.formatting import cut, format_conversation, format_json
from ..models.roles import ItemJudgement, LabelReply
from ..state import JsonObject, Rehearsal
from ..tools import Toolkit
from .checks import Checker, SampleVerdict, make, reaches, tell, to_langchain
from .samples import LabelCall, Sample

_CONVERSATION, _TOOLS, _LABEL = 20_000, 12_000, 6_000
"""Most characters of a question's parts."""


class Item(NamedTuple):
    """The result of one line: its rows as JSON text with verdicts, and reasons why other rows are unusable.

    `at` is the line's number among all lines, from 1; `where` its `file:line`.
    """

    at: int
    where: str
    rows: list[tuple[str, SampleVerdict, str]]
    bad: list[str]


class Judge:
    """Asks a model about labels that rules have not rejected, and replaces wrong labels by plans.

    A question's number follows from the line and the row's position in it.

    Args:
        models: The models by role: `label_judge`; with a planner, wrong labels of samples with a state are replaced.
        checker: Executes their calls.
    """

    def __init__(self, models: Models, checker: Checker) -> None:
        self._models, self._checker = models, checker

    def decide(self, items: Sequence[Item]) -> list[Item]:
        read = [(item.at, [json.loads(text) for _, _, text in item.rows]) for item in items]
        rows = [(row, QuestionId(0, number, at - 1)) for at, some in read for number, row in enumerate(some)]
        open_ = [(row, where) for row, where in rows if self._is_asked(row)]
        asks = [self._ask(row, where) for row, where in open_]
        for (row, _), reply in zip(open_, answer(asks, self._models), strict=True):
            row["verdict"] = _judged(row["verdict"], reply.value, reply.failure)
        for row, where in rows:
            with of_item(f"{where.question}.{where.attempt}"):
                if row["verdict"]["status"] == "drop" and (fixed := self._fix(row)):
                    row.clear()
                    row |= fixed
        return [
            item._replace(rows=[(row["id"], row["verdict"], json.dumps(row, ensure_ascii=False)) for row in some])
            for item, (_, some) in zip(items, read, strict=True)
        ]

    def _is_asked(self, row: Mapping[str, Any]) -> bool:
        """Return whether the model is asked about a row: not if the goal has decided."""
        verdict = row["verdict"]
        has_met = "goal" in row and verdict["by"] == "world"
        return verdict["status"] != "drop" and not has_met and self._models.has("label_judge")

    def _ask(self, row: Mapping[str, Any], where: QuestionId) -> Ask:
        doubts = [f"{each['path']}: {each['message']}" for each in row["verdict"]["reasons"]]
        label = describe_step(row["label"], row.get("text", ""))
        return ask_label(row, {"label": label}, where, cut("\n".join(doubts), budget=_LABEL))

    def _fix(self, row: JsonObject) -> JsonObject | None:
        """Return the row with an accepted plan as its label, None if no plan was found."""
        can_plan = self._checker.toolkit is not None and self._models.has("planner") and row.get("state") is not None
        if not can_plan or not row["messages"] or row["messages"][-1]["role"] != "user":
            return None
        sample: Any = {key: each for key, each in row.items() if key not in ("verdict", "results", "also")}
        label = self._plan(sample)
        plain: Any = {key: each for key, each in sample.items() if key != "goal"} | {"label": label}
        if not label or self._checker.check(plain)["status"] == "drop":
            return None
        reasons = [*row["verdict"]["reasons"], tell("replaced", ("label",), "by a plan that a rehearsal has accepted")]
        verdict = {**row["verdict"], "status": "fix", "by": "model", "reasons": reasons, "wrong": row["label"]}
        return {**sample, "label": label, "from": [*row["from"], {"fixed": row["label"]}], "verdict": verdict}

    @cached_property
    def _gecko(self) -> Gecko:
        return create_gecko(cast("Toolkit", self._checker.toolkit), model=self._models)

    def _plan(self, sample: Sample) -> list[LabelCall]:
        """Return the first calls of a plan that was accepted in the sample's state and meets its goal."""
        world, messages = self._checker.world_at(sample), to_langchain(sample["messages"])
        if isinstance(world, str):
            return []
        try:
            found: Rehearsal = self._gecko.invoke({"messages": messages, "task_state": world.state})["rehearsal"]
        except (GeckoError, RunFailure):
            return []
        for call in found["plan"]:
            world = make(world, {"name": call["name"], "arguments": call["args"]}).world
        is_right = "goal" not in sample or reaches(world, sample["goal"], messages, found["answer"])
        return _find_first(found) if is_right and found["verdict"]["status"] == "accepted" else []


def describe_row(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the common part of all prompts about a row: its tools and its conversation."""
    return {
        "tools": format_json([tool["function"] for tool in row["tools"]], budget=_TOOLS),
        "conversation": format_conversation(to_langchain(row["messages"]), budget=_CONVERSATION),
    }


def ask_label(row: Mapping[str, Any], candidates: Mapping[str, str], where: QuestionId, doubts: str = "") -> Ask:
    """Return the question whether candidates for a row's next step are right, keyed by candidate id."""
    steps = "\n".join(f"{id_}: {step}" for id_, step in candidates.items())
    shown = {**describe_row(row), "candidates": steps, "doubts": doubts}
    return Ask("label_judge", shown, LabelReply, where, ids=tuple(candidates))


def read_labels(reply: Any) -> dict[str, ItemJudgement]:
    """Return a reply's verdict on each candidate, by id."""
    return {each.id: each for each in reply.items} if isinstance(reply, LabelReply) else {}


def describe_step(calls: Sequence[Mapping[str, Any]], text: str) -> str:
    """Return an assistant's step as a prompt shows it: its calls and its text."""
    said = [*([{"calls": [*calls]}] if calls else []), *([{"says": text}] if text else [])]
    return format_json(said, budget=_LABEL)


def _judged(verdict: SampleVerdict, reply: Any, failure: str | None) -> SampleVerdict:
    if (said := read_labels(reply).get("label")) is None:
        reason = tell("no_reply", ("label",), failure or "no reply")
        return {**verdict, "status": "open", "by": "nobody", "reasons": [*verdict["reasons"], reason]}
    if said.status == "success":
        return {**verdict, "status": "keep", "by": "model"}
    is_open = said.unsure or said.status == "unknown"
    words = "it is not sure that the label is right" if is_open else "the label is not right"
    reason = tell("judged", ("label",), f"{words}: {said.reason}".removesuffix(": "))
    status: Any = "open" if is_open else "drop"
    return {**verdict, "status": status, "by": "model", "reasons": [*verdict["reasons"], reason]}


def _find_first(found: Rehearsal) -> list[LabelCall]:
    """Return the plan's calls before the first one that needs another call's result."""
    origins = found.get("origins", {})
    needs = [
        any(marks and all(one["from"] == "result" for one in marks) for marks in origins.get(call["id"], {}).values())
        for call in found["plan"]
    ]
    first = found["plan"][: needs.index(True) if True in needs else None]
    return [{"name": call["name"], "arguments": call["args"]} for call in first]
