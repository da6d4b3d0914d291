"""The preview of a plan: its calls in order, each with the prediction of the rehearsal."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import cast

from langchain_core.messages import AnyMessage

from ..models.ask import FunctionCall
from ..models.formatting import cut, format_change, format_complaint, format_json, one_line
from ..state import VERSION, Json, JsonObject, Origin, Rehearsal, Step
from ..tools import Toolkit
from ..tools.spec import ToolSpec
from ..undo import UndoFinder
from ..values.digest import digest
from ..values.notes import by_kind, notes_of, with_notes
from ..values.patch import apply_fitting
from ..values.places import bare, pointer
from ..world.records import PlannedCall, Prediction, Preview, Undo
from .bindings import PlanResults, with_holes
from .claims import Steps
from .policy import ReviewPolicy

CHANGE_CHARS = 2_000
RESULT_CHARS = 1_000
REASON_CHARS = 300
SHOWN = 120
SENTENCE = re.compile(r"(?<=[.!?])\s")
MARKS = ("observed", "notes", "invented", "supposed", "evidence", "filled")


def make_preview(
    rehearsal: Rehearsal,
    state: JsonObject,
    done: Sequence[Step],
    messages: Sequence[AnyMessage],
    *,
    toolkit: Toolkit,
    policy: ReviewPolicy,
) -> Preview | None:
    """Return a plan's remaining calls; None if there are none, or only reads of a plan that asks the user."""
    attempt = next(each for each in rehearsal["attempts"] if each["number"] == rehearsal["chosen"])
    made = {step["call"]["id"] for step in done}
    steps = {step["call"]["id"]: step for step in attempt["steps"]}
    results, origins = PlanResults(attempt["steps"], toolkit, messages, state), rehearsal.get("origins", {})
    calls: list[PlannedCall] = []
    reads: set[str] = set()
    for call in rehearsal["plan"]:
        if call["id"] in made:
            continue
        noted = notes_of(rehearsal["verdict"], "made_up", "may_refuse")
        noted = [each for each in noted if each["data"]["call"] == call["id"]]
        rests = results.find(call, origins, {each["where"] for each in notes_of(noted, "made_up")})
        reads.update(*rests.reads.values())
        planned = plan_call(steps[call["id"]], toolkit)
        planned |= {"bindings": rests.bindings, "ambiguous": rests.ambiguous, "expects": rests.expects}
        own, bound = origins.get(call["id"], {}), rests.arguments
        free = [each for each in notes_of(noted, "made_up") if each["data"]["origin"]["from"] == "planner"]
        left = [each for each in noted if each in free or each["where"] not in bound]
        shown = {path: [each["shown"] for each in own[path] if "shown" in each] for path in own if path not in bound}
        derived = [f"{bare(path)}: {texts[0]}" for path, texts in shown.items() if texts]
        sources = find_sources(own, bound, attempt["steps"])
        left += [each for each in notes_of(planned) if each["kind"] != "may_refuse"]  # the verdict contains these
        calls.append({**planned, "notes": by_kind(left), "derived": derived, "sources": sources})
    for each in calls:
        each["rehearse_after"] = each["call"]["id"] in reads
    if rehearsal["verdict"]["status"] != "accepted" and all(toolkit.is_read(each["call"]["name"]) for each in calls):
        return None
    return finish_preview(calls, state, toolkit=toolkit, policy=policy) if calls else None


def find_sources(origins: Mapping[str, Sequence[Origin]], bound: Collection[str], steps: Sequence[Step]) -> list[str]:
    """Return the origins of the arguments that are neither in the task nor bound."""
    found: list[str] = []
    for path, marks in origins.items():
        first = marks[0] if marks else None
        if first is None or path in bound or first["kind"] != "stated" or any(each["from"] == "task" for each in marks):
            continue
        number = first.get("step", 0)
        of_step = f"the result of {steps[number - 1]['call']['name']}" if 0 < number <= len(steps) else ""
        places = {"result": of_step, "state": "the task state", "conversation": "an earlier turn"}
        if place := places.get(first["from"]):
            found.append(f"{bare(path)}: from {place}")
    return found


def plan_call(step: Step, toolkit: Toolkit) -> PlannedCall:
    call, about = step["call"], tell_tool(toolkit[step["call"]["name"]])
    planned: PlannedCall = {
        "call": call,
        "effect": about["effect"],
        "does": about["does"],
        "where": about["where"],
        "predicted": predict(step),
        "bindings": [],
        "ambiguous": [],
        "rehearse_after": False,
        "review": "allow",
        "reason": "",
    }
    return with_notes(planned, notes_of(planned["predicted"]))


def tell_tool(tool: ToolSpec) -> JsonObject:
    """Return the description of a call's tool for a person: its first sentence, and its address."""
    binding, does = tool.binding, SENTENCE.split(one_line(tool.description), maxsplit=1)[0]
    where = f"{binding.method.upper()} {binding.path}" if binding else ""
    return {"effect": tool.effect or "unknown", "does": cut(does, budget=REASON_CHARS), "where": where}


def predict(step: Step) -> Prediction:
    if "outcome" not in step:
        why = "; ".join(format_complaint(each) for each in step["complaints"])
        return {"status": "error", "result": why, "rung": "validator", "patch": []}
    outcome = step["outcome"]
    fields = {key: outcome[key] for key in ("status", "result", "rung")} | {"patch": outcome["patch"] or []}
    marks = {key: value for key, value in outcome.items() if key in MARKS and value}
    return cast("Prediction", fields | marks)


def finish_preview(
    calls: Sequence[PlannedCall], state: JsonObject, *, toolkit: Toolkit, policy: ReviewPolicy
) -> Preview:
    """Return the preview of these calls with their reviews, digest and net change."""
    decided: list[PlannedCall] = []
    after = seen = state
    for planned, before, after in with_states(calls, state):  # noqa: B007 - the last state is the predicted end
        seen = apply_fitting(seen, planned["predicted"].get("observed", []))
        word, reason = policy.word(planned, toolkit[planned["call"]["name"]], before)
        if word == "allow" and planned["predicted"]["status"] == "error":
            word, reason = "ask", "an error is predicted"
        decided.append({**planned, "review": word, "reason": reason})
    start = digest(state)
    asked = (each for each in decided if each["review"] == "ask" and "answered" not in each and "risk" not in each)
    open_ = [each["call"]["id"] for each in asked if each["effect"] != "read" and each["predicted"]["status"] == "ok"]
    return {
        **({"unjudged": open_} if policy.risk and open_ else {}),  # type: ignore[typeddict-item]
        "v": VERSION,
        "digest": preview_digest(decided, start),
        "start_digest": start,
        "made_at": time.time(),
        "calls": decided,
        "changes": format_change(seen, after, budget=CHANGE_CHARS).splitlines(),
    }


def add_undo(preview: Preview, state: JsonObject, finder: UndoFinder, limit_s: float) -> Steps:
    """Return the preview with the calls that undo each write, if a person is asked about any call."""

    def search() -> Preview:
        calls: list[PlannedCall] = []
        for planned, before, after in with_states(preview["calls"], state):
            is_made = planned["effect"] != "read" and "answered" not in planned
            if is_made and planned["predicted"]["status"] == "ok":
                found = finder.find(planned["call"], planned["predicted"], before, after, limit_s=limit_s)
                planned = {**planned, "undo": found}
            calls.append(planned)
        return {**preview, "calls": calls}

    if not limit_s or all(each["review"] != "ask" for each in preview["calls"]):
        return preview
    (reply,) = yield [FunctionCall(function=search)]
    return reply.value or preview


def with_states(
    calls: Sequence[PlannedCall], state: JsonObject
) -> Iterator[tuple[PlannedCall, JsonObject, JsonObject]]:
    for planned in calls:
        before = state
        if "answered" not in planned:
            state = apply_prediction(state, planned)
        yield planned, before, state


def apply_prediction(state: JsonObject, planned: PlannedCall) -> JsonObject:
    """Return the state with a call's predicted change and observation, as far as they fit."""
    predicted = planned["predicted"]
    return apply_fitting(state, [*predicted["patch"], *predicted.get("observed", [])])


def preview_digest(calls: Sequence[PlannedCall], start: str) -> str:
    return digest([start, [[with_holes(each), *([each["answered"]] if "answered" in each else [])] for each in calls]])


def describe_undo(undo: Undo) -> str:
    if undo["status"] == "timeout":
        return "No way back was found in time."
    if undo["status"] == "none":
        reason = undo.get("reason")
        return f"No way back is known: {reason}." if reason else "No way back is known."
    shown = []
    for each in undo["calls"]:
        holes = {hole["argument"]: hole["path"] for hole in each["bindings"]}
        named = [f"{key}={_show(pointer((key,)), value, holes)}" for key, value in each["args"].items()]
        shown.append(f"{each['name']}({', '.join(named)})" if named else each["name"])
    if undo["status"] == "compensated":
        return f"No way back; compensated for by {' or '.join(shown)}."
    return f"Undone by {cut(one_line(', then '.join(shown)), budget=RESULT_CHARS)}." if shown else "Nothing to undo."


def _show(place: str, value: Json, holes: Mapping[str, str]) -> str:
    path = bare(holes.get(place, ""))
    return f"<the real {path and f'{path} of its '}result>" if place in holes else format_json(value, budget=SHOWN)


def fence(text: str) -> str:
    """Return a text as a fenced block of Markdown that its content cannot end."""
    marks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{marks}\n{text}\n{marks}"
