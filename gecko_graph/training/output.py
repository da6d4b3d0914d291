"""Tasks on disk: a folder of scenarios and their samples, which the same call goes on with wherever it was stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..conversation.user import Case
from ..errors import GeckoError
from ..state import Json, JsonObject
from ..tools import Toolkit
from ..values.documents import format_document
from .env import index_tasks, words_of
from .formats import as_responses_tools
from .journal import Journal
from .rows import write_rows
from .shapes import ROW_ERRORS
from .steps import go_on, once, read_rows, write_text
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
    """Make tasks as `make_tasks` does, and write them: `NAME.gecko.yaml` each, `tasks.jsonl` and `samples.jsonl`.

    Args:
        folder: Where they are written; what was stopped there is gone on with.
        toolkit: Tools with contracts, or functions.
        states: Task states to begin with.
        n: How many.
        tools: How the scenarios name the tools.
        seed: Another one, other tasks.
        more: `model` and `progress`, as for `make_tasks`.

    Raises:
        GeckoError: The folder holds other tasks (of other tools, states, number or seed), or cannot be written.
    """
    place = Path(folder)

    def work(journal: Journal) -> dict[str, int]:
        known = [Task.from_json(toolkit, row) for row in journal.read()]
        made = (task.to_json() for task in make_tasks(toolkit, states, n, seed=seed, known=known, **more))
        tasks = [Task.from_json(toolkit, row) for row in go_on(journal, (), lambda _: made)]
        for task in tasks:
            write_text(place / f"{task.name}.gecko.yaml", format_document(task.to_scenario(tools), ".yaml"))
        write_rows(place / SAMPLES, (row for task in tasks for row in task.to_samples()))
        return {"tasks": write_rows(place / TASKS, journal.read())}

    inputs = {"tools": toolkit.to_openapi(), "named": tools, "states": [*states], "n": n, "seed": seed}
    once(place, "tasks", [TASKS, SAMPLES], inputs, work, anew=False)
    return read_tasks(place, toolkit)


def read_tasks(folder: str | Path, toolkit: Toolkit) -> list[Task]:
    """Return the tasks of a folder. Raises GeckoError where it holds none."""
    file = Path(folder) / TASKS
    if not file.is_file():
        raise GeckoError(f"{folder}: it holds no {TASKS}: gecko-graph data tasks SPEC -o {folder}")
    try:
        return [Task.from_json(toolkit, row) for row in read_rows(file)]
    except ROW_ERRORS as error:
        raise GeckoError(f"{file}: holds something else than tasks: {error}") from None


def nemo_rows(tasks: Sequence[Case]) -> Iterator[JsonObject]:
    """Yield NeMo Gym's row of each task: the parameters of a request to OpenAI's Responses API, and its name."""
    for name, case in index_tasks(tasks).items():
        tools = as_responses_tools(case.tools.as_openai())
        given = {"input": [{"role": "user", "content": words_of(case)}], "tools": tools}
        yield {"id": name, "task": name, "responses_create_params": given}
