"""Formatters of a run's records: one line each, harmless to a terminal, cut where they are long.

Texts of tools and models may hold escape sequences, control characters and characters that reverse the writing
direction. `clean` makes them visible; every text that is shown goes through it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..masking import mask
from ..models.usage import total
from ..state import Json, Usage
from ..values.paths import json_path

VALUE_CHARS = 160
"""Characters of one value where it stands in a line."""

RESULT_CHARS = 280
"""Characters of a result."""

PROSE_CHARS = 1_200
"""Characters of an answer, an error or a reason."""

SECRET_CHARS = 4_000
"""Characters behind a cut in which the end of a secret is looked for."""

OPERATIONS_SHOWN = 6
ORIGINS_SHOWN = 3

Record: TypeAlias = Mapping[str, Any]
"""A record of `state.py`, finished or in the making."""

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)"  # OSC, DCS and their like, up to their end
    r"|\x1b[ -/]*[0-~]"  # all shorter ones
    r"|\x9b[0-?]*[ -/]*[@-~]",
    re.DOTALL,
)
SIGNS = {"add": "+", "replace": "~", "remove": "-", "shrink": "-"}
MARKS = {
    "unclear": ("point", " could not be checked"),
    "unsimulated": ("write", " that nothing simulates"),
    "undocumented": ("undocumented answer", ""),
    "stale": ("stale read", ""),
    "unasked_changes": ("unasked change", ""),
    "unsupported": ("unsupported value", " in the answer"),
    "ambiguous": ("ambiguous date", ""),
}
"""What marks a verdict besides made-up values, in words."""
CHOSEN = {"planner": "by the planner", "state": "in the start state", "conversation": "in an earlier turn"}
EXECUTION_WORDS = {"": "not over", "nothing": "nothing was done", "in_doubt": "in doubt"}
_FENCE = re.compile(r"^`{3,}(?:\n|$)", re.MULTILINE)
_JOINERS = "\u200c\u200d"  # emoji and several scripts need them, between two other characters
_STRAY_JOINERS = re.compile(rf"(?:^|(?<=[\s{_JOINERS}]))[{_JOINERS}]")
_UNSAFE = ("Cc", "Cf", "Cs", "Zl", "Zp")


class Mark(NamedTuple):
    """One operation of a patch: its sign, path and value."""

    sign: str
    place: str
    value: str


def clean(text: str, *, lines: bool = False) -> str:
    r"""Return text without secrets and escape sequences; other control characters become visible, as in `\x07`.

    Line ends become `⏎`, unless `lines` keeps them.
    """
    text = mask(text)
    if text.isascii() and text.isprintable():
        return text
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\t", " ")
    if not lines:
        text = text.replace("\n", " ⏎ ")
    text = _STRAY_JOINERS.sub(lambda found: _visible(found[0]), text)  # rich cannot measure a line that begins with one
    return "".join(char if _is_safe(char) else _visible(char) for char in text)


def _is_safe(char: str) -> bool:
    return char == "\n" or char in _JOINERS or unicodedata.category(char) not in _UNSAFE


def _visible(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def cut(text: str, room: int) -> str:
    """Return text within `room` characters; a cut text ends with its whole length."""
    shown = mask(text[: room + SECRET_CHARS])
    return shown if len(text) <= room else f"{shown[:room].rstrip()}… ({len(text):,} characters)"


def prose(text: str, *, room: int = PROSE_CHARS) -> str:
    """Format an answer or a reason: several lines, clean, cut."""
    return clean(cut(text.strip(), room), lines=True)


def format_value(value: Json, *, room: int = VALUE_CHARS) -> str:
    """Format a value as one line of JSON."""
    return clean(cut(json.dumps(value, ensure_ascii=False, default=str), room))


def format_result(result: Json) -> str:
    """Format a result: text as it is, everything else as JSON."""
    if isinstance(result, str) and result.strip():
        return clean(cut(result, RESULT_CHARS))
    return format_value(result, room=RESULT_CHARS)


def list_arguments(call: Record, *, origins: Record) -> list[tuple[str, str, bool]]:
    """Return each argument of a call, its origin in short, and whether it, or a part of it, is made up."""
    if "malformed" in call:
        return [(clean(cut(call["malformed"], VALUE_CHARS)), "", False)]
    share = max(24, VALUE_CHARS // max(1, len(call["args"])))
    listed = []
    for name, value in call["args"].items():
        text = mask(f"{clean(name)}: {format_value(value, room=share)}")
        listed.append((text, *format_origins(name, origins)))
    return listed


def format_origins(name: str, origins: Record) -> tuple[str, bool]:
    """Format the origins of a call's argument and its parts; return whether any of it is made up as well."""
    place = json_path((name,))
    inside = [path for path in origins if path.startswith((f"{place}.", f"{place}["))]
    found = [origin for path in (place, *inside) for origin in origins.get(path, ())]
    made_up = [origin for origin in found if origin["kind"] == "chosen"]
    known = [origin for origin in found if origin["kind"] != "chosen"]
    short = list(dict.fromkeys(map(format_origin, [*made_up[:1], *known])))  # one origin says that it is made up
    return ", ".join(short[:ORIGINS_SHOWN]), bool(made_up)


def format_origin(origin: Record) -> str:
    """Format an origin: `task`, `step 2`, `29 = 2 × 14.5`, `made up by model, step 1`."""
    step = f"step {origin['step']}" if "step" in origin else ""
    step += f" of attempt {origin['attempt']}" if "attempt" in origin else ""
    if origin["kind"] != "chosen":
        return clean(origin.get("shown") or step or origin["from"])
    author = f"by {clean(origin['rung'])}" if "rung" in origin else CHOSEN.get(origin["from"], "")
    return ", ".join(filter(None, [f"made up {author}", step]))


def format_made_up(made_up: Sequence[Record]) -> str:
    """Format the made-up values of a verdict: `rests on 2 made-up values: number, amount`; empty without any."""
    if not made_up:
        return ""
    names = list(dict.fromkeys(clean(each["argument"]).removeprefix("$.") for each in made_up))
    return f"rests on {counted(len(made_up), 'made-up value')}: {cut(', '.join(names), VALUE_CHARS)}"


def format_call(call: Record, *, origins: Record | None = None) -> str:
    """Format a call: `mkdir(folder: "temp" (task), depth: 2)`."""
    listed = list_arguments(call, origins=origins or {})
    arguments = ", ".join(f"{text} ({origin})" if origin else text for text, origin, _ in listed)
    return f"{clean(call['name'])}({mask(arguments)})"


def format_complaint(complaint: Record) -> str:
    """Format a complaint: path, expected, got, and its source."""
    expected, got = clean(complaint["expected"]), clean(cut(complaint["got"], VALUE_CHARS))
    return f"{clean(complaint['path'])}: expected {expected}, got {got} ({complaint['source']})"


def format_source(outcome: Record) -> str:
    """Format the rung that answered: `simulated by contract`."""
    rung = clean(str(outcome["rung"]))
    real = "run for real; may not show the changes before" if outcome.get("stale") else "run for real"
    return f"simulated by {rung}" if outcome["simulated"] else real


def format_passed(passed: Sequence[Record]) -> list[str]:
    """Format the rungs that tried and failed. The reason of a rung that did not apply has no cause after a colon."""
    return [f"not by {clean(each['rung'])}: {prose(each['reason'])}" for each in passed if ":" in each["reason"]]


def format_violations(violations: Sequence[Record]) -> list[str]:
    """Format the broken clauses of a call: the first one's error is the call's; none where that is all to say."""
    named = [f"{clean(each['clause'])} ({clean(each['kind'])})" for each in violations]
    if len(named) == 1 and named[0].endswith("] (tool)"):
        return []
    others = zip(named[1:], violations[1:], strict=True)
    return [*named[:1], *(f"{name}: {format_result(each['error'])}" for name, each in others)]


def format_marks(outcome: Record) -> list[tuple[str, str]]:
    """Return labelled lines on a result: broken clauses, what could not be checked or is not documented, its rules."""
    marks = [("broken", text) for text in format_violations(outcome.get("violations", ()))]
    labels = {"unclear": "unclear", "undocumented": "undocumented", "may_refuse": "may be refused"}
    return marks + [(label, prose(text)) for key, label in labels.items() for text in outcome.get(key, ())]


def format_patch(patch: Sequence[Record], *, room: int = VALUE_CHARS, most: int = OPERATIONS_SHOWN) -> list[Mark]:
    """Format a patch: `+ /cwd ["documents"]`; after `most` operations only their number."""
    return _at_most([_mark(operation, room) for operation in patch], most)


def _at_most(marks: list[Mark], most: int) -> list[Mark]:
    left = len(marks) - most
    return [*marks[:most], Mark("…", f"{left} more change{'s' if left > 1 else ''}", "")] if left > 0 else marks


def _mark(operation: Record, room: int) -> Mark:
    sign = {"add": "+", "remove": "-", "replace": "~", "move": ">", "copy": "=", "test": "?"}.get(operation["op"], "?")
    place = clean(cut(str(operation.get("path", "")), room)) or "/"
    if operation["op"] in ("move", "copy"):
        return Mark(sign, place, f"from {clean(cut(str(operation.get('from', '')), room))}")
    return Mark(sign, place, format_value(operation["value"], room=room) if "value" in operation else "")


def format_changes(rehearsal: Record) -> list[Mark]:
    """Format the changes of an accepted rehearsal, old → new, large losses first."""
    if rehearsal["verdict"]["status"] != "accepted":
        return []
    lines = [line for line in rehearsal["changes"] if " " in line]  # without changes it is one word
    lines.sort(key=lambda line: not line.startswith("shrink"))
    return _at_most([_change(*line.split(" ", 2)) for line in lines], OPERATIONS_SHOWN)


def _change(kind: str, place: str, value: str = "") -> Mark:
    return Mark(SIGNS.get(kind, "…"), clean(place), clean(cut(value, 2 * VALUE_CHARS)))


def format_execution(execution: Record) -> str:
    """Format what was really done in one line: `partial: 3 real calls, 1 drifted, 1 not made; 2 rehearsals`."""
    made = [entry for entry in execution["calls"] if entry["status"] in ("ok", "error", "in_doubt", "started")]
    drifted = sum(bool(entry.get("drift")) for entry in made)
    word = EXECUTION_WORDS.get(execution["status"], str(execution["status"]))
    drift = f"{drifted} drifted" if drifted else "no drift" if any("drift" in entry for entry in made) else ""
    left = f"{len(execution['left'])} not made" if execution["left"] else ""
    times = execution.get("rehearsals", 1)
    return f"{word}: {', '.join(filter(None, [counted(len(made), 'real call'), drift, left]))}" + (
        f"; {times} rehearsals" if times > 1 else ""
    )


def format_standing(record: Record) -> str:
    """Format what a run has really done: nothing of a rehearsal but opened reads; of an agent what it made, or asks."""
    if execution := record.get("execution"):
        return f"For real: {format_execution(execution)}"
    if asked := record.get("asked"):
        return f"Not done yet: {counted(len(asked), 'call')} below wait{'s' * (len(asked) == 1)} for a decision"
    steps = [step.get("outcome", {}) for attempt in record["attempts"] for step in attempt["steps"]]
    reads = sum(outcome.get("simulated") is False for outcome in steps)
    return "Only rehearsed: nothing was done for real" + (f" but {counted(reads, 'read')}" if reads else "")


def format_description(action: Record) -> str:
    """Format what is said of a call that a person decides on, without the fences around data."""
    text = str(action.get("description", ""))
    # the plan is for front ends that show one description: here all calls are shown
    return prose(_FENCE.sub("", text.partition("\n\n")[2] if text.startswith("The plan, ") else text))


def format_real_call(entry: Record) -> list[tuple[str, str]]:
    """Return labelled lines of a real call: result, or why it was not made; departure from the plan; drift."""
    departure = prose(entry["departure"]["message"]) if "departure" in entry else ""
    text = format_result(entry["result"]) if "result" in entry else departure or "no answer yet"
    by = " (a person's words)" if entry.get("by") == "person" else ""
    lines = [(entry["status"].replace("_", " "), f"{text}{by}")]
    if "result" in entry and departure and entry["departure"]["code"] != "error":  # an error is its result
        lines.append(("departed", departure))
    lines += [(key, prose(each)) for key in ("unclear", "undocumented") for each in entry.get(key, ())]
    return lines + [("drift", format_drift(drift)) for drift in entry.get("drift", ())]


def format_drift(drift: Record) -> str:
    """Return one place where reality differed from the prediction."""
    if drift["kind"] == "schema":
        return f"the result breaks its schema: {prose(str(drift['real']))}"
    values = f"{format_value(drift['predicted'])} → {format_value(drift['real'])}"
    return f"{drift['kind']} {clean(drift['path'])}: predicted → real {values}"


def format_verdict(verdict: Record, *, plan: Sequence[Any] | None = None) -> str:
    """Format a verdict in one line: `failed, 1 of 2`, `accepted, 2 of 2; rests on 1 made-up value: number`.

    An accepted plan without calls is marked `no calls`.
    """
    word = {"accepted": "accepted", "needs_user": "needs the user", "failed": "failed"}[verdict["status"]]
    counted_items = [item for item in verdict["items"] if item["status"] != "not_asked_for"]
    held = sum(item["status"] == "success" for item in counted_items)
    score = f"{held} of {len(counted_items)}" if counted_items else ""
    idle = "no calls" if plan is not None and not plan and verdict["status"] == "accepted" else ""
    result = ", ".join(filter(None, [word, score, idle]))
    marks = {key: verdict.get(key) for key in MARKS if key != "unasked_changes" or verdict["status"] != "failed"}
    found = [counted(len(each), MARKS[key][0]) + MARKS[key][1] for key, each in marks.items() if each]
    rules = [f"{clean(each['tool'])} ({clean(each['rule'])})" for each in verdict.get("may_refuse", ())]
    refusals = f"may be refused: {cut(', '.join(dict.fromkeys(rules)), RESULT_CHARS)}" if rules else ""
    return "; ".join(filter(None, [result, format_made_up(verdict.get("made_up", ())), refusals, *found]))


def style_of(verdict: Record) -> str:
    """Return the verdict's word, or `made up` where it is accepted with a mark."""
    doubtful = any(verdict.get(key) for key in ("made_up", "may_refuse", *MARKS))
    return "made up" if verdict["status"] == "accepted" and doubtful else str(verdict["status"])


def format_notes(verdict: Record) -> list[tuple[str, str]]:
    """Return labelled notes of a verdict: one for each of its marks."""
    notes = []
    for each in verdict.get("made_up", ()):
        value = f"{clean(each['argument']).removeprefix('$.')}: {format_value(each['value'])}"
        notes.append(("made up", f"{value} ({clean(each['tool'])}), {format_origin(each['origin'])}"))
    for each in verdict.get("may_refuse", ()):
        notes.append(("may be refused", f"{clean(each['tool'])}: {prose(each['rule'])}"))
    for each in verdict.get("unsupported", ()):
        notes.append(("answer", f"{format_value(each['text'])}: nothing real says so; {format_origin(each['origin'])}"))
    marks = ("unclear", "unsimulated", "undocumented", "stale", "ambiguous")
    notes += [(key, prose(each)) for key in marks for each in verdict.get(key, ())]
    return notes + [("unasked", prose(each)) for each in verdict.get("unasked_changes", ())]


def format_supposed(rehearsal: Record) -> list[tuple[str, str]]:
    """Return labelled lines on the supposed state: its keys, and the conditions that are unclear on it."""
    supposed = rehearsal.get("supposed_state") or {}
    lines = [("supposed", f"{clean(key)}: {format_value(value)}") for key, value in supposed.get("state", {}).items()]
    return lines + [("unclear", prose(each)) for each in supposed.get("unclear", ())]


def format_judgement(item: Record, stop_reason: str) -> tuple[str, str]:
    """Return an item's reason, empty where it repeats the stop reason, and who judged it."""
    reason = "" if item["reason"] == stop_reason else prose(item["reason"])
    if item["status"] == "not_asked_for":
        reason = f"not asked for, not counted: {reason}".removesuffix(": ")
    return reason, "not judged" if item["by"] == "nobody" else item["by"]


def format_feedback(verdict: Record, stop_reason: str = "") -> str:
    """Return the feedback without items, unasked changes and stop reason, which are shown by themselves."""
    shown = (*(f"- {item['description']}: " for item in verdict["items"]), "Not asked for: ")
    why = stop_reason if is_early(stop_reason) else "\n"
    lines = [line for line in verdict["feedback"].splitlines() if why not in line and not line.startswith(shown)]
    return prose("\n".join(lines))


def format_usage(usage: Usage) -> str:
    """Format usage: model calls and tokens, by role, and dollars where the price is known."""
    if not usage:
        return "no model was asked"
    spent = total(usage)
    if not spent["calls"]:
        return "no model replied"
    by_role = ", ".join(f"{role} {each['calls']}" for role, each in sorted(usage.items()) if each["calls"])
    price = "" if spent["cost"] is None else f", ${spent['cost']:.4f}"
    replies = "1 model reply" if spent["calls"] == 1 else f"{spent['calls']:,} model replies"
    tokens = f"{spent['input_tokens']:,} tokens read, {spent['output_tokens']:,} written{price}"
    if spent.get("estimated"):  # as in the demos
        tokens = f"about {tokens} (recorded replies: tokens are an estimate)"
    return f"{replies} ({by_role}), {tokens}"


def plan_of(attempt: Record) -> list[Record]:
    """Return the calls of an attempt whose outcome is ok."""
    return [step["call"] for step in attempt["steps"] if (step.get("outcome") or {}).get("status") == "ok"]


def is_early(stop_reason: str) -> bool:
    """Return whether an attempt ended before the planner's answer."""
    return stop_reason not in ("", "answered")


def refusal_of(outcome: Record) -> str:
    """Return why a result was not committed, empty where the result repeats it."""
    refused = outcome.get("refused") or ""
    return "" if not refused or outcome.get("result") == f"not done: {refused}" else prose(refused)


def counted(number: int, noun: str) -> str:
    """Format a number with its noun: `1 attempt`, `2 attempts`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
