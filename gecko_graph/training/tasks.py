"""Make tasks from contracts; each goal accepts the task's solution and rejects its near-misses. Read and write them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from langchain_core.messages import HumanMessage

from ..conversation.changed import UNWATCHED
from ..conversation.derive import SUCCESS, describe_milestones
from ..conversation.milestones.measures import check_installed
from ..conversation.milestones.tables import REST
from ..conversation.played import as_conversation, find_trajectory
from ..conversation.scenario import Scenario
from ..errors import GeckoError
from ..models.answer import answer
from ..models.ask import Ask, QuestionId
from ..models.factory import Models, ModelsLike
from ..models.roles import WrittenWords
from ..state import VERSION, Json, JsonObject
from ..tools import Toolkit
from ..values.digest import digest
from ..values.documents import format_document
from ..values.mapping import Map, Work
from ..values.rows import find_files
from ..world.provenance import is_planned
from ..world.world import World
from .checks import KNOBS
from .env import GeckoEnv, index_tasks
from .files import once, read_rows, write_text
from .formats import as_responses_tools
from .near import cut, has_idle_write, longest_chain, near_misses, number, play
from .samples import Sample
from .shapes import ROW_ERRORS, read_row
from .shards import Shards, forget, name_of
from .vary import vary
from .walks import CHAIN, Move, Start, Walk
from .words import References, find_lacks, find_values, refer, say

A_SEQUENCE = 5
"""Most tasks with the same sequence of tool names."""
ANSWER = "Done."
MOST_WRITES = 5
ASKED = 2
"""How often a model is asked for words before the template's are used."""
SHARD = 50
"""Tasks after which the work is saved."""
PATIENCE = 3_000
"""Consecutive walks without a task after which the search ends."""

Progress: TypeAlias = Callable[[int, int, int], None]
"""Called with the numbers of found and requested tasks, and of walks tried."""


CHAINED = "chained"
"""The category of a task with `CHAIN` or more calls that each need the previous one."""
TASKS, SAMPLES, NEMO_GYM, TOOLS = "tasks.jsonl", "samples.jsonl", "nemo-gym.jsonl", "tools.openapi.yaml"


Wanted: TypeAlias = tuple[int, Collection[tuple[str, ...]]]
"""A task's number, and the unwanted sequences of tool names."""


@dataclass
class MakeTask(Work[Wanted, JsonObject | None]):
    """The work: a task's number to a scenario's content, if any; it depends on toolkit, states and seed only."""

    toolkit: Toolkit
    states: Sequence[JsonObject]
    seed: int
    models: Models
    tools: Json = TOOLS

    def begin(self) -> Callable[[Wanted], JsonObject | None]:
        """Build the world. Raises GeckoError for missing or invalid states, or if the extra `training` is missing."""
        check_installed()
        if not self.states:
            raise GeckoError("state: expected at least one start state")
        world = World(self.toolkit, context=KNOBS, derive=False)
        for state in self.states:
            world.begin(state)
        writes = [tool for tool in self.toolkit if not self.toolkit.is_read(tool.name)]
        if not writes:
            raise GeckoError("tools: none changes the state: declare their effects")
        if not any(tool.simulate or (tool.contract and tool.contract.answers) for tool in writes):
            raise GeckoError(
                "tools: no write has a contract or a function: `gecko-graph derive SPEC -o FILE` writes contracts, "
                "for --contracts FILE"
            )
        return partial(self._make, world)

    def _make(self, world: World, wanted: Wanted) -> JsonObject | None:
        """Return the task of a number; None if its walk gives none, or if its tool sequence is unwanted.

        Two of every three numbers give tasks with long chains only.
        """
        at, full = wanted
        deep, rng = at % 3 > 0, Random(f"{self.seed} {at}")
        start = Start(vary(world, rng.choice([*self.states]), rng))
        walked = Walk(start.world, rng, chained=rng.random() < 0.7).go(rng.randrange(1, MOST_WRITES + 1))
        _, steps = start.make(walked)
        if any(steps[move.origin]["call"]["args"] != move.args for move in walked):
            return None  # the omitted moves changed the arguments of others
        moves, _ = refer(start.state, walked, steps)
        free: list[str] = []
        while True:
            moves, pairs, steps = number(start, *cut(start, moves, free))
            named, references = refer(start.state, moves, steps)
            if named != moves or not all(map(is_planned, steps.values())):
                return None  # after renumbering, an earlier call draws other values than the ones used here
            chain = longest_chain(pairs)
            words = self._say(at, moves, references) if moves and (chain >= CHAIN or not deep) else None
            if words is None:
                return None
            try:
                milestones = describe_milestones(self.toolkit, hold(start, words, moves), clock_stands=True)
            except GeckoError:
                return None
            if {*(found := find_free(milestones))} <= {*free}:
                task = self._build(f"task-{at}", words, start, moves, milestones, is_chained=chain >= CHAIN)
                if sequence_of(task) in full:
                    return None
                misses = near_misses(start, moves, pairs, rng)
                is_kept = is_exact(task, start, moves, misses, found) and not has_idle_write(start, moves, found)
                return task.content if is_kept else None
            free = sorted({*free, *found})

    def _build(
        self, name: str, words: str, start: Start, moves: Sequence[Move], milestones: Json, *, is_chained: bool
    ) -> Scenario:
        content = {
            "version": VERSION,
            "name": name,
            "tools": self.tools,
            "needs": list(dict.fromkeys(move.name for move in moves)),
            **({"categories": [CHAINED]} if is_chained else {}),
            "state": start.state,
            "user": {"goal": words, "opening": words, "script": [{"end": True}]},
            "milestones": milestones,
            "solution": [{"name": move.name, "args": move.args} for move in moves],
        }
        return Scenario.from_dict(content, tools=self.toolkit)

    def _say(self, at: int, moves: Sequence[Move], references: References) -> str | None:
        """Return a model's words if they contain all values and no more, else the template's; None if invalid."""
        plain = say(self.toolkit, moves, references)
        values = list(find_values(self.toolkit, moves, references))
        if find_lacks(plain, values, self.toolkit.names):
            return None
        missing: list[str] = []
        for again in range(ASKED if self.models.has("sample_writer") else 0):
            variables = {"task": plain, "missing": "\n".join(missing)}
            ask = Ask("sample_writer", variables, WrittenWords, QuestionId(question=ASKED * (at - 1) + again))
            (reply,) = answer([ask], self.models)
            if not isinstance(reply.value, WrittenWords):
                break
            text = reply.value.message.strip()
            if not (missing := find_lacks(text, values, self.toolkit.names)):
                return text
        return plain


def hold(start: Start, words: str, moves: Sequence[Move]) -> JsonObject:
    """Return the conversation with the moves' calls, in the form of `create_conversation`'s output."""
    return as_conversation(start.make(moves)[0], [HumanMessage(words)], None)


def accepts(task: Scenario, start: Start, moves: Sequence[Move]) -> bool:
    trajectory = find_trajectory(task, start.make(moves)[0], ANSWER)
    return task.goal.is_end(trajectory) and (task.goal.score(trajectory)["similarity"] or 0.0) >= SUCCESS


def is_exact(
    task: Scenario, start: Start, moves: Sequence[Move], misses: Iterable[Sequence[Move]], free: Sequence[str]
) -> bool:
    """Return whether a task's goal accepts its solution, and rejects each near-miss with another end."""
    if not accepts(task, start, moves):
        return False
    whole = play(start, moves)
    return not any(accepts(task, start, miss) and not whole.is_same(start, miss, free)[0] for miss in misses)


def find_free(milestones: Sequence[JsonObject]) -> list[str]:
    """Return the tables that a goal leaves free: those that only have places of other writes."""
    end = next(each for each in milestones if each.get("last"))
    changed = {each["at"] for each in end["state"]}
    left_out = [each for rest in end["unchanged"] for each in rest.removeprefix(REST).split(", ")]
    return sorted({*left_out} - changed - {*UNWATCHED})


def make_tasks(  # noqa: PLR0913 - every one is a choice of its own, by keyword
    toolkit: Toolkit,
    states: Sequence[JsonObject],
    n: int = 1000,
    *,
    seed: int = 0,
    model: ModelsLike = None,
    map: Map = map,
    known: Sequence[Scenario] = (),
    tools: Json = TOOLS,
    progress: Progress | None = None,
) -> Iterator[Scenario]:
    """Yield tasks made from contracts; each goal is tested to accept the solution and to reject near-misses.

    Args:
        toolkit: Tools with contracts or functions.
        states: Start states, which are varied.
        n: Number of tasks; fewer if a long search finds no more.
        seed: Seed of the search; the tasks do not depend on `n`.
        model: The model of role `sample_writer`, which rewrites a task's words; without it a template is used.
        map: The `map` that runs the work (`gecko_graph.values.mapping`); it does not change the tasks.
        known: Earlier tasks, in order; only later ones are yielded.
        tools: The reference to the tools in each task's `content`, as in a scenario's file.
        progress: Called with the numbers of found and requested tasks, and of walks tried.

    Raises:
        GeckoError: No state, an invalid state, or no tool that changes the state.
    """
    work = MakeTask(toolkit, [*states], seed, Models.of(model), tools)
    work.begin()  # reports mistakes before any worker starts
    said = {task.words for task in known}
    sequences = Counter(sequence_of(task) for task in known)
    deep = sum(CHAINED in task.categories for task in known)
    last = int(known[-1].name.rpartition("-")[2]) if known else 0
    if len(said) >= n:
        return
    # a worker gets the full sequences with its number; sequences that fill up later are filtered below
    items = ((at, [each for each, some in sequences.items() if some >= A_SEQUENCE]) for at in count(last + 1))
    for at, made in enumerate(map(work, items), last + 1):
        task = Scenario.from_dict(made, tools=toolkit) if made else None
        if progress and (task or not at % 10):
            progress(len(said), n, at)
        if at - last >= PATIENCE:
            return
        if task is None or task.words in said or sequences[sequence_of(task)] >= A_SEQUENCE:
            continue
        is_deep = CHAINED in task.categories
        if not is_deep and deep * 2 <= len(said):
            continue
        said.add(task.words)
        sequences[sequence_of(task)] += 1
        deep += is_deep
        last = at
        yield task
        if len(said) >= n:
            return


def sequence_of(task: Scenario) -> tuple[str, ...]:
    return tuple(call["name"] for call in task.solution)


def save_tasks(  # noqa: PLR0913 - every one is a choice of its own, by keyword
    folder: str | Path,
    toolkit: Toolkit,
    states: Sequence[JsonObject],
    n: int = 1000,
    *,
    tools: Json = TOOLS,
    seed: int = 0,
    model: ModelsLike = None,
    shards: int | None = None,
    **more: Any,
) -> list[Scenario]:
    """Make tasks by `make_tasks`, and write `NAME.gecko.yaml` files, `tasks.jsonl` and `samples.jsonl`.

    With `shards` these two are folders `tasks` and `samples` of so many files, each with a manifest.

    Args:
        folder: The output folder; stopped work there is resumed.
        toolkit: Tools with contracts or functions.
        states: Start states.
        n: Number of tasks.
        tools: The scenarios' reference to the tools; a file of this name must be written beside them.
        seed: Seed of the search.
        model: As for `make_tasks`.
        shards: So many files, of as many tasks each.
        more: `map` and `progress`, as for `make_tasks`.

    Raises:
        GeckoError: The folder has tasks of other tools, states, number or seed, or cannot be written.
    """
    place, size = Path(folder), -(-n // shards) if shards else SHARD
    names = [name_of(file, shards) for file in (TASKS, SAMPLES)]

    def work(replies: Path) -> dict[str, int]:
        how = {"tools": tools, "seed": seed, "model": Models.of(model).caching(replies), **more}
        made, samples = (Shards(place / name, digest(inputs), shards) for name in names)
        with made, samples:
            tasks = [Scenario.from_dict(json.loads(row), tools=toolkit) for row in made.rows()]
            left = make_tasks(toolkit, states, n, known=tasks, **how)
            while some := list(islice(left, size)):
                made.write(len(made.done), (task.content for task in some), lambda rows: {"tasks": rows})
                tasks += some
            for at in sorted(made.done.keys() - samples.done.keys()):
                rows = _write_cases(tasks[at * size : (at + 1) * size], place)
                samples.write(at, rows, lambda number: {"rows": number})
            made.save()
            samples.save()
        return {"tasks": len(tasks)}

    inputs = {"tools": toolkit.to_openapi(), "named": tools, "states": [*states], "n": n, "seed": seed}
    inputs |= {"shards": shards} if shards else {}
    once(place, "tasks", names, inputs, work, anew=False)
    for name in names:
        forget(place / name)
    return read_tasks(place, toolkit)


def _write_cases(tasks: Sequence[Scenario], folder: Path) -> Iterator[Sample]:
    for task in tasks:
        write_text(folder / f"{task.name}.gecko.yaml", format_document(task.content, ".yaml"))
        yield from find_samples(task)


def find_samples(task: Scenario) -> list[Sample]:
    """Return a row for each call of a task's solution, and one for the answer."""
    env = GeckoEnv([task])
    env.reset(task.name)
    for call in task.solution:
        env.step([call])
    told: JsonObject = env.step(answer=ANSWER).observation
    kept = {"id": task.name, "state": task.state, "goal": {"milestones": task.content["milestones"]}}
    return read_row({**told, **kept}, name=task.name, source={"task": task.name})


def read_tasks(folder: str | Path, toolkit: Toolkit) -> list[Scenario]:
    """Return the tasks of a folder. Raises GeckoError if there are none, or a row is none."""
    place = Path(folder) / TASKS
    place = place if place.is_file() else place.with_suffix("")
    if not place.exists():
        raise GeckoError(f"{folder}: no {TASKS} there; make it with gecko-graph data tasks SPEC -o {folder}")
    try:
        rows = [row for file in find_files(place) for row in read_rows(file)]
    except ROW_ERRORS as error:
        raise GeckoError(f"{place}: holds something else than tasks: {error}") from None
    return [Scenario.from_dict(row, where=f"{place} row {number}", tools=toolkit) for number, row in enumerate(rows, 1)]


def nemo_rows(tasks: Sequence[Scenario]) -> Iterator[JsonObject]:
    """Yield NeMo Gym's row of each task: the parameters of a request to OpenAI's Responses API, and its name."""
    for name, case in index_tasks(tasks).items():
        tools = as_responses_tools(case.tools.as_openai())
        given = {"input": [{"role": "user", "content": case.words}], "tools": tools}
        yield {"id": name, "task": name, "responses_create_params": given}
