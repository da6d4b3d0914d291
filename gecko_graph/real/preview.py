"""The preview of a plan: what will be called, in order, with what the rehearsal predicts of each call."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import cast

from langchain_core.messages import AnyMessage

from ..models.ask import Work
from ..models.formatting import cut, format_call, format_change, format_complaint, format_json, one_line
from ..state import VERSION, Json, JsonObject, Origin, Rehearsal, Step
from ..tools import Toolkit
from ..values.digest import digest
from ..values.patch import apply_fitting
from ..world.records import Binding, PlannedCall, Prediction, Preview, Undo
from ..world.undo import UndoFinder
from .bindings import PlanResults, template, with_holes
from .claims import Steps
from .policy import ReviewPolicy

CHANGE_CHARS = 2_000
RESULT_CHARS = 1_000
REASON_CHARS = 300
SHOWN = 120
MARKS = ("observed", "stale", "invented", "may_refuse", "supposed", "evidence")
OVERRULED = "refused by what was learned, approve it to have it made all the same"


def make_preview(
    rehearsal: Rehearsal,
    state: JsonObject,
    done: Sequence[Step],
    messages: Sequence[AnyMessage],
    *,
    toolkit: Toolkit,
    policy: ReviewPolicy,
) -> Preview | None:
    """Return what a plan has left to do; None where that is nothing, or reads alone of one that asks the user."""
    attempt = next(each for each in rehearsal["attempts"] if each["number"] == rehearsal["chosen"])
    made = {step["call"]["id"] for step in done}
    steps = {step["call"]["id"]: step for step in attempt["steps"]}
    results, origins = PlanResults(attempt["steps"], toolkit, messages, state), rehearsal.get("origins", {})
    calls: list[PlannedCall] = []
    reads: set[str] = set()
    for call in rehearsal["plan"]:
        if call["id"] in made:
            continue
        made_up = [each for each in rehearsal["verdict"].get("made_up", []) if each["call"] == call["id"]]
        rests = results.find(call, origins, {each["argument"] for each in made_up})
        reads.update(*rests.reads.values())
        planned = plan_call(steps[call["id"]], toolkit)
        rules = [each["rule"] for each in rehearsal["verdict"].get("may_refuse", []) if each["call"] == call["id"]]
        planned |= {"bindings": rests.bindings, "ambiguous": rests.ambiguous, "expects": rests.expects}
        left = [each for each in made_up if each["argument"] not in rests.arguments or not each["origin"]["path"]]
        derived = find_derived(origins.get(call["id"], {}), rests.arguments)
        calls.append({**planned, "made_up": left, "may_refuse": rules, "derived": derived})
    for each in calls:
        each["rehearse_after"] = each["call"]["id"] in reads
    if rehearsal["verdict"]["status"] != "accepted" and all(toolkit.is_read(each["call"]["name"]) for each in calls):
        return None
    return finish_preview(calls, state, toolkit=toolkit, policy=policy) if calls else None


def find_derived(origins: Mapping[str, Sequence[Origin]], bound: Collection[str]) -> list[str]:
    """Return the arguments that are derived, each with its operation; those that are bound get real values."""
    left = {path: [each["shown"] for each in found if "shown" in each] for path, found in origins.items()}
    return [f"{path.removeprefix('$.')}: {shown[0]}" for path, shown in left.items() if shown and path not in bound]


def plan_call(step: Step, toolkit: Toolkit) -> PlannedCall:
    """Return a simulated step as a call that is to be made, whose arguments rest on nothing but themselves."""
    call = step["call"]
    return {
        "call": call,
        "effect": toolkit[call["name"]].effect or "unknown",
        "predicted": predict(step),
        "bindings": [],
        "ambiguous": [],
        "made_up": [],
        "unclear": step["outcome"].get("unclear", []) if "outcome" in step else [],
        "overruled": step["outcome"].get("overruled", []) if "outcome" in step else [],
        "rehearse_after": False,
        "review": "allow",
        "reason": "",
    }


def predict(step: Step) -> Prediction:
    """Return what a simulated step predicts of the real call."""
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
    """Return the preview of these calls: which of them are reviewed, their digest, their net change."""
    decided: list[PlannedCall] = []
    after = seen = state
    for planned, before, after in with_states(calls, state):  # noqa: B007 - the last state is the predicted end
        seen = apply_fitting(seen, planned["predicted"].get("observed", []))
        word, reason = policy.word(planned, toolkit[planned["call"]["name"]], before)
        if word == "allow" and planned["predicted"]["status"] == "error":
            word, reason = "ask", "an error is predicted"
        decided.append({**planned, "review": word, "reason": reason})
    start = digest(state)
    return {
        "v": VERSION,
        "digest": preview_digest(decided, start),
        "start_digest": start,
        "made_at": time.time(),
        "calls": decided,
        "changes": format_change(seen, after, budget=CHANGE_CHARS).splitlines(),
    }


def add_undo(preview: Preview, state: JsonObject, finder: UndoFinder, limit_s: float) -> Steps:
    """Return the preview with what takes each write back, where a person is asked about any call."""

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
    (reply,) = yield [Work(function=search)]
    return reply.value or preview


def with_states(
    calls: Sequence[PlannedCall], state: JsonObject
) -> Iterator[tuple[PlannedCall, JsonObject, JsonObject]]:
    """Yield each call with the predicted task states before and after it."""
    for planned in calls:
        before = state
        if "answered" not in planned:
            state = apply_prediction(state, planned)
        yield planned, before, state


def apply_prediction(state: JsonObject, planned: PlannedCall) -> JsonObject:
    """Return the state with a call's predicted change, and what it has shown; unchanged where that does not fit it."""
    predicted = planned["predicted"]
    return apply_fitting(state, [*predicted["patch"], *predicted.get("observed", [])])


def preview_digest(calls: Sequence[PlannedCall], start: str) -> str:
    """Return the digest of the calls with their holes, and of the state that they begin from."""
    return digest([start, [[with_holes(each), *([each["answered"]] if "answered" in each else [])] for each in calls]])


def describe_calls(preview: Preview, left: Sequence[PlannedCall], state: JsonObject) -> dict[str, str]:
    """Return what a person should know of each call, by its id; what tools returned is cut, and fenced as data.

    What is said of the first call that is asked about holds the whole plan: some front ends show nothing else.
    """
    numbers = {each["call"]["id"]: number for number, each in enumerate(preview["calls"], 1)}
    tools = {each["call"]["id"]: each["call"]["name"] for each in preview["calls"]}
    names = {id_: f"step {number} ({tools[id_]})" for id_, number in numbers.items()}
    plan = [f"{n}. {format_call(each['call'])}, {each['review']}" for n, each in enumerate(preview["calls"], 1)]
    texts, asked = dict[str, str](), False
    for planned, before, after in with_states(left, state):
        call, predicted = planned["call"], planned["predicted"]
        reason = f": {cut(one_line(planned['reason']), budget=REASON_CHARS)}" if planned["reason"] else ""
        change = format_change(before, after, budget=CHANGE_CHARS)
        is_first = len(plan) > 1 and planned["review"] == "ask" and "answered" not in planned and not asked
        asked = asked or is_first
        whole = [f"The plan, {len(plan)} calls:", fence("\n".join(plan)), ""] if is_first else []
        lines = [
            f"Predicted by {predicted['rung']}: {predicted['status']}",
            fence(format_json(predicted["result"], budget=RESULT_CHARS)),
            f"Changes the task state:\n{fence(change)}" if before != after else "Leaves the task state as it is.",
        ]
        if predicted.get("invented") and predicted["status"] == "ok" and planned["effect"] != "read":
            lines = ["Its effect is not known here."]
        head = f"Step {numbers[call['id']]} of {len(numbers)}, {call['name']}{reason}"
        lines += [describe_undo(planned["undo"])] if "undo" in planned else []
        texts[call["id"]] = "\n".join([*whole, head, *lines, *describe_dependencies(planned, names)])
    return texts


def describe_undo(undo: Undo) -> str:
    """Return what takes a call back, in a line."""
    if undo["status"] == "timeout":
        return "No way back was found in time."
    if undo["status"] == "none":
        reason = undo.get("reason")
        return f"No way back is known: {reason}." if reason else "No way back is known."
    told = []
    for each in undo["calls"]:
        holes = {hole["argument"]: hole["path"] for hole in each["bindings"]}
        named = [f"{key}={_show(f'$.{key}', value, holes)}" for key, value in each["args"].items()]
        told.append(f"{each['name']}({', '.join(named)})" if named else each["name"])
    if undo["status"] == "compensated":
        return f"No way back; compensated for by {' or '.join(told)}."
    return f"Undone by {cut(one_line(', then '.join(told)), budget=RESULT_CHARS)}." if told else "Nothing to undo."


def _show(place: str, value: Json, holes: Mapping[str, str]) -> str:
    return f"<the real {holes[place]} of its result>" if place in holes else format_json(value, budget=SHOWN)


def describe_dependencies(planned: PlannedCall, names: Mapping[str, str]) -> Iterator[str]:
    """Yield what a call rests on, a line for each argument."""

    def place(binding: Binding) -> str:
        where = f"{cut(binding['path'], budget=SHOWN)} in the result of {names.get(binding['call'], binding['call'])}"
        return f"{where}, predicted {format_json(binding['predicted'], budget=SHOWN)}"

    for argument, parts in template(planned):
        yield f"- {argument}: {describe_parts(parts, place)}."
    for each in planned["ambiguous"]:
        sources = ", or ".join(map(place, each["sources"]))
        yield f"- {each['argument']}: not certain where it comes from: {sources}. Edit it to give its value."
    for binding in planned.get("expects") or ():
        yield f"- {binding['argument']}: holds only if the real {place(binding)}, is the same."
    if planned["predicted"].get("stale"):
        yield "- what is predicted was read for real: it may not show the changes before."
    for made_up in planned["made_up"]:
        yield f"- {made_up['argument']}: made up; nothing real supports it."
    yield from (f"- {derived} (computed, not stated)." for derived in planned.get("derived", ()))
    open_points = [("may be refused", each) for each in planned.get("may_refuse", ())]
    open_points += [(OVERRULED, each) for each in planned.get("overruled", ())]
    for word, text in [*open_points, *(("could not be checked", each) for each in planned.get("unclear", ()))]:
        yield f"- {word}: {cut(one_line(text), budget=REASON_CHARS)}"


def describe_parts(parts: Sequence[str | Binding], place: Callable[[Binding], str]) -> str:
    """Return a text with a mark for each hole, such as does not stand in it otherwise, and what the marks stand for."""
    holes = {f"{each['call']} {each['path']}": each for each in parts if not isinstance(each, str)}
    if len(parts) == 1:
        return f"its value is the real {next(map(place, holes.values()))}"
    texts = [cut(each, budget=max(SHOWN // 2, CHANGE_CHARS // len(parts))) for each in parts if isinstance(each, str)]
    deep = 1 + max(len(run) for run in ["", *re.findall(r"\[+(?=\d)", "\n".join(texts))])
    marks = {key: "[" * deep + str(number) + "]" * deep for number, key in enumerate(holes, 1)}
    quoted = iter([format_json(each, budget=CHANGE_CHARS)[1:-1] for each in texts])
    shown = [next(quoted) if isinstance(each, str) else marks[f"{each['call']} {each['path']}"] for each in parts]
    stands = "; ".join(f"{marks[key]} is the real {place(each)}" for key, each in holes.items())
    return f'"{cut("".join(shown), budget=2 * CHANGE_CHARS)}"; {cut(stands, budget=2 * CHANGE_CHARS)}'


def fence(text: str) -> str:
    """Return a text as a fenced block of Markdown that nothing in it can end."""
    marks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{marks}\n{text}\n{marks}"
