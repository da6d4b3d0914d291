"""The ways to play a multi-turn task: the ground truth, a corrupted ground truth, a recorded model, a live model.

All but the corrupted truth use real or simulated tools (`Stage`); the resulting plan is run on the real classes.
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
from ..harness.suite import rehearsed
from .acting import act, record_of
from .agreement import by_turn
from .drawn import Seen
from .official import check, really_done
from .oracle import NOTHING, Truth, apart, as_json, checklist, public, spoilt_turns, truth_of
from .rehearse import Checklist, Played, Player, plan_of, play, written
from .simulated import Stage, ruled
from .tasks import Task

MOST_CALLS = 100
"""Calls in one attempt: the longest recorded turn has 63."""

_DONE = {"say": "Done."}


async def by_truth(stage: Stage, options: Options) -> JsonObject:
    """Play with the ground truth as planner; rule checks judge, or, on simulated tools, a given model."""
    task = stage.task
    turns = [[*map(task.read, turn.truth), _DONE] for turn in task.turns]
    seen = seen_of(task, None)

    def player(stage: Stage, number: int = 0) -> Player:
        stage.redrawn.seen = seen[number:]
        return _written(stage, turns, options, stage.truthful, lambda: _strict(truth_of(task)))

    if stage.acts:
        return record_of(stage, await act(stage, player(stage)))
    return {**_record(stage, await _played(stage, player), options), "errata": list(task.errata())}


async def spoilt(task: Task, options: Options, *, first: int) -> JsonObject:
    """Play on the real classes with the ground truth as planner, corrupted in each turn's first attempt only.

    `first` is the number of the corruption that the first turn starts with.
    """
    truth = truth_of(task)
    ways = spoilt_turns(task, truth, first=first, seed=options.seed)
    retries = 1 if options.max_retries is None else options.max_retries
    turns = [{"planner": [[*way.spoilt, _DONE], *([[*way.right, _DONE]] * retries)]} for way in ways]
    models: dict[Role, BaseChatModel] = {"planner": RecordedModel(turns=turns)}
    stage = Stage(task)
    context = knobs(options, retries, **stage.knobs)
    played = await play(task, Player(models, context, task.truthful, _strict(truth)))
    plan, judged = plan_of(played), []
    for number, (each, way) in enumerate(zip(played, ways, strict=True)):
        if way.kind:
            first_try = each.rehearsal["attempts"][0]
            done = really_done(task, [*plan[:number], written(first_try)])
            accepted = first_try["verdict"]["status"] == "accepted"
            judged.append({"turn": number + 1, "kind": way.kind, "done": done, "accepted": accepted})
    return {**_record(stage, played, options), "judged": judged}


async def by_record(stage: Stage, options: Options, *, row: Mapping[str, Any]) -> JsonObject:
    """Play with a recorded model as planner: its calls unchanged, one attempt per turn."""
    task = stage.task
    turns = [recorded_steps(task, turn) for turn in row["turns"]]
    seen = seen_of(task, row)
    begun = replace(stage, task=task.begin(len(turns)))

    def player(stage: Stage, number: int = 0) -> Player:
        stage.redrawn.seen = seen[number:]
        return _written(stage, turns, options, stage.toolkit, lambda: ruled_by_record(task))

    if stage.acts:
        return record_of(begun, await act(begun, player(begun)))
    return _record(stage, await _played(begun, player), options)


async def by_model(stage: Stage, options: Options) -> JsonObject:
    """Play with a live model as planner; the options name the models that write the checklist and judge."""
    context = options.context(**stage.knobs)

    def player(stage: Stage, _: int) -> Player:
        return Player(options.speakers(), context, cache(stage.toolkit), start=stage.start, after=stage.advance)

    return _record(stage, await _played(stage, player), options, live=True)


async def _played(stage: Stage, player: Callable[[Stage, int], Player]) -> Sequence[Played]:
    """Return the played turns, in one conversation or each alone, with the real identifiers.

    `player` returns the player from a turn on; a turn that is played alone keeps its number.
    """
    if not stage.alone:
        return stage.real(await play(stage.task, player(stage, 0)))
    played: list[Played] = []
    for number, task in enumerate(apart(stage.task)):
        one = Stage(task, stage.kind, learned=stage.learned)
        played += one.real(await play(task, player(one, number)))
    return played


def _written(
    stage: Stage,
    turns: Sequence[Sequence[JsonObject]],
    options: Options,
    toolkit: Callable[[int], Toolkit],
    real_checks: Callable[[], Checklist],
) -> Player:
    """Return a player with recorded messages, one attempt per turn, judged by rules if no model judges."""
    models = judging(options)
    checks = None if "judge" in models else real_checks() if stage.kind == "real" else ruled(stage.task)
    models |= speaker(turns, fill=stage.redrawn.fill)
    return Player(models, knobs(options, 0, **stage.knobs), cache(toolkit), checks, stage.start, stage.advance)


def seen_of(task: Task, row: Mapping[str, Any] | None) -> list[Seen]:
    """Return, by turn, the calls and results that the plan's author has seen.

    The author is the ground truth, or the model of a recorded trajectory.
    """
    calls: Sequence[Sequence[str]] = [turn.truth for turn in task.turns]
    results: Sequence[Sequence[Json]]
    if row is None:
        results = truth_of(task).answers
    else:
        calls = [[call for step in turn["steps"] for call in step] for turn in row["turns"]]
        results = [[as_json(each) for step in turn["tool_results"] for each in step] for turn in row["turns"]]
    return [
        [(task.read(call)["call"], result) for call, result in zip(some, answers, strict=False)]
        for some, answers in zip(calls, results, strict=False)
    ]


def judging(options: Options) -> dict[Role, BaseChatModel]:
    """Return the models used with a recorded planner; a judge without a checklist model writes the checklist itself."""
    models = options.speakers()
    models.pop("planner", None)
    if "judge" in models:
        models.setdefault("checklist", models["judge"])
    return models


def _strict(truth: Truth) -> Checklist:
    """Return rule checks of the whole real end state, including what the official checker does not compare."""
    return lambda turn, before, seen: checklist(before, truth.states[turn], truth.answers[turn], seen=seen)


def ruled_by_record(task: Task) -> Checklist:
    """Return rule checks of what the official checker compares; turns without a truth have none."""
    oracle = truth_of(task)

    def checks(turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
        if not task.turns[turn].truth:
            return [NOTHING]
        return checklist(public(before), public(oracle.states[turn]), oracle.answers[turn], seen=seen)

    return checks


def speaker(turns: Sequence[Sequence[JsonObject]], **given: Any) -> dict[Role, BaseChatModel]:
    return {"planner": RecordedModel(turns=[{"planner": [[*turn]]} for turn in turns], **given)}


def knobs(options: Options, max_retries: int, **given: Any) -> GeckoContext:
    """Return the knobs of a recorded planner: enough steps for its longest turn, and no semantic validation."""
    return options.context(max_retries=max_retries, max_steps=MOST_CALLS, semantic_validation=False, **given)


def recorded_steps(task: Task, turn: Mapping[str, Any]) -> list[JsonObject]:
    """Return a recorded model's messages of a turn: one for each step, then its text."""
    messages = [{"calls": [task.read(call) for call in step]} for step in turn["steps"] if step]
    text = next((each for each in reversed(turn["text"]) if each and each.strip()), "(nothing)")
    return [*messages, {"say": text}]


def _record(stage: Stage, played: Sequence[Played], options: Options, *, live: bool = False) -> JsonObject:
    """Return the part of the record that all ways share: rehearsal, plan in the official format, official verdict."""
    plan = plan_of(played)
    verdict = check(stage.task, plan)
    record = rehearsed(*(each.rehearsal for each in played))
    if not live:
        record["usage"].pop("planner", None)  # recorded messages cost nothing
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
