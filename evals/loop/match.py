"""BFCL's recorded answers: ToolMatch with the allowed values, compared with the official verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from gecko_graph.state import JsonObject
from gecko_graph.training.match import tool_match

from ..harness.options import find, read_jsonl
from . import Given, Told

ANSWERS, AGREED, REFUSED = 19_729, 0.985, 14


def read_answers(given: Given) -> Iterator[tuple[JsonObject, JsonObject]]:
    """Yield each recorded answer with calls as a sample without its label's `also`, and its task."""
    tasks = {(one["dataset"], one["task_id"]): one for one in read_jsonl(find("bfcl_tasks.jsonl.gz", given.data))}
    rows = (row for row in read_jsonl(find("bfcl_calls.jsonl.gz", given.data)) if row["calls"])
    for number, row in enumerate(islice(rows, given.limit or None)):
        task = tasks[row["dataset"], row["task_id"]]
        shown = {one["name"].replace(".", "_"): one["name"] for one in task["functions"]}
        own = shown if row["name_style"] == "underscore" else {}
        label = [{"name": own.get(one["name"], one["name"]), "arguments": one["arguments"]} for one in row["calls"]]
        question = task["question"] if isinstance(task["question"][0], dict) else task["question"][0]
        tools = [_as_tool(one, task) for one in task["functions"]]
        sample = {"v": 1, "id": str(number), "tools": tools, "messages": question, "label": label, "from": []}
        yield {**sample, "right": row["official"]["valid"], "official": row["official"]}, task


def _as_tool(function: JsonObject, task: JsonObject) -> JsonObject:
    schema = task["json_schemas"][function["name"]]
    plain = {"name": function["name"], "description": function.get("description", ""), "parameters": schema}
    return {"type": "function", "function": plain}


def measure(given: Given) -> Iterator[Told]:
    """Yield the agreement, and the disagreements by cause."""
    agreed, refused, misses = Counter[bool](), 0, Counter[str]()
    for sample, task in read_answers(given):
        also = task["possible_answer"]
        label = [{"name": name, "arguments": {}} for each in also for name in each]
        matches = tool_match(sample["label"], label, sample["tools"], also)
        agreed[matches == sample["right"]] += 1
        if matches != sample["right"]:
            refused += matches
            loose = tool_match(_loosened(sample["label"]), label, sample["tools"], _loosened(also))
            cause = sample["official"]["error_type"] if matches else "case or punctuation" if loose else "other"
            misses[f"{'match, officially wrong' if matches else 'no match, officially right'}: {cause}"] += 1
    count = agreed.total()
    yield Told(
        f"{agreed[True]} of {count} as the official verdict ({agreed[True] / count:.2%})",
        agreed[True] >= AGREED * count,
    )
    yield Told(f"{refused} matches that it refuses, at most {REFUSED}", refused <= REFUSED)
    yield from (Told(f"{number} times {cause}") for cause, number in misses.most_common())


def _loosened(value: Any) -> Any:
    """Return a value with its texts normalised as BFCL compares them."""
    if isinstance(value, str):
        return "".join(sign for sign in value.lower().replace("'", '"') if sign not in " ,./-_*^")
    if isinstance(value, dict):
        return {key: _loosened(each) if key != "name" else each for key, each in value.items()}
    return [_loosened(each) for each in value] if isinstance(value, list) else value
