"""Format the values of a run as text: one line each, safe for a terminal, cut if long.

Texts of tools and models may contain escape sequences, control characters and characters that reverse the writing
direction. Every text that is shown goes through `clean`, which makes them visible.
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
from ..values.notes import KINDS, notes_of, place_of, tell
from ..values.places import pointer

VALUE_CHARS = 160
"""Most characters of one value within a line."""

RESULT_CHARS = 280
"""Most characters of a result."""

PROSE_CHARS = 1_200
"""Most characters of an answer, an error or a reason."""

FOLDED_CHARS = 20_000
"""Most characters of a value that a page unfolds."""

SECRET_CHARS = 4_000
"""Characters after a cut that are searched for the end of a secret."""

ORIGINS_SHOWN = 3

Record: TypeAlias = Mapping[str, Any]
"""A record of `state.py`, finished or unfinished."""

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)"  # OSC, DCS and similar, up to their end
    r"|\x1b[ -/]*[0-~]"  # all shorter sequences
    r"|\x9b[0-?]*[ -/]*[@-~]",
    re.DOTALL,
)
CHOSEN = {"planner": "by the planner", "state": "in the start state", "conversation": "in an earlier turn"}
EXECUTION_WORDS = {"": "not finished", "nothing": "nothing was done", "in_doubt": "in doubt"}
_JOINERS = "\u200c\u200d"  # emoji and several scripts need them between two other characters
_STRAY_JOINERS = re.compile(rf"(?:^|(?<=[\s{_JOINERS}]))[{_JOINERS}]")
_UNSAFE = ("Cc", "Cf", "Cs", "Zl", "Zp")


class ValueView(NamedTuple):
    """A value in one line, and the whole value if the line cuts it."""

    short: str
    whole: str


class ArgumentView(NamedTuple):
    """An argument of a call: name, value, short origin, and whether any part of it is made up."""

    name: str
    value: ValueView
    origin: str = ""
    made_up: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.value.short}" if self.name else self.value.short


def clean(text: str, *, lines: bool = False) -> str:
    r"""Return text without secrets and escape sequences, and with other control characters made visible, as in `\x07`.

    Line ends become `⏎`, unless `lines` keeps them.
    """
    text = mask(text)
    if text.isascii() and text.isprintable():
        return text
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\t", " ")
    if not lines:
        text = text.replace("\n", " ⏎ ")
    text = _STRAY_JOINERS.sub(lambda found: _visible(found[0]), text)  # rich cannot measure a line that starts with one
    safe = {char for char in {*text} if char in _JOINERS + "\n" or unicodedata.category(char) not in _UNSAFE}
    return "".join(char if char in safe else _visible(char) for char in text)


def _visible(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def cut(text: str, room: int) -> str:
    """Cut a text to `room` characters; a cut text ends with its full length."""
    shown = mask(text[: room + SECRET_CHARS])
    return shown if len(text) <= room else f"{shown[:room].rstrip()}… ({len(text):,} characters)"


def prose(text: str, *, room: int = PROSE_CHARS) -> str:
    """Format an answer or a reason: several lines, clean, cut."""
    return clean(cut(text.strip(), room), lines=True)


def fold_value(value: Json, name: str = "", *, room: int = VALUE_CHARS) -> ValueView:
    """Return a value as JSON in one line, and indented if the line cuts it; masked like the value of a key `name`."""
    label = f"{clean(name)}: " if name else ""
    line = json.dumps(value, ensure_ascii=False, default=str)
    short = clean(f"{label}{cut(line, room)}").removeprefix(label)
    if len(line) <= room:
        return ValueView(short, "")
    indented = json.dumps(value, ensure_ascii=False, default=str, indent=2)
    return ValueView(short, clean(f"{label}{cut(indented, FOLDED_CHARS)}", lines=True).removeprefix(label))


def fold_text(text: str, room: int) -> ValueView:
    """Return a text cut to `room` characters, and the whole text if it was cut."""
    return ValueView(prose(text, room=room), prose(text, room=FOLDED_CHARS) if len(text) > room else "")


def fold_result(result: Json) -> ValueView:
    if not isinstance(result, str) or not result.strip():
        return fold_value(result, room=RESULT_CHARS)
    return ValueView(clean(cut(result, RESULT_CHARS)), fold_text(result, RESULT_CHARS).whole)


def format_value(value: Json) -> str:
    return fold_value(value).short


def list_arguments(call: Record, origins: Record) -> list[ArgumentView]:
    """Return the arguments of a call for one line, whose width they share; for malformed arguments their text."""
    room = max(24, VALUE_CHARS // max(1, len(call["args"])))
    if "malformed" in call:
        return [ArgumentView("", fold_text(call["malformed"], room))]
    return [
        ArgumentView(clean(name), fold_value(value, name, room=room), *format_origins(name, origins))
        for name, value in call["args"].items()
    ]


def format_origins(name: str, origins: Record) -> tuple[str, bool]:
    """Format the origins of an argument and its parts; also return whether any of it is made up."""
    place = pointer((name,))
    inside = [path for path in origins if path.startswith(f"{place}/")]
    found = [origin for path in (place, *inside) for origin in origins.get(path, ())]
    made_up = [origin for origin in found if origin["kind"] == "chosen"]
    known = [origin for origin in found if origin["kind"] != "chosen"]
    short = list(dict.fromkeys(map(format_origin, [*made_up[:1], *known])))  # one made-up origin is enough
    return ", ".join(short[:ORIGINS_SHOWN]), bool(made_up)


def format_origin(origin: Record) -> str:
    """Format an origin: `task`, `step 2`, `29 = 2 × 14.5`, `made up by model, step 1`."""
    step = f"step {origin['step']}" if "step" in origin else ""
    step += f" of attempt {origin['attempt']}" if "attempt" in origin else ""
    if origin["kind"] != "chosen":
        return clean(origin.get("shown") or step or origin["from"])
    author = f"by {clean(origin['rung'])}" if "rung" in origin else CHOSEN.get(origin["from"], "")
    return ", ".join(filter(None, [f"made up {author}", step]))


def format_call(call: Record, *, origins: Record | None = None) -> str:
    """Format a call: `mkdir(folder: "temp" (task), depth: 2)`."""
    shown = [f"{each} ({each.origin})" if each.origin else str(each) for each in list_arguments(call, origins or {})]
    return f"{clean(call['name'])}({mask(', '.join(shown))})"


def format_verdict(verdict: Record, *, plan: Sequence[Any] | None = None) -> str:
    """Format a verdict in one line: `failed, 1 of 2`, `accepted, 2 of 2; rests on 1 made-up value: number`.

    An accepted plan without calls is marked `no calls`.
    """
    word = {"accepted": "accepted", "needs_user": "needs the user", "failed": "failed"}[verdict["status"]]
    asked_for = [item["status"] for item in verdict["items"] if item["status"] != "not_asked_for"]
    score = f"{asked_for.count('success')} of {len(asked_for)}" if asked_for else ""
    idle = "no calls" if plan is not None and not plan and verdict["status"] == "accepted" else ""
    parts = [", ".join(filter(None, [word, score, idle]))]
    for name, kind in KINDS.items():
        found = notes_of(verdict, name)
        if name == "made_up" and found:
            names = ", ".join(dict.fromkeys(clean(place_of(each)) for each in found))
            parts.append(f"rests on {counted(len(found), kind.noun)}: {cut(names, VALUE_CHARS)}")
        elif name == "may_refuse" and found:
            parts.append(f"{kind.label}: {cut(', '.join(dict.fromkeys(map(format_note, found))), RESULT_CHARS)}")
        elif found and kind.noun and (name, verdict["status"]) != ("unasked", "failed"):
            parts.append(counted(len(found), kind.noun) + kind.rest)
    return "; ".join(parts)


def format_note(note: Record) -> str:
    """Format a note: its sentence, and the origin of its value."""
    origin = note.get("data", {}).get("origin")
    return prose(tell(note)) + (f"; {format_origin(origin)}" if origin else "")  # type: ignore[arg-type]


def format_execution(execution: Record) -> str:
    """Format the real calls in one line: `partial: 3 real calls, 1 drifted, 1 not made; 2 rehearsals`."""
    made = [entry for entry in execution["calls"] if entry["status"] in ("ok", "error", "in_doubt", "started")]
    drifted = sum(bool(entry.get("drift")) for entry in made)
    word = EXECUTION_WORDS.get(execution["status"], str(execution["status"]))
    drift = f"{drifted} drifted" if drifted else "no drift" if any("drift" in entry for entry in made) else ""
    left = f"{len(execution['left'])} not made" if execution["left"] else ""
    times = execution.get("rehearsals", 1)
    done = ", ".join(filter(None, [counted(len(made), "real call"), drift, left]))
    return f"{word}: {done}" + (f"; {times} rehearsals" if times > 1 else "")


def format_standing(record: Record) -> str:
    """Format what a run did for real: an agent's calls or its open question; for a rehearsal its real reads."""
    if execution := record.get("execution"):
        return f"For real: {format_execution(execution)}"
    if asked := record.get("asked"):
        return f"Not done yet: {counted(len(asked), 'call')} below wait{'s' * (len(asked) == 1)} for a decision"
    steps = [step.get("outcome", {}) for attempt in record["attempts"] for step in attempt["steps"]]
    reads = sum(outcome.get("simulated") is False for outcome in steps)
    return "Only rehearsed: nothing was done for real" + (f" but {counted(reads, 'read')}" if reads else "")


def format_usage(usage: Usage) -> str:
    """Format usage: model calls by role, tokens, and dollars if the price is known."""
    spent = total(usage)
    if not usage or not spent["calls"]:
        return "no model replied" if usage else "no model was asked"
    by_role = ", ".join(f"{role} {each['calls']}" for role, each in sorted(usage.items()) if each["calls"])
    price = "" if spent["cost"] is None else f", ${spent['cost']:.4f}"
    replies = "1 model reply" if spent["calls"] == 1 else f"{spent['calls']:,} model replies"
    tokens = f"{spent['input_tokens']:,} tokens read, {spent['output_tokens']:,} written{price}"
    if spent.get("estimated"):  # as in the demos
        tokens = f"about {tokens} (recorded replies: tokens are an estimate)"
    return f"{replies} ({by_role}), {tokens}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 attempt`, `2 attempts`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
