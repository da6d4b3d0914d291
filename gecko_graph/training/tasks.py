"""Tasks from contracts alone, each with a solution that its goal accepts, and no near-miss that it does; on disk."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from langchain_core.messages import HumanMessage

from ..context import GeckoContext
from ..conversation.changed import UNWATCHED
from ..conversation.derive import SUCCESS, describe_milestones
from ..conversation.milestones.format import MilestoneEntry, build_goal
from ..conversation.milestones.measures import check_installed
from ..conversation.milestones.tables import REST
from ..conversation.user import Case, UserEntry
from ..errors import GeckoError
from ..models.answer import answer
from ..models.ask import Ask, Where
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
from .env import GeckoEnv, as_conversation, find_trajectory, index_tasks, words_of
from .formats import as_responses_tools
from .near import cut, has_idle_write, longest_chain, near_misses, number, play
from .samples import Sample
from .shapes import ROW_ERRORS, read_row
from .shards import Shards, forget, name_of
from .steps import once, read_rows, write_text
from .vary import vary
from .walks import CHAIN, Move, Start, Walk
from .words import References, find_lacks, find_values, refer, say

A_SEQUENCE = 5
"""Tasks of one sequence of tool names."""
ANSWER = "Done."
MOST_WRITES = 5
ASKED = 2
"""How often a model is asked for words, before the template's are taken."""
SHARD = 50
"""Tasks that are kept at once when their making is stopped."""
PATIENCE = 3_000
"""Walks in a row of which none is kept, after which there are no more tasks to be found."""

Progress: TypeAlias = Callable[[int, int, int], None]
"""Called with how many tasks there are, how many are wanted, and how many walks were tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Case):
    """A task that was made: a `Case` with a scripted user, as a scenario has it, and its solution.

    Args:
        name: Its name, which holds the number of the walk that it was made from.
        solution: Calls, `{"name", "args"}`, that lead to the goal from the start state.
        milestones: The goal in the form of a scenario's file.
        chain: How many calls in a row depend on each other.
    """

    name: str
    solution: tuple[JsonObject, ...]
    milestones: tuple[JsonObject, ...]
    chain: int

    @property
    def words(self) -> str:
        """The user's words."""
        return self.user.goal if self.user else ""

    def to_json(self) -> JsonObject:
        return {
            "name": self.name,
            "words": self.words,
            "state": self.state,
            "solution": [*self.solution],
            "milestones": [*self.milestones],
            "chain": self.chain,
        }

    @classmethod
    def from_json(cls, toolkit: Toolkit, data: Mapping[str, Any]) -> Task:
        entries = [MilestoneEntry.model_validate(each) for each in data["milestones"]]
        words = data["words"]
        return cls(
            tools=toolkit,
            state=data["state"],
            limits=KNOBS,
            user=UserEntry.model_validate({"goal": words, "opening": words, "script": [{"end": True}]}),
            goal=build_goal(entries, [], data["state"]),
            needs=tuple(dict.fromkeys(each["name"] for each in data["solution"])),
            name=data["name"],
            solution=tuple(data["solution"]),
            milestones=tuple(data["milestones"]),
            chain=data["chain"],
        )

    def to_scenario(self, tools: Any) -> JsonObject:
        """Return the task as a scenario's file holds it; `tools` is how that names the tools."""
        user = {"goal": self.words, "opening": self.words, "script": [{"end": True}]}
        head = {"version": VERSION, "name": self.name, "tools": tools, "needs": [*self.needs], "state": self.state}
        return {**head, "user": user, "milestones": [*self.milestones]}

    def to_samples(self) -> list[Sample]:
        """Return a row for each call of the solution, and one for the answer."""
        env = GeckoEnv([self])
        env.reset(self.name)
        for call in self.solution:
            env.step([call])
        told: JsonObject = env.step(answer=ANSWER).observation
        kept = {"id": self.name, "state": self.state, "goal": {"milestones": [*self.milestones]}}
        return read_row({**told, **kept}, name=self.name, source={"task": self.name})


KNOBS = GeckoContext(semantic_validation=False)


class Maker:
    """Makes a task of each number: of equal toolkit, states and seed always the same one, or none.

    Raises:
        GeckoError: There is no state, or one that breaks the tools' rules; the extra `training` is not installed.
    """

    def __init__(
        self, toolkit: Toolkit, states: Sequence[JsonObject], seed: int = 0, models: ModelsLike = None
    ) -> None:
        check_installed()
        if not states:
            raise GeckoError("state: expected at least one task state to begin with")
        self._toolkit, self._states, self._seed = toolkit, list(states), seed
        self._models = Models.of(models)
        self._world = World(toolkit, context=KNOBS)
        for state in states:
            self._world.begin(state)
        if all(toolkit.is_read(name) for name in toolkit.names):
            raise GeckoError("tools: none changes the state, so there is no end to be reached: declare their effects")

    def make(self, at: int, full: Collection[tuple[str, ...]] = ()) -> Task | None:
        """Return the task of a number; None if its walk makes none, or one of these sequences of tool names.

        Of every three numbers two make deep ones alone.
        """
        deep, rng = at % 3 > 0, Random(f"{self._seed} {at}")
        start = Start(vary(self._world, rng.choice(self._states), rng))
        walked = Walk(start.world, rng, chained=rng.random() < 0.7).go(rng.randrange(1, MOST_WRITES + 1))
        _, steps = start.make(walked)
        if any(steps[move.origin]["call"]["args"] != move.args for move in walked):
            return None  # the omitted moves have changed the arguments of others
        moves, _ = refer(start.state, walked, steps)
        free: list[str] = []
        while True:
            moves, pairs, steps = number(start, *cut(start, moves, free))
            named, references = refer(start.state, moves, steps)
            if named != moves or not all(map(is_planned, steps.values())):
                return None  # numbered anew, a call before draws other values than this one was given
            chain = longest_chain(pairs)
            words = self._say(at, moves, references) if moves and (chain >= CHAIN or not deep) else None
            if words is None:
                return None
            try:
                milestones = describe_milestones(self._toolkit, hold(start, words, moves), clock_stands=True)
            except GeckoError:
                return None
            if {*(found := find_free(milestones))} <= {*free}:
                data = {"name": f"task-{at}", "words": words, "state": start.state, "milestones": milestones}
                solution = [{"name": move.name, "args": move.args} for move in moves]
                task = Task.from_json(self._toolkit, {**data, "solution": solution, "chain": chain})
                if sequence_of(task) in full:
                    return None
                misses = near_misses(start, moves, pairs, rng)
                is_kept = is_exact(task, start, moves, misses, found) and not has_idle_write(start, moves, found)
                return task if is_kept else None
            free = sorted({*free, *found})

    def _say(self, at: int, moves: Sequence[Move], references: References) -> str | None:
        """Return the words: a model's if they say all and no more, else a template's; None if none do."""
        plain = say(self._toolkit, moves, references)
        values = list(find_values(self._toolkit, moves, references))
        if find_lacks(plain, values, self._toolkit.names):
            return None
        missing: list[str] = []
        for again in range(ASKED if self._models.has("sample_writer") else 0):
            variables = {"task": plain, "missing": "\n".join(missing)}
            ask = Ask("sample_writer", variables, WrittenWords, Where(question=ASKED * (at - 1) + again))
            (reply,) = answer([ask], self._models)
            if not isinstance(reply.value, WrittenWords):
                break
            text = reply.value.message.strip()
            if not (missing := find_lacks(text, values, self._toolkit.names)):
                return text
        return plain


def hold(start: Start, words: str, moves: Sequence[Move]) -> JsonObject:
    """Return the conversation in which moves are made, as `create_conversation` returns it."""
    return as_conversation(start.make(moves)[0], [HumanMessage(words)], None)


def accepts(task: Task, start: Start, moves: Sequence[Move]) -> bool:
    trajectory = find_trajectory(task, task.words, start.make(moves)[0], ANSWER)
    return task.goal.is_end(trajectory) and (task.goal.score(trajectory)["similarity"] or 0.0) >= SUCCESS


def is_exact(
    task: Task, start: Start, moves: Sequence[Move], misses: Iterable[Sequence[Move]], free: Sequence[str]
) -> bool:
    """Return whether a task's goal accepts its solution, and refuses each near-miss with another end."""
    if not accepts(task, start, moves):
        return False
    whole = play(start, moves)
    return not any(accepts(task, start, miss) and not whole.is_same(start, miss, free)[0] for miss in misses)


def find_free(milestones: Sequence[JsonObject]) -> list[str]:
    """Return the tables that a goal leaves free: those that only hold places for other writes."""
    end = next(each for each in milestones if each.get("last"))
    changed = {each["at"] for each in end["state"]}
    left_out = [each for rest in end["unchanged"] for each in rest.removeprefix(REST).split(", ")]
    return sorted({*left_out} - changed - {*UNWATCHED})


@dataclass
class MakeTask(Work[tuple[int, Collection[tuple[str, ...]]], JsonObject | None]):
    """The work: the number of a task, and the sequences that are not wanted, to the task, as JSON, or None."""

    toolkit: Toolkit
    states: Sequence[JsonObject]
    seed: int
    models: Models

    def begin(self) -> Callable[[tuple[int, Collection[tuple[str, ...]]]], JsonObject | None]:
        """Build the maker."""
        maker = Maker(self.toolkit, self.states, self.seed, self.models)

        def make(item: tuple[int, Collection[tuple[str, ...]]]) -> JsonObject | None:
            task = maker.make(*item)
            return None if task is None else task.to_json()

        return make


def make_tasks(  # noqa: PLR0913 - every one is a choice of its own, by keyword
    toolkit: Toolkit,
    states: Sequence[JsonObject],
    n: int = 1000,
    *,
    seed: int = 0,
    model: ModelsLike = None,
    map: Map = map,
    known: Sequence[Task] = (),
    progress: Progress | None = None,
) -> Iterator[Task]:
    """Yield tasks made from contracts alone, each once its goal was seen to accept its solution and no near-miss.

    Args:
        toolkit: Tools with contracts, or functions.
        states: Task states to begin with; they are varied.
        n: How many tasks there shall be. There may be fewer: if none is found for long, no more are.
        seed: Another one, other tasks; equal ones give equal tasks, whatever `n`.
        model: Of role `sample_writer`, which puts a task in other words; without it a template does.
        map: Who does the work (`gecko_graph.values.mapping`); the tasks are the same.
        known: Tasks that were made before, in their order: those that follow are yielded.
        progress: Told how many there are, how many are wanted, and how many walks were tried.

    Raises:
        GeckoError: There is no state or none that the tools take, or no tool changes anything.
    """
    models = Models.of(model)
    Maker(toolkit, states, seed, models)  # which tells mistakes before any worker begins
    said = {task.words for task in known}
    sequences = Counter(sequence_of(task) for task in known)
    deep = sum(task.chain >= CHAIN for task in known)
    last = int(known[-1].name.rpartition("-")[2]) if known else 0
    if len(said) >= n:
        return
    # a worker is told what is full when it is given the number; what becomes full meanwhile is left out below
    items = ((at, [each for each, some in sequences.items() if some >= A_SEQUENCE]) for at in count(last + 1))
    for at, made in enumerate(map(MakeTask(toolkit, states, seed, models), items), last + 1):
        task = made and Task.from_json(toolkit, made)
        if progress and (task or not at % 10):
            progress(len(said), n, at)
        if at - last >= PATIENCE:
            return
        is_deep = bool(task) and task.chain >= CHAIN
        is_wanted = is_deep or deep * 2 > len(said)
        if not task or not is_wanted or task.words in said or sequences[sequence_of(task)] >= A_SEQUENCE:
            continue
        said.add(task.words)
        sequences[sequence_of(task)] += 1
        deep += is_deep
        last = at
        yield task
        if len(said) >= n:
            return


def sequence_of(task: Task) -> tuple[str, ...]:
    """Return the names of the tools of a task's solution."""
    return tuple(call["name"] for call in task.solution)


TASKS, SAMPLES, NEMO_GYM = "tasks.jsonl", "samples.jsonl", "nemo-gym.jsonl"


def save_tasks(  # noqa: PLR0913 - every one is a choice of its own, by keyword
    folder: str | Path,
    toolkit: Toolkit,
    states: Sequence[JsonObject],
    n: int = 1000,
    *,
    tools: Json,
    seed: int = 0,
    model: ModelsLike = None,
    shards: int | None = None,
    **more: Any,
) -> list[Task]:
    """Make tasks as `make_tasks` does, and write them: `NAME.gecko.yaml` each, `tasks.jsonl` and `samples.jsonl`.

    With `shards` these two are folders `tasks` and `samples` of so many files, each with a manifest.

    Args:
        folder: Where they are written; what was stopped there is gone on with.
        toolkit: Tools with contracts, or functions.
        states: Task states to begin with.
        n: How many.
        tools: How the scenarios name the tools.
        seed: Another one, other tasks.
        model: As for `make_tasks`.
        shards: So many files, of as many tasks each.
        more: `map` and `progress`, as for `make_tasks`.

    Raises:
        GeckoError: The folder holds other tasks (of other tools, states, number or seed), or cannot be written.
    """
    place, size = Path(folder), -(-n // shards) if shards else SHARD
    names = [name_of(file, shards) for file in (TASKS, SAMPLES)]

    def work(replies: Path) -> dict[str, int]:
        models = Models.of(model).caching(replies)
        made, samples = (Shards(place / name, digest(inputs), shards) for name in names)
        with made, samples:
            tasks = [Task.from_json(toolkit, json.loads(row)) for row in made.rows()]
            left = make_tasks(toolkit, states, n, seed=seed, model=models, known=tasks, **more)
            while some := list(islice(left, size)):
                made.write(len(made.done), (task.to_json() for task in some), lambda rows: {"tasks": rows})
                tasks += some
            for at in sorted(made.done.keys() - samples.done.keys()):
                some = tasks[at * size : (at + 1) * size]
                for task in some:
                    write_text(place / f"{task.name}.gecko.yaml", format_document(task.to_scenario(tools), ".yaml"))
                rows = (row for task in some for row in task.to_samples())
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


def read_tasks(folder: str | Path, toolkit: Toolkit) -> list[Task]:
    """Return the tasks of a folder. Raises GeckoError if it holds none."""
    place = Path(folder) / TASKS
    place = place if place.is_file() else place.with_suffix("")
    if not place.exists():
        raise GeckoError(f"{folder}: it holds no {TASKS}: gecko-graph data tasks SPEC -o {folder}")
    try:
        return [Task.from_json(toolkit, row) for file in find_files(place) for row in read_rows(file)]
    except ROW_ERRORS as error:
        raise GeckoError(f"{place}: holds something else than tasks: {error}") from None


def nemo_rows(tasks: Sequence[Case]) -> Iterator[JsonObject]:
    """Yield NeMo Gym's row of each task: the parameters of a request to OpenAI's Responses API, and its name."""
    for name, case in index_tasks(tasks).items():
        tools = as_responses_tools(case.tools.as_openai())
        given = {"input": [{"role": "user", "content": words_of(case)}], "tools": tools}
        yield {"id": name, "task": name, "responses_create_params": given}
