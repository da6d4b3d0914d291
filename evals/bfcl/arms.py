"""How a multi-turn task is played: by the truth, by the truth spoilt, by a recorded model, by a live one.

Each but the spoilt truth on real or on simulated tools (`Stage`); the plan that comes out runs on the real classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from langchain_core.language_models import BaseChatModel

from gecko_graph import GeckoContext, Toolkit
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.state import ChecklistItem, Json, JsonObject, Role

from ..harness.options import Options
from ..harness.rehearsed import rehearsed
from .acting import act, record_of
from .agreement import by_turn
from .label import really_done
from .official import check
from .oracle import NOTHING, Truth, apart, as_json, checklist, public, truth_of
from .redrawn import Seen
from .rehearse import Checklist, Played, Player, plan_of, play, written
from .replay import compare
from .sabotage import Calls, Scene, spoil
from .simulated import Stage, ruled
from .tasks import Task
from .written_first import WrittenFirst

MOST_CALLS = 100
"""Calls in one attempt: the longest recorded turn has 63."""

_DONE = {"say": "Done."}


async def by_truth(stage: Stage, options: Options) -> JsonObject:
    """Play with the ground truth as planner; rule checks judge, or on simulated tools a given model."""
    turns = truth_turns(stage.task)
    seen = seen_in([turn.truth for turn in stage.task.turns], truth_of(stage.task).answers, stage.task)

    def player(stage: Stage, number: int = 0) -> Player:
        stage.redrawn.seen = seen[number:]
        return _written(stage, turns, options, stage.truthful, lambda: _strict(stage.task, truth_of(stage.task)))

    if stage.acts:
        return record_of(stage, await act(stage, player(stage)))
    played = await _played(stage, player)
    return {**_record(stage, played, options), "errata": list(stage.task.errata())}


async def _played(stage: Stage, player: Callable[[Stage, int], Player]) -> Sequence[Played]:
    """Return the turns as played, one after the other or each alone, with the real identifiers.

    Args:
        stage: The task with its tools.
        player: Who plays it from a turn on, by number from 0; in the conversation each turn has its place even alone.
    """
    if not stage.alone:
        return stage.real(await play(stage.task, player(stage, 0)))
    played: list[Played] = []
    for number, task in enumerate(apart(stage.task)):
        one = Stage(task, stage.kind)
        played += one.real(await play(task, player(one, number)))
    return played


def truth_turns(task: Task) -> list[JsonObject]:
    """Return the calls of the ground truth, by turn."""
    return [{"planner": [[*map(task.read, turn.truth), _DONE]]} for turn in task.turns]


async def spoilt(task: Task, options: Options, *, first: int) -> JsonObject:
    """Play with the ground truth as planner, its first attempt at each turn spoilt, the second one right.

    Args:
        task: The task.
        options: The seed of the choices.
        first: Number of the kind of sabotage that the first turn begins with.
    """
    truth = truth_of(task)
    turns, kinds = _sabotage(task, truth, first=first, seed=f"{options.seed}:{task.id}")
    player = Player(speaker(turns), knobs(options, 1), task.truthful, _strict(task, truth))
    played = await play(task, player)
    return {**_record(Stage(task), played, options), "turns": _labelled(task, played, kinds)}


async def by_record(stage: Stage, options: Options, *, row: Mapping[str, Any], unchecked: bool = False) -> JsonObject:
    """Play with a recorded model as planner: its calls as they were, one attempt a turn.

    Args:
        stage: The task in the form that the model was given, and whose tools answer.
        options: The knobs.
        row: The recorded trajectory.
        unchecked: Offer all tools at any turn and allow any arguments, so that the validator refuses nothing.
    """
    task = stage.task
    turns = [{"planner": [recorded_steps(task, turn)]} for turn in row["turns"]]
    calls = [[call for step in turn["steps"] for call in step] for turn in row["turns"]]
    results = [[as_json(each) for step in turn["tool_results"] for each in step] for turn in row["turns"]]
    seen = seen_in(calls, results, task)
    begun = replace(stage, task=task.begin(len(turns)))

    def player(stage: Stage, number: int = 0) -> Player:
        stage.redrawn.seen = seen[number:]
        toolkit = cache(task.unchecked) if unchecked else stage.toolkit
        return _written(stage, turns, options, toolkit, lambda: ruled_by_record(task))

    if stage.acts:
        return record_of(begun, await act(begun, player(begun)))
    played = await _played(begun, player)
    record = _record(stage, played, options)
    return {**record, **compare(task, row, played)} if stage.kind == "real" else record


async def by_model(stage: Stage, options: Options) -> JsonObject:
    """Play with a live model as planner; the options name who writes the checklist and judges."""
    context = options.context(**stage.knobs)

    def player(stage: Stage, _: int) -> Player:
        return Player(options.speakers(), context, cache(stage.toolkit), start=stage.start, after=stage.advance)

    return _record(stage, await _played(stage, player), options, live=True)


async def by_record_first(stage: Stage, options: Options, *, row: Mapping[str, Any]) -> JsonObject:
    """Play with a recorded model's trajectory as first attempt at each turn; after feedback a live model plans.

    Only the options' models judge; the ground truth is used only to check the plan that came out.

    Args:
        stage: The task in the form that the recorded model was given, and whose tools answer.
        options: Who plans on (`--then`), writes the checklist and judges.
        row: The recorded trajectory.
    """
    task = stage.task
    turns = [{"planner": [recorded_steps(task, turn)]} for turn in row["turns"]]
    first = RecordedModel(turns=turns)
    then = options.chat(options.own.then)
    planner = WrittenFirst(first=first, then=then, messages=None, turns=len(turns))
    context = options.context(max_steps=MOST_CALLS, **stage.knobs)
    models = options.speakers(planner=planner)
    player = Player(models, context, cache(stage.toolkit), start=stage.start, after=stage.advance)
    played = await _played(stage, lambda *_: player)
    recorded = check(task, [turn["steps"] for turn in row["turns"]])
    return {**_record(stage, played, options, live=True), "planned": recorded.valid}


def _written(
    stage: Stage,
    turns: Sequence[JsonObject],
    options: Options,
    toolkit: Callable[[int], Toolkit],
    real_checks: Callable[[], Checklist],
) -> Player:
    """Return a player whose words are written down, one attempt a turn; judged by rule where no model judges."""
    models = judging(options)
    checks = None if "judge" in models else real_checks() if stage.kind == "real" else ruled(stage.task)
    context = knobs(options, 0, **stage.knobs)
    planner: dict[Role, BaseChatModel] = {"planner": RecordedModel(turns=list(turns), fill=stage.redrawn.fill)}
    return Player({**models, **planner}, context, cache(toolkit), checks, stage.start, stage.advance)


def seen_in(calls: Sequence[Sequence[str]], results: Sequence[Sequence[Json]], task: Task) -> list[Seen]:
    """Return what the writer of a plan has seen, by turn."""
    return [
        [(task.read(call)["call"], result) for call, result in zip(some, answers, strict=False)]
        for some, answers in zip(calls, results, strict=False)
    ]


def judging(options: Options) -> dict[Role, BaseChatModel]:
    """Return the models beside a written planner: a judge without a checklist's model writes its own."""
    models = options.speakers()
    models.pop("planner", None)
    if "judge" in models:
        models.setdefault("checklist", models["judge"])
    return models


def _strict(task: Task, oracle: Truth) -> Checklist:
    """Return rule checks of the whole real end state, what the official checker does not compare included."""

    def checks(turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
        return checklist(before, oracle.states[turn], oracle.answers[turn], seen=seen)

    return checks


def ruled_by_record(task: Task) -> Checklist:
    """Return rule checks of what the official checker looks at: it asks nothing of turns without a truth."""
    oracle = truth_of(task)

    def checks(turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
        if not task.turns[turn].truth:
            return [NOTHING]
        return checklist(public(before), public(oracle.states[turn]), oracle.answers[turn], seen=seen)

    return checks


def speaker(turns: Sequence[JsonObject]) -> Mapping[Role, BaseChatModel]:
    """Return the planner whose words are written down, by turn."""
    return {"planner": RecordedModel(turns=list(turns))}


def knobs(options: Options, max_retries: int, **given: Any) -> GeckoContext:
    """Return the knobs of a written planner: room for its longest turn, and no check of what its arguments mean."""
    return options.context(max_retries=max_retries, max_steps=MOST_CALLS, semantic_validation=False, **given)


def _sabotage(task: Task, truth: Truth, *, first: int, seed: str) -> tuple[list[JsonObject], list[str]]:
    """Return the planner's messages by turn, and how each first attempt is spoilt; empty where it has no calls."""
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
    """Return each spoilt turn with the judge's verdict on its first attempt, and that of the real classes."""
    labelled = []
    plan = plan_of(played)
    for number, (each, kind) in enumerate(zip(played, kinds, strict=True)):
        if not kind:
            continue
        first = each.rehearsal["attempts"][0]
        done = really_done(task, [*plan[:number], written(first)])
        accepted = first["verdict"]["status"] == "accepted"
        labelled.append({"turn": number + 1, "kind": kind, "done": done, "accepted": accepted})
    return labelled


def recorded_steps(task: Task, turn: Mapping[str, Any]) -> Calls:
    """Return a recorded model's messages of a turn: one for each step, then its text."""
    messages = [{"calls": [task.read(call) for call in step]} for step in turn["steps"] if step]
    text = next((each for each in reversed(turn["text"]) if each and each.strip()), "(nothing)")
    return [*messages, {"say": text}]


def _record(stage: Stage, played: Sequence[Played], options: Options, *, live: bool = False) -> JsonObject:
    """Return what every record keeps: the rehearsal, its plan in the official format, and the official verdict."""
    plan = plan_of(played)
    verdict = check(stage.task, plan)
    record = rehearsed(*(each.rehearsal for each in played))
    if not live:
        record["usage"].pop("planner", None)  # a planner whose words are written down costs nothing
    if not record["usage"] or not options.model_names():
        del record["usage"]
    return {
        **record,
        "valid": verdict.valid,
        "official": verdict.error,
        "accepted": [each.accepted for each in played],
        "by_turn": by_turn(stage, played),
        "plan": plan,
    }
