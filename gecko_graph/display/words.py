"""Records in words: one line a thing, harmless to a terminal, cut where they are long.

What tools and models wrote may hold escape sequences, control characters and characters that turn the writing direction
round. `clean` makes them visible; every text that is shown goes through it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..masking import mask
from ..models.usage import total
from ..schemas.findings import json_path
from ..state import Json, Usage

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
_CHANGES = {"add": "+", "replace": "~", "remove": "-", "shrink": "-"}
_JOINERS = "\u200c\u200d"  # emoji and several scripts need them
_UNSAFE = ("Cc", "Cf", "Cs", "Zl", "Zp")


class Mark(NamedTuple):
    """One operation of a patch in words: a sign, where, and what."""

    sign: str
    place: str
    value: str


def clean(text: str, *, lines: bool = False) -> str:
    r"""Text without secrets and escape sequences; other control characters become visible, as in `\x07`.

    Args:
        text: Anything.
        lines: Keep line ends; else they become `⏎`.
    """
    text = mask(text)
    if text.isascii() and text.isprintable():
        return text
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\t", " ")
    if not lines:
        text = text.replace("\n", " ⏎ ")
    return "".join(char if _is_safe(char) else _visible(char) for char in text)


def _is_safe(char: str) -> bool:
    return char == "\n" or char in _JOINERS or unicodedata.category(char) not in _UNSAFE


def _visible(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def cut(text: str, room: int) -> str:
    """Text within `room` characters; what is cut leaves the whole length behind."""
    shown = mask(text[: room + SECRET_CHARS])
    return shown if len(text) <= room else f"{shown[:room].rstrip()}… ({len(text):,} characters)"


def prose(text: str, *, room: int = PROSE_CHARS) -> str:
    """An answer or a reason: several lines, clean, cut."""
    return clean(cut(text.strip(), room), lines=True)


def tell(value: Json, *, room: int = VALUE_CHARS) -> str:
    """A value as one line of JSON."""
    return clean(cut(json.dumps(value, ensure_ascii=False, default=str), room))


def tell_result(result: Json, *, room: int = RESULT_CHARS) -> str:
    """A result: text as it is, everything else as JSON."""
    return clean(cut(result, room)) if isinstance(result, str) and result.strip() else tell(result, room=room)


def tell_args(call: Record, *, room: int = VALUE_CHARS, origins: Record | None = None) -> str:
    """A call's arguments: `folder: "temp", depth: 2`, and where each comes from, where that is known."""
    told = arguments(call, room=room, origins=origins or {})
    return mask(", ".join(f"{text} ({origin})" if origin else text for text, origin, _ in told))


def arguments(call: Record, *, origins: Record, room: int = VALUE_CHARS) -> list[tuple[str, str, bool]]:
    """Each argument of a call, where it comes from in short, and whether it, or a part of it, is made up."""
    if "malformed" in call:
        return [(clean(cut(call["malformed"], room)), "", False)]
    each = max(24, room // max(1, len(call["args"])))
    told = []
    for name, value in call["args"].items():
        place = json_path((name,))
        inside = {path: found for path, found in origins.items() if path.startswith((f"{place}.", f"{place}["))}
        found = [origin for path in (place, *inside) for origin in origins.get(path, ())]
        made_up = [origin for origin in found if origin["from"] == "supposed"]
        known = [origin for origin in found if origin["from"] != "supposed"]
        short = list(dict.fromkeys(map(tell_origin, [*made_up[:1], *known])))  # one origin says that it is made up
        text = mask(f"{clean(name)}: {tell(value, room=each)}")
        told.append((text, ", ".join(short[:ORIGINS_SHOWN]), bool(made_up)))
    return told


def tell_origin(origin: Record) -> str:
    """An origin in short: `task`, `step 2`, `made up by model, step 1`."""
    step = f"step {origin['step']}" if "step" in origin else ""
    step += f" of attempt {origin['attempt']}" if "attempt" in origin else ""
    if origin["from"] != "supposed":
        return step or clean(origin["from"])
    earlier = "in the start state" if origin["path"].startswith("/") else "in an earlier turn"
    who = f"by {clean(origin['rung'])}" if "rung" in origin else earlier if origin["path"] else "by the planner"
    return ", ".join(filter(None, [f"made up {who}", step]))


def tell_made_up(made_up: Sequence[Record]) -> str:
    """Made-up values in a few words: `rests on 2 made-up values: number, amount`; nothing where there are none."""
    if not made_up:
        return ""
    names = list(dict.fromkeys(clean(each["argument"]).removeprefix("$.") for each in made_up))
    return f"rests on {counted(len(made_up), 'made-up value')}: {cut(', '.join(names), VALUE_CHARS)}"


def tell_call(call: Record, *, room: int = VALUE_CHARS, origins: Record | None = None) -> str:
    """A call: `mkdir(folder: "temp")`."""
    return f"{clean(call['name'])}({tell_args(call, room=room, origins=origins)})"


def tell_complaint(complaint: Record) -> str:
    """A complaint: where, what was expected, what was there, and who complains."""
    expected, got = clean(complaint["expected"]), clean(cut(complaint["got"], VALUE_CHARS))
    return f"{clean(complaint['path'])}: expected {expected}, got {got} ({complaint['source']})"


def tell_source(outcome: Record) -> str:
    """Who answered: `simulated by contract`."""
    rung = clean(str(outcome["rung"]))
    return f"simulated by {rung}" if outcome["simulated"] else "run for real"


def tell_passed(passed: Sequence[Record]) -> list[str]:
    """The rungs that tried to answer and could not. One that had nothing to try gives no cause after a colon."""
    return [f"not by {clean(each['rung'])}: {prose(each['reason'])}" for each in passed if ":" in each["reason"]]


def tell_patch(patch: Sequence[Record], *, room: int = VALUE_CHARS, most: int = OPERATIONS_SHOWN) -> list[Mark]:
    """A patch in words: `+ /cwd ["documents"]`; after `most` operations only their number."""
    return _at_most([_mark(operation, room) for operation in patch], most)


def _at_most(marks: list[Mark], most: int) -> list[Mark]:
    left = len(marks) - most
    return [*marks[:most], Mark("…", f"{left} more change{'s' if left > 1 else ''}", "")] if left > 0 else marks


def _mark(operation: Record, room: int) -> Mark:
    sign = {"add": "+", "remove": "-", "replace": "~", "move": ">", "copy": "=", "test": "?"}.get(operation["op"], "?")
    place = clean(cut(str(operation.get("path", "")), room)) or "/"
    if operation["op"] in ("move", "copy"):
        return Mark(sign, place, f"from {clean(cut(str(operation.get('from', '')), room))}")
    return Mark(sign, place, tell(operation["value"], room=room) if "value" in operation else "")


def tell_changes(rehearsal: Record) -> list[Mark]:
    """What an accepted rehearsal changes of the task state, old → new, what was lost at large first."""
    if rehearsal["verdict"]["word"] != "accepted":
        return []
    if "changes" not in rehearsal:  # of version 0.1
        chosen = next(each for each in rehearsal["attempts"] if each["number"] == rehearsal["chosen"])
        return tell_patch(chosen["change"])
    lines = sorted(rehearsal["changes"], key=lambda line: not line.startswith("shrink"))
    return _at_most([_change(*line.split(" ", 2)) for line in lines], OPERATIONS_SHOWN)


def _change(kind: str, place: str = "", value: str = "") -> Mark:
    return Mark(_CHANGES.get(kind, "…"), clean(place), clean(cut(value, 2 * VALUE_CHARS)))


def tell_verdict(verdict: Record, *, plan: Sequence[Any] | None = None) -> str:
    """The verdict in a line: `failed, 1 of 2`, `accepted, 2 of 2; rests on 1 made-up value: number`.

    Args:
        verdict: The verdict.
        plan: The calls that it is about: that there are none is said.
    """
    word = {"accepted": "accepted", "needs_user": "needs the user", "failed": "failed"}[verdict["word"]]
    counted_items = [item for item in verdict["items"] if item["status"] != "not_asked_for"]
    held = sum(item["status"] == "success" for item in counted_items)
    score = f"{held} of {len(counted_items)}" if counted_items else ""
    idle = "no calls" if plan is not None and not plan and verdict["word"] == "accepted" else ""
    said = ", ".join(filter(None, [word, score, idle]))
    unclear = len(verdict.get("unclear", ()))
    doubt = f"{counted(unclear, 'condition')} could not be evaluated" if unclear else ""
    return "; ".join(filter(None, [said, tell_made_up(verdict.get("made_up", ())), doubt]))


def style_of(verdict: Record) -> str:
    """The verdict's word, or `made up` for one that is accepted on what is made up or could not be evaluated."""
    doubtful = verdict.get("made_up") or verdict.get("unclear")
    return "made up" if verdict["word"] == "accepted" and doubtful else str(verdict["word"])


def tell_notes(verdict: Record) -> list[tuple[str, str]]:
    """What else a verdict holds, each with a word for it: made-up values, unclear conditions, unasked changes."""
    notes = []
    for each in verdict.get("made_up", ()):
        value = f"{clean(each['argument']).removeprefix('$.')}: {tell(each['value'])}"
        notes.append(("made up", f"{value} ({clean(each['tool'])}), {tell_origin(each['origin'])}"))
    notes += [("unclear", prose(each)) for each in verdict.get("unclear", ())]
    return notes + [("unasked", prose(each)) for each in verdict.get("unasked_changes", ())]


def tell_supposed(rehearsal: Record) -> list[tuple[str, str]]:
    """What was made up of the state before the first attempt, by key, and what cannot be evaluated on it."""
    supposed = rehearsal.get("supposed_state") or {}
    told = [("supposed", f"{clean(key)}: {tell(value)}") for key, value in supposed.get("state", {}).items()]
    return told + [("unclear", prose(each)) for each in supposed.get("unclear", ())]


def tell_judged(item: Record, stop_reason: str) -> tuple[str, str]:
    """Why an item came out as it did, unless that is why the attempt ended, which is told once; and who says so."""
    reason = "" if item["reason"] == stop_reason else prose(item["reason"])
    if item["status"] == "not_asked_for":
        reason = f"not asked for, not counted: {reason}".removesuffix(": ")
    return reason, "not judged" if item["by"] == "nobody" else item["by"]


def tell_feedback(verdict: Record, stop_reason: str = "") -> str:
    """What the feedback says beyond items, unasked changes and why the attempt ended, which are shown by themselves."""
    told = (*(f"- {item['description']}: " for item in verdict["items"]), "Not asked for: ")
    why = stop_reason if is_early(stop_reason) else "\n"
    lines = [line for line in verdict["feedback"].splitlines() if why not in line and not line.startswith(told)]
    return prose("\n".join(lines))


def tell_usage(usage: Usage) -> str:
    """What models cost: calls and tokens, by role, and dollars where the price is known."""
    if not usage:
        return "no model was asked"
    spent = total(usage)
    by_role = ", ".join(f"{role} {each['calls']}" for role, each in sorted(usage.items()))
    price = "" if spent["cost"] is None else f", ${spent['cost']:.4f}"
    replies = "1 model reply" if spent["calls"] == 1 else f"{spent['calls']:,} model replies"
    return f"{replies} ({by_role}), {spent['input_tokens']:,} tokens read, {spent['output_tokens']:,} written{price}"


def plan_of(attempt: Record) -> list[Record]:
    """The calls of an attempt whose outcome is ok."""
    return [step["call"] for step in attempt["steps"] if (step.get("outcome") or {}).get("status") == "ok"]


def is_early(stop_reason: str) -> bool:
    """True where an attempt ended before the planner's answer."""
    return stop_reason not in ("", "answered")


def refusal_of(outcome: Record) -> str:
    """Why a result was not committed, where the result itself does not say so already."""
    refused = outcome.get("refused") or ""
    return "" if not refused or outcome.get("result") == f"not done: {refused}" else prose(refused)


def counted(number: int, noun: str) -> str:
    """`1 attempt`, `2 attempts`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
