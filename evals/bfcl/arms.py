"""How a multi-turn task is played: by the truth, by the truth spoilt, by a recorded model, by a live one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from langchain_core.language_models import BaseChatModel

from gecko_graph import GeckoContext
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.state import ChecklistItem, Json, JsonObject, Role

from ..options import Options
from ..rehearsed import rehearsed
from .label import really_done
from .official import check
from .oracle import NOTHING, Truth, checklist, public, truth_of
from .rehearse import Checklist, Played, Player, plan_of, play, written
from .replay import compare
from .sabotage import Calls, Scene, spoil
from .tasks import Task
from .written_first import WrittenFirst

MOST_CALLS = 100
"""Calls in one attempt: the longest recorded turn has 63."""

_DONE = {"say": "Done."}


async def by_truth(task: Task, options: Options) -> JsonObject:
    """The ground truth plans; rule checks of the real end state judge."""
    turns = [{"planner": [[*map(task.read, turn.truth), _DONE]]} for turn in task.turns]
    player = _ruled(task, turns, options, oracle=truth_of(task), max_retries=0)
    played = await play(task, player)
    return {**_told(task, played), "errata": list(task.errata())}


async def spoilt(task: Task, options: Options, *, first: int) -> JsonObject:
    """The ground truth plans, its first attempt at each turn spoilt, the second one right.

    Args:
        task: The task.
        options: The seed of the choices.
        first: Number of the kind of sabotage that the first turn begins with.
    """
    truth = truth_of(task)
    turns, kinds = _sabotage(task, truth, first=first, seed=f"{options.seed}:{task.id}")
    player = _ruled(task, turns, options, oracle=truth, max_retries=1)
    played = await play(task, player)
    return {**_told(task, played), "turns": _labelled(task, played, kinds)}


async def by_record(task: Task, options: Options, *, row: Mapping[str, Any], unchecked: bool = False) -> JsonObject:
    """A recorded model plans: its calls as they were, one attempt a turn.

    Args:
        task: The task in the form that the model was given.
        options: The knobs.
        row: The recorded trajectory.
        unchecked: Offer all tools at any turn and allow any arguments, so that the validator refuses nothing.
    """
    turns = [{"planner": [recorded_steps(task, turn)]} for turn in row["turns"]]
    toolkit = cache(task.unchecked) if unchecked else task.toolkit
    player = Player(speaker(turns), knobs(options, 0), toolkit, ruled_by_record(task))
    played = await play(task.begin(len(turns)), player)
    told = _told(task, played)
    return {**told, **compare(task, row, played)}


async def by_model(task: Task, options: Options) -> JsonObject:
    """A live model plans; who writes the checklist and judges is said by the options."""
    player = Player(options.speakers(), options.context(), task.toolkit)
    return _told(task, await play(task, player), live=True)


async def by_record_first(task: Task, options: Options, *, row: Mapping[str, Any]) -> JsonObject:
    """A recorded model's trajectory is the first attempt at each turn, and after feedback a live model plans.

    Nobody but the options' models judges: what the ground truth knows is asked only of the plan that came out.

    Args:
        task: The task in the form that the recorded model was given.
        options: Who plans on (`--then`), writes the checklist and judges.
        row: The recorded trajectory.
    """
    turns = [{"planner": [recorded_steps(task, turn)]} for turn in row["turns"]]
    first = RecordedModel(turns=turns)
    then = options.chat(options.own.then)
    planner = WrittenFirst(first=first, then=then, messages=None, turns=len(turns))
    context = options.context(max_steps=MOST_CALLS)
    played = await play(task, Player(options.speakers(planner=planner), context, task.toolkit))
    recorded = check(task, [turn["steps"] for turn in row["turns"]])
    return {**_told(task, played, live=True), "planned": recorded.valid}


def _ruled(task: Task, turns: Sequence[JsonObject], options: Options, *, oracle: Truth, max_retries: int) -> Player:
    """A player whose words are written down, with rule checks from the real end state."""

    def checks(turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
        return checklist(before, oracle.states[turn], oracle.answers[turn], seen=seen)

    return Player(speaker(turns), knobs(options, max_retries), task.truthful, checks)


def ruled_by_record(task: Task) -> Checklist:
    """Rule checks of what the official checker looks at, and no more: it asks nothing of turns without a truth."""
    oracle = truth_of(task)

    def checks(turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
        if not task.turns[turn].truth:
            return [NOTHING]
        return checklist(public(before), public(oracle.states[turn]), oracle.answers[turn], seen=seen)

    return checks


def speaker(turns: Sequence[JsonObject]) -> Mapping[Role, BaseChatModel]:
    """The planner whose words are written down, by turn."""
    return {"planner": RecordedModel(turns=list(turns))}


def knobs(options: Options, max_retries: int) -> GeckoContext:
    """The knobs of a written planner: room for its longest turn, and no question about what its arguments mean."""
    return options.context(max_retries=max_retries, max_steps=MOST_CALLS, semantic_validation=False)


def _sabotage(task: Task, truth: Truth, *, first: int, seed: str) -> tuple[list[JsonObject], list[str]]:
    """What the planner says in each turn, and in which way its first attempt is spoilt; empty where it has no calls."""
    turns: list[JsonObject] = []
    kinds: list[str] = []
    state = task.real.initial_state
    for number, turn in enumerate(task.turns):
        right: Calls = [task.read(call) for call in turn.truth]
        kind, wrong = "", right
        if right:
            scene = Scene(task, number, state)
            kind, wrong = spoil(right, scene=scene, first=first + number, seed=f"{seed}:{number}")
        turns.append({"planner": [[*wrong, _DONE], [*right, _DONE]]})
        kinds.append(kind)
        state = truth.states[number]
    return turns, kinds


def _labelled(task: Task, played: Sequence[Played], kinds: Sequence[str]) -> list[JsonObject]:
    """Each spoilt turn: what the judge said of its first attempt, and what the real classes say of it."""
    labelled = []
    plan = plan_of(played)
    for number, (each, kind) in enumerate(zip(played, kinds, strict=True)):
        if not kind:
            continue
        first = each.rehearsal["attempts"][0]
        done = really_done(task, [*plan[:number], written(first)])
        accepted = first["verdict"]["word"] == "accepted"
        labelled.append({"turn": number + 1, "kind": kind, "done": done, "accepted": accepted})
    return labelled


def recorded_steps(task: Task, turn: Mapping[str, Any]) -> Calls:
    """What a recorded model said in a turn: a message for each step, then its text."""
    said = [{"calls": [task.read(call) for call in step]} for step in turn["steps"] if step]
    text = next((each for each in reversed(turn["text"]) if each and each.strip()), "(nothing)")
    return [*said, {"say": text}]


def _told(task: Task, played: Sequence[Played], *, live: bool = False) -> JsonObject:
    """What every record keeps: the rehearsal, its plan in the official format, and the official verdict on it."""
    plan = plan_of(played)
    verdict = check(task, plan)
    told = rehearsed(*(each.rehearsal for each in played))
    if not live:
        del told["usage"]  # a planner whose words are written down costs nothing
    return {
        **told,
        "valid": verdict.valid,
        "official": verdict.error,
        "accepted": [each.accepted for each in played],
        "plan": plan,
    }
