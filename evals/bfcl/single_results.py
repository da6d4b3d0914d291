"""Plans in the official result format, in files and folders as the official evaluator looks for them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gecko_graph.state import Call, Json, JsonObject

OURS = "gecko-graph"


def official_result(calls: Iterable[tuple[str, JsonObject]], *, text: str) -> Json:
    """Return a function-calling model's result: each call's name with its arguments as JSON, or its text."""
    made = [{name: json.dumps(arguments, ensure_ascii=False)} for name, arguments in calls]
    return made or text


def of_plan(plan: Sequence[Call], *, answer: str) -> Json:
    """Return a rehearsal's plan, with the tools' names as the benchmark writes them; without calls its answer."""
    return official_result(((call["name"], call["args"]) for call in plan), text=answer)


def folder_name(*parts: str) -> str:
    """Return a model's name that is safe in paths, and that the evaluator reads back as it is: it takes `_` for `/`."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", "-".join(part for part in parts if part)).strip("-")


def write_results(folder: Path, model: str, by_category: Mapping[str, Mapping[str, Json]]) -> None:
    """Write one file a category, a result a line: `<model>/<live|non_live>/BFCL_v4_<category>_result.json`.

    Args:
        folder: The folder of all results.
        model: The name of who answered.
        by_category: Category to task to result.
    """
    for category, results in by_category.items():
        place = folder / model / ("live" if category.startswith("live_") else "non_live")
        place.mkdir(parents=True, exist_ok=True)
        rows = (json.dumps({"id": task, "result": one}, ensure_ascii=False) for task, one in results.items())
        (place / f"BFCL_v4_{category}_result.json").write_text("\n".join(rows) + "\n", encoding="utf-8")
