"""Play a multi-turn task with the agent: each turn is rehearsed on simulations, then carried out on the real classes.

In the rehearsal the file system is simulated by the contracts of `examples/files`, the other classes by copies made
from the task state. The real tools are methods of separate instances, which only the execution changes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph import Models, Toolkit, ToolSpec
from gecko_graph.agent.graph import create_gecko_agent
from gecko_graph.state import Json, JsonObject
from gecko_graph.values.difference import json_equal, make_patch
from gecko_graph.values.patch import apply_patch
from gecko_graph.world.records import ExecutedCall, Execution

from ..harness.figures import Record, Table, rate, rungs_of, share, tools_of
from ..harness.suite import Expectation, Summary, rehearsed, with_all
from .official import check
from .rehearse import Played, Player, answers
from .simulated import Stage
from .tasks import write_call

NOTE = (
    "Each turn was rehearsed on simulations (the file system by contract, the other classes on copies), and if "
    "accepted carried out on the benchmark's own instances."
)
ALLOWED = [{"tool": "*", "then": "allow"}]
"""The review policy: doubtful plans are approved, because the benchmark's ground truths also make up values."""
MOST_SHOWN = 5
"""Differences and drifts that a record lists per turn."""


@dataclass(frozen=True, slots=True)
class Acted:
    """One turn: the last rehearsal, the agent's record of its real calls, its and the real state afterwards."""

    played: Played
    execution: Execution
    state: JsonObject
    real: JsonObject


async def act(stage: Stage, player: Player) -> list[Acted]:
    task, saver = stage.task, InMemorySaver()
    config: RunnableConfig = {"configurable": {"thread_id": task.id}}
    instances, state = task.real.load(), stage.start
    given: JsonObject = {"task_state": state}
    acted: list[Acted] = []
    seen: list[Json] = []
    for number, turn in enumerate(task.turns):
        toolkit = Toolkit(really(tool, task.real.real(tool.name, instances)) for tool in player.toolkit(number))
        models = Models().replace(**dict(player.models))
        agent = create_gecko_agent(
            toolkit, model=models, context=player.context, interrupt_on=ALLOWED, checkpointer=saver
        )
        inputs: Any = {"messages": turn.said, **given}
        if player.checklist is not None:
            inputs["checklist"] = player.checklist(number, state, seen)
        run = await agent.ainvoke(inputs, config)
        while pauses := run.get("__interrupt__"):
            question = pauses[0].value
            decisions = [{"type": "approve"} for _ in question["action_requests"]]
            run = await agent.ainvoke(Command(resume={"id": question["id"], "decisions": decisions}), config)
        played = Played(run["rehearsal"], state, state)
        played = replace(played, after=apply_patch(state, played.chosen["change"]))
        real = stage.layout(task.real.read(instances))
        acted.append(Acted(played, run["execution"], run["task_state"], real))
        state, given = run["task_state"], {}
        seen += answers(played.chosen)
    return acted


def really(tool: ToolSpec, call: Callable[..., Json]) -> ToolSpec:
    """Return the tool with its real function; if it has a contract, error results become errors.

    The real classes return an error instead of raising it; they then have changed nothing.
    """
    return replace(tool, real=call if tool.contract is None else partial(with_errors, call), refuses=True)


def with_errors(call: Callable[..., Json], **args: Any) -> Any:
    """Return the answer of a real class's method, with an error result as an error and the text `None` as None."""
    answer = call(**args)
    if isinstance(answer, dict) and "error" in answer:
        return ToolMessage([{"type": "text", "text": json.dumps(answer)}], tool_call_id="", status="error")
    if isinstance(answer, str) and answer.startswith("Error during execution"):
        return ToolMessage(answer, tool_call_id="", status="error")
    return None if answer == "None" else answer


def record_of(stage: Stage, acted: Sequence[Acted]) -> JsonObject:
    """Return the record: the rehearsals, the executed calls with the official verdict, and each turn."""
    done = [
        [[write_call(each["call"]["name"], each["call"]["args"])] for each in made(turn.execution)] for turn in acted
    ]
    verdict = check(stage.task, done)
    values = rehearsed(*(each.played.rehearsal for each in acted))
    del values["usage"]
    return {
        **values,
        "valid": verdict.valid,
        "official": verdict.error,
        "accepted": [each.played.accepted for each in acted],
        "acted": list(turns_of(stage, acted, done)),
        "plan": done,
    }


def made(execution: Execution) -> list[ExecutedCall]:
    return [each for each in execution["calls"] if each["status"] in ("ok", "error")]


def turns_of(stage: Stage, acted: Sequence[Acted], done: Sequence[list[list[str]]]) -> Iterator[JsonObject]:
    """Yield the record of each turn.

    `valid` is the official verdict on the turn's plan after the really executed calls before. It is None after the
    first turn that was not executed or not valid, because the real state then differs from the expected one.
    """
    counts = True
    for number, each in enumerate(acted):
        valid = None
        if counts:
            plan = [[write_call(call["name"], call["args"])] for call in each.played.rehearsal["plan"]]
            here = done[number] if each.played.accepted else plan
            valid = check(stage.task, [*done[:number], here], turns=number + 1).valid
            counts = each.played.accepted and valid
        yield {**_of_turn(stage, each), "valid": valid}


def _of_turn(stage: Stage, acted: Acted) -> JsonObject:
    calls, owners = acted.execution["calls"], stage.task.real.owners
    steps = acted.played.chosen["steps"]
    drifts = [f"{each['call']['name']}: {drift}" for each in calls for drift in each.get("drift", [])]
    return {
        "status": acted.played.rehearsal["verdict"]["status"],
        "done": acted.execution["status"],
        "as_rehearsed": json_equal(acted.played.after, acted.real),
        "in_step": json_equal(acted.state, acted.real),
        "differences": [str(each)[:300] for each in make_patch(acted.real, acted.state)[:MOST_SHOWN]],
        "calls": len(made(acted.execution)),
        "drifts": [each[:300] for each in drifts[:MOST_SHOWN]],
        "departures": [f"{each['departure']['code']}: {each['call']['name']}" for each in calls if "departure" in each],
        "rehearsals": acted.execution["rehearsals"],
        "rungs": dict(Counter(step["outcome"]["rung"] for step in steps if "outcome" in step)),
        "classes": sorted({owners.get(step["call"]["name"], "unknown") for step in steps}),
    }


def summary(records: Sequence[Record], notes: Sequence[str]) -> Summary:
    """Return states and verdicts by task and by class, and a line for every turn with a difference."""
    done = [record for record in records if record.done]
    in_step = all(turn["in_step"] for each in done for turn in each.values["acted"])
    expected = [Expectation("after each turn the agent's task state is the real one", in_step)]
    return Summary([_by_category(records), _by_class(done)], expected, [*notes, *differing(done)])


def _by_category(records: Sequence[Record]) -> Table:
    columns = ["category", "carried out officially valid", "all turns accepted", "every state as rehearsed", "in step"]
    table = Table("The agent, by task", columns, note=NOTE)
    for name, some in with_all(records):
        table.add(
            name,
            rate(some, lambda record: bool(record.values["valid"])),
            rate(some, lambda record: all(record.values["accepted"])),
            rate(
                some,
                lambda record: all(turn["as_rehearsed"] or not is_carried_out(turn) for turn in record.values["acted"]),
            ),
            rate(some, lambda record: all(turn["in_step"] for turn in record.values["acted"])),
        )
    return table


def is_carried_out(turn: Mapping[str, Any]) -> bool:
    return bool(turn["calls"] or turn["departures"])


def is_agreed(turn: Mapping[str, Any]) -> bool:
    return bool((turn["status"] == "accepted") == turn["valid"])


def _by_class(done: Sequence[Record]) -> Table:
    columns = ["turns carried out", "real end state as rehearsed", "task state is the real one", "departures"]
    table = Table("States, by class", [*columns, "verdict agrees with the official one"])
    table.note = (
        "A turn counts for each class that it calls. Verdicts: turns up to a task's first one that was not accepted or "
        "not valid, by the official checker on its plan."
    )
    turns = [turn for record in done for turn in record.values["acted"]]
    for name in [*sorted({name for turn in turns for name in turn["classes"]}), "all"]:
        some = [turn for turn in turns if name in (*turn["classes"], "all")]
        acted = [turn for turn in some if is_carried_out(turn)]
        judged = [turn for turn in some if turn["valid"] is not None]
        groups = [[turn[key] for turn in acted] for key in ("as_rehearsed", "in_step")]
        *states, agreed = (
            share(sum(hits), len(hits), tools=tools_of(done), rungs=rungs_of(done))
            for hits in [*groups, list(map(is_agreed, judged))]
        )
        table.add(name, *states, sum(len(turn["departures"]) for turn in acted), agreed)
    return table


def differing(done: Sequence[Record]) -> Iterator[str]:
    """Yield a line for each turn with a wrong state, a wrong verdict or a departure."""
    for record in done:
        for number, turn in enumerate(record.values["acted"], 1):
            wrong = [word for word in ("as_rehearsed", "in_step") if not turn[word] and is_carried_out(turn)]
            if turn["valid"] is not None and not is_agreed(turn):
                wrong.append(f"{turn['status']}, officially {'valid' if turn['valid'] else 'invalid'}")
            if wrong or turn["departures"]:
                parts = [*wrong, *turn["departures"], *turn["drifts"][:1], *turn["differences"][:1]]
                yield f"{record.id}, turn {number} ({', '.join(turn['classes'])}): {'; '.join(parts)}"
