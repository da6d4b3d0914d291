"""Tasks on disk: a folder of scenarios and their samples, which the same call goes on with wherever it was stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..conversation.user import Case
from ..errors import GeckoError
from ..state import Json, JsonObject
from ..tools import Toolkit
from ..values.digest import digest
from ..values.documents import format_document
from .env import index_tasks, words_of
from .formats import as_responses_tools
from .rows import write_rows
from .steps import write_text
from .tasks import Task, make_tasks

TASKS, SAMPLES, NEMO_GYM = "tasks.jsonl", "samples.jsonl", "nemo-gym.jsonl"


def save_tasks(
    folder: str | Path,
    toolkit: Toolkit,
    states: Sequence[JsonObject],
    n: int = 1000,
    *,
    tools: Json,
    seed: int = 0,
    **more: Any,
) -> list[Task]:
    """Make tasks as `make_tasks` does, and write each as it is made: `NAME.gecko.yaml`, and in the end `samples.jsonl`.

    Args:
        folder: Where they are written; what it holds of the same tools, states and seed is gone on with.
        toolkit: Tools with contracts, or functions.
        states: Task states to begin with.
        n: How many.
        tools: How the scenarios name the tools.
        seed: Another one, other tasks.
        more: `model` and `progress`, as for `make_tasks`.

    Raises:
        GeckoError: The folder holds tasks of other tools, states or another seed, or cannot be written.
    """
    place, key = Path(folder), digest([toolkit.to_openapi(), list(states), seed])
    try:
        place.mkdir(parents=True, exist_ok=True)
        tasks = _read_known(place / TASKS, toolkit, key)
        with (place / TASKS).open("a", encoding="utf-8") as journal:
            if not journal.tell():
                print(json.dumps({"v": 1, "of": key}), file=journal, flush=True)
            for task in make_tasks(toolkit, states, n, seed=seed, known=tasks, **more):
                write_text(place / f"{task.name}.gecko.yaml", format_document(task.to_scenario(tools), ".yaml"))
                print(json.dumps(task.to_json(), ensure_ascii=False), file=journal, flush=True)
                tasks.append(task)
        write_rows(place / SAMPLES, (row for task in tasks[:n] for row in task.to_samples()))
    except OSError as error:
        raise GeckoError(f"{place}: cannot be written: {error.strerror}") from None
    return tasks[:n]


def read_tasks(folder: str | Path, toolkit: Toolkit) -> list[Task]:
    """Return the tasks of a folder. Raises GeckoError where it holds none."""
    if not (Path(folder) / TASKS).is_file():
        raise GeckoError(f"{folder}: it holds no {TASKS}: gecko-graph data tasks SPEC -o {folder}")
    return _read_known(Path(folder) / TASKS, toolkit, None)


def nemo_rows(tasks: Sequence[Case]) -> Iterator[JsonObject]:
    """Yield NeMo Gym's row of each task: the parameters of a request to OpenAI's Responses API, and its name."""
    for name, case in index_tasks(tasks).items():
        tools = as_responses_tools(case.tools.as_openai())
        given = {"input": [{"role": "user", "content": words_of(case)}], "tools": tools}
        yield {"id": name, "task": name, "responses_create_params": given}


def _read_known(file: Path, toolkit: Toolkit, key: str | None) -> list[Task]:
    """Return the tasks of a journal, whose last line is dropped where it was cut off."""
    if not file.exists():
        return []
    whole, _, rest = file.read_bytes().rpartition(b"\n")
    if rest and key is not None:
        with file.open("r+b") as opened:
            opened.truncate(len(whole) + 1 if whole else 0)
    try:
        rows: list[Any] = [json.loads(line) for line in whole.splitlines()]
        is_other = key is not None and rows and rows[0]["of"] != key
        tasks = [] if is_other else [Task.from_json(toolkit, row) for row in rows[1:]]
    except (ValueError, LookupError, TypeError) as error:
        raise GeckoError(f"{file}: holds something else than tasks: {error}") from None
    if is_other:
        raise GeckoError(f"{file}: is of other tools or states, or of another seed: give another folder")
    return tasks
