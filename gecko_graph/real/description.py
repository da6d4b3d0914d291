"""The question to a person: each call's effect, result and changes, the evidence for them, and how to undo it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..models.formatting import cut, format_call, format_json, format_values, one_line, share_budget
from ..state import JsonObject, Step
from ..values.difference import Change, net_changes
from ..values.notes import KINDS, by_kind, notes_of, tell
from ..values.patch import tokens
from ..values.places import bare, printable
from ..world.records import Binding, PlannedCall, Prediction, Preview
from ..world.shown import without_marks
from .bindings import template
from .names import Names
from .preview import CHANGE_CHARS, REASON_CHARS, RESULT_CHARS, SHOWN, describe_undo, fence, with_states

PLAN, APPROVE = "The plan, ", "Approve, and {} is called for real."
UNKNOWN = "not known"
MODEL = "a model supposes"
LEARNED = {
    "established": "seen in real calls",
    "proposed": "seen in real calls, too few to be sure",
    "derived": "by its document",
}
RUNGS = {"contract": "by contract", "python": "by its own simulation", "example": "by an example", "model": MODEL}
MOST_NAMED = 5


class Descriptions(NamedTuple):
    """The descriptions of a plan's calls for a person, by call id."""

    texts: dict[str, str]
    """As Markdown."""
    data: dict[str, JsonObject]


def basis_of(predicted: Prediction) -> tuple[str, str]:
    """Return the evidence for a call's predicted result and change."""
    rung = predicted["rung"]
    if rung in ("real", "person"):
        return "seen in a real call", "seen in a real call"
    result = LEARNED.get(predicted["evidence"], UNKNOWN) if "evidence" in predicted else RUNGS.get(rung, UNKNOWN)
    if predicted.get("invented") and rung != "model":
        result = UNKNOWN
    return result, MODEL if predicted.get("supposed") else result


def describe_calls(
    preview: Preview, left: Sequence[PlannedCall], state: JsonObject, done: Iterable[Step] = ()
) -> Descriptions:
    """Return the description of each call for a person; tool results are cut, and fenced as data.

    The first asked call's description contains the whole plan, since some front ends show nothing else. The real reads
    among the steps `done` provide names for ids.
    """
    numbers = {each["call"]["id"]: number for number, each in enumerate(preview["calls"], 1)}
    tools = {each["call"]["id"]: each["call"]["name"] for each in preview["calls"]}
    steps = {id_: f"step {number} ({tools[id_]})" for id_, number in numbers.items()}
    ran = [(each["call"]["name"], each["outcome"]) for each in done if "outcome" in each]
    real = [(name, outcome["result"]) for name, outcome in ran if outcome["rung"] == "real"]
    names = Names(state, real)
    plan = [f"{n}. {format_call(each['call'])}, {each['review']}" for n, each in enumerate(preview["calls"], 1)]
    question, asked = Descriptions({}, {}), False
    for planned, before, after in with_states(left, state):
        call = planned["call"]
        is_first = len(plan) > 1 and planned["review"] == "ask" and "answered" not in planned and not asked
        asked = asked or is_first
        whole = [f"{PLAN}{len(plan)} calls:", fence("\n".join(plan)), ""] if is_first else []
        reason = f": {cut(one_line(planned['reason']), budget=REASON_CHARS)}" if planned["reason"] else ""
        head = f"Step {numbers[call['id']]} of {len(numbers)}, {call['name']}{reason}"
        data = tell_call(planned, before, after, names)
        notes = [*describe_dependencies(planned, steps)]
        last = APPROVE.format(call["name"])
        lines = [*whole, head, *describe_effects(data, planned), *notes, *data["undo"], last]
        question.texts[call["id"]] = "\n".join(lines)
        question.data[call["id"]] = {**data, "notes": [each.removeprefix("- ") for each in notes]}
    return question


def tell_call(planned: PlannedCall, before: JsonObject, after: JsonObject, names: Names) -> JsonObject:
    predicted = planned["predicted"]
    result, change = basis_of(predicted)
    filled = predicted.get("filled") or {}
    holes = filled["places"] if filled.get("invented") else ()
    known = {*((result, change) if predicted["status"] == "ok" else ())}
    is_open = known == {UNKNOWN} and planned["effect"] != "read"
    return {
        "call": planned["call"],
        "does": planned.get("does", ""),
        "where": planned.get("where", ""),
        "about": [
            f"{name} ({where})" for name, where in [*dict(names.list_in(planned["call"]["args"])).items()][:MOST_NAMED]
        ],
        "status": predicted["status"],
        "result": None if is_open else predicted["result"],
        "result_rests_on": result,
        "made_up": [printable(place) or "all of it" for place in holes],
        "changes": [] if is_open else list_changes(before, after, names),
        "changes_rest_on": change,
        "undo": [describe_undo(planned["undo"])] if "undo" in planned else [],
    }


def describe_effects(data: JsonObject, planned: PlannedCall) -> Iterator[str]:
    """Yield lines: a call's effect, address and objects, its expected result and change, and their evidence."""
    does = " ".join(filter(None, [data["does"], f"({data['where']})" if data["where"] else ""]))
    yield from [does] if does else []
    yield from [f"About: {', '.join(data['about'])}"] if data["about"] else []
    if data["result_rests_on"] == data["changes_rest_on"] == UNKNOWN and data["status"] == "ok":
        yield "Its effect is not known here." if planned["effect"] != "read" else "Its result is not known here."
        return
    verb = "Returns" if data["status"] == "ok" else "An error is expected"
    made_up = f"; made up: {cut(', '.join(data['made_up']), budget=REASON_CHARS)}" if data["made_up"] else ""
    yield f"{verb}, {data['result_rests_on']}{made_up}:"
    yield fence(format_json(data["result"], budget=RESULT_CHARS))
    if data["changes"]:
        yield f"Changes, {data['changes_rest_on']}:"
        yield fence("\n".join(data["changes"]))
    elif planned["effect"] != "read":
        is_known = data["changes_rest_on"] not in (UNKNOWN, MODEL)
        yield "Changes nothing that is known here." if is_known else "Its changes are not known here."


def list_changes(before: JsonObject, after: JsonObject, names: Names) -> list[str]:
    """Return the changes between two states, a line each: `items > Stoneware mug (MUG) > stock: 6 → 4`."""

    def format_change(change: Change, share: int) -> str:
        path = tokens(change.path)
        above = [names.of(path[at - 1], key) if at else "" for at, key in enumerate(path)]
        keys = [cut(format_json(key)[1:-1], budget=SHOWN) for key in path]
        place = [f"{name} ({key})" if name else key for name, key in zip(above, keys, strict=True)]
        value = {path[-1] if path else "": change.new if change.kind != "shrink" else None}
        found = [name for name in dict.fromkeys(name for name, _ in names.list_in(value)) if name not in above]
        about = f" ({', '.join(found[:MOST_NAMED])})" if found else ""
        word = {"add": "new ", "remove": "removed "}.get(change.kind, "")
        return f"{' > '.join(place) or 'the whole state'}: {word}{format_values(change, share=share)}{about}"

    changes = net_changes(without_marks(before), without_marks(after))
    return share_budget(
        lambda share: [format_change(each, share) for each in changes], budget=CHANGE_CHARS
    ).splitlines()


def describe_dependencies(planned: PlannedCall, names: Mapping[str, str]) -> Iterator[str]:
    """Yield the evidence for a call's arguments, a line each."""

    def place(binding: Binding) -> str:
        path = cut(bare(binding["path"]), budget=SHOWN)
        where = f"{path and f'{path} in the '}result of {names.get(binding['call'], binding['call'])}"
        return f"{where}, predicted {format_json(binding['predicted'], budget=SHOWN)}"

    for argument, parts in template(planned):
        yield f"- {bare(argument)}: {describe_parts(parts, place)}."
    for each in planned["ambiguous"]:
        sources = ", or ".join(map(place, each["sources"]))
        yield f"- {bare(each['argument'])}: its source is not certain: {sources}. Edit it to give its value."
    for binding in planned.get("expects") or ():
        yield f"- {bare(binding['argument'])}: holds only if the real {place(binding)}, is the same."
    yield from (f"- {source}." for source in planned.get("sources", ()))
    yield from (f"- {derived} (computed, not stated)." for derived in planned.get("derived", ()))
    for found in by_kind(notes_of(planned)):
        yield f"- {KINDS[found['kind']].label}: {cut(one_line(tell(found, named=False)), budget=REASON_CHARS)}"


def describe_parts(parts: Sequence[str | Binding], place: Callable[[Binding], str]) -> str:
    """Return a text with a mark for each hole that does not occur in it otherwise, and the meaning of the marks."""
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
