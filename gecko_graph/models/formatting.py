"""Records as text for a model: one line per item, within a budget of characters.

Inputs (results, arguments, names, replies) may have any length. No output is longer than its budget, and omissions are
marked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from ..schemas.complaints import describe_complaint
from ..state import Complaint, Json, Outcome, Step, UnjudgedAttempt
from ..values.difference import Change, net_changes
from ..values.places import map_texts, printable, scalars

RESULT_CHARS = 600
MESSAGE_CHARS = 2_000
ANSWER_CHARS = 4_000
NAME_CHARS = 100
SHORT_TEXT = 200
MOST_PLACES = 5
"""Most made-up places that a result's source names."""

_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode  # `json.dumps` would create an encoder per call

SHARES = (RESULT_CHARS, 400, 260, 160, 100, 60, 30, 0)
"""Lengths of one value if many values share a budget: the first is used with which all fit."""


def format_json(value: Any, *, budget: int = RESULT_CHARS) -> str:
    return cut(_encode(value), budget=budget)


def cut(text: str, *, budget: int) -> str:
    """Return text within `budget` characters: its start and end, with a mark that gives the full length."""
    if len(text) <= budget:
        return text
    mark = f"… ({len(text)} characters) …"
    room = budget - len(mark)
    if room <= 0:
        return text[:budget]
    tail = room // 4
    return text[: room - tail] + mark + text[len(text) - tail :]


def clip_texts(value: Any, *, budget: int) -> str | None:
    """Return a value as JSON within `budget` characters, with long texts cut; None if that is not enough."""
    limit = SHORT_TEXT
    fits: str | None = None
    while len(text := json.dumps(map_texts(value, partial(cut, budget=limit)), ensure_ascii=False)) <= budget:
        fits = text
        if limit > budget:
            break
        limit += limit // 2
    return fits


def one_line(text: str) -> str:
    return " ".join(text.split())


def join_lines(lines: Iterable[str], *, budget: int) -> str:
    """Join the last lines that fit `budget` characters, and count the dropped ones; the last line always stays."""
    lines = list(lines)
    text = "\n".join(lines)
    if len(text) <= budget:
        return text
    kept: list[str] = []
    left = budget - len(f"… {len(lines)} earlier lines left out")
    for line in reversed(lines):
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    if not kept:
        return cut(lines[-1], budget=budget)
    return "\n".join([f"… {len(lines) - len(kept)} earlier lines left out", *reversed(kept)])


def share_budget(lines_of: Callable[[int], list[str]], *, budget: int) -> str:
    """Join lines whose values share a budget: values are shortened before lines are dropped.

    `lines_of` maps the length of one value to the lines.
    """
    lines: list[str] = []
    for share in SHARES:
        lines = lines_of(share)
        if sum(len(line) + 1 for line in lines) <= budget:
            break
    return join_lines(lines, budget=budget)


def format_steps(
    steps: Sequence[Step], *, budget: int, sources: bool = False, unknown: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Return an attempt's calls with their outcomes, one line each; repeated equal refusals become one line.

    With `sources` each result is labelled as real, by a rule (contract, function, example), or made up; `unknown` maps
    a call's id to the made-up places of a model's result.
    """
    parts = unknown or {}
    runs = [
        (
            f"{first}. ",
            line_of(step, sources=sources, unknown=parts.get(step["call"]["id"])),
            f" (the same up to call {last})" if last > first else "",
        )
        for first, last, step in _runs(steps)
    ]
    return share_budget(lambda share: [n + line(share) + end for n, line, end in runs], budget=budget) or "(no calls)"


def _runs(steps: Sequence[Step]) -> list[tuple[int, int, Step]]:
    runs: list[tuple[int, int, Step]] = []
    for number, step in enumerate(steps, 1):
        if runs and "complaints" in step and _refused(step) == _refused(runs[-1][2]):
            runs[-1] = (runs[-1][0], number, step)
        else:
            runs.append((number, number, step))
    return runs


def _refused(step: Step) -> tuple[Any, ...]:
    call = step["call"]
    return call["name"], call["args"], call.get("malformed"), step.get("complaints")


def line_of(step: Step, *, sources: bool = False, unknown: Sequence[str] | None = None) -> Callable[[int], str]:
    """Return a function from a share to a line `mkdir({"name": "a"}) -> ok: null`.

    Each value is encoded as JSON once, and cut to the share.
    """
    call = step["call"]
    name, args = _shown_name(call["name"]), _encode(call.get("malformed", call["args"]))
    if "complaints" in step:
        complaints = "; ".join(format_complaint(complaint) for complaint in step["complaints"])
        return lambda share: f"{name}({cut(args, budget=share)}) -> refused: {cut(complaints, budget=2 * share)}"
    result = _encode(step["outcome"]["result"])
    source = f", {source_of(step['outcome'], unknown)}" if sources else ""
    status = step["outcome"]["status"] + source
    return lambda share: f"{name}({cut(args, budget=share)}) -> {status}: {cut(result, budget=share)}"


def source_of(outcome: Outcome, unknown: Sequence[str] | None = None) -> str:
    """Return whether a result is real, by which rule, or made up; `unknown` are its made-up places."""
    if not outcome["simulated"]:
        return "real"
    filled = outcome.get("filled", {})
    if outcome.get("invented"):
        by, places = "simulated", [""] if unknown is None else list(unknown)
        if "" in places or (places and len(places) == len(list(scalars(outcome["result"])))):
            return "made up"
    else:
        who = "the user" if outcome["rung"] == "person" else outcome["rung"]
        by, places = f"by {who}", list(filled["places"]) if filled.get("invented") else []
    named = ", ".join(printable(each) or "the result" for each in places[:MOST_PLACES])
    return f"{by}, made up: {named}{', …' if len(places) > MOST_PLACES else ''}" if places else by


def format_call(call: Mapping[str, Any], *, share: int = RESULT_CHARS) -> str:
    """Return a call, with its arguments within `share` characters."""
    args = call["malformed"] if "malformed" in call else call["args"]
    return f"{_shown_name(call['name'])}({format_json(args, budget=share)})"


@lru_cache(maxsize=1024)
def _shown_name(name: str) -> str:
    return cut(one_line(name), budget=NAME_CHARS)


def format_complaint(complaint: Complaint) -> str:
    text = f"{complaint['tool']}{' ' if complaint['path'] else ': '}{describe_complaint(complaint)}"
    return cut(one_line(text), budget=RESULT_CHARS)


def format_change(before: Json, after: Json, *, budget: int) -> str:
    """Return the changes between two states, one line each: `replace /fuel 5.0 → 45.0`, `add /trays/bills []`.

    Removed members have a line each; if there are very many in one container, they share one: `shrink /users 400 items
    → 1`.
    """
    changes = net_changes(before, after)
    lines = share_budget(lambda share: [format_single_change(each, share=share) for each in changes], budget=budget)
    return lines or "(nothing)"


def format_single_change(change: Change, *, share: int = RESULT_CHARS) -> str:
    """Return a change as one line, with each value within `share` characters."""
    return f"{change.kind} {format_json(change.path)[1:-1] or '(the root)'} {format_values(change, share=share)}"


def format_values(change: Change, *, share: int = RESULT_CHARS) -> str:
    """Return the values of a change, each within `share` characters; for `replace` the old and the new."""
    if change.kind == "shrink":
        return f"{change.old} items → {change.new}, lost: {format_json(list(change.lost), budget=share)}"
    values = {"add": [change.new], "remove": [change.old]}.get(change.kind, [change.old, change.new])
    return " → ".join(_format_sized(value, share) for value in values)


def _format_sized(value: Json, share: int) -> str:
    """Return a value as JSON; a container that is cut has its number of items."""
    text = format_json(value, budget=share)
    size = f"({len(value)} items) " if isinstance(value, (dict, list)) and "characters) …" in text else ""
    return size + text


def format_answer(attempt: UnjudgedAttempt) -> str:
    """Return the planner's answer, or why the attempt ended without one."""
    answer = attempt["answer"]
    return format_json(answer, budget=ANSWER_CHARS) if answer else f"(none; {attempt['stop_reason'] or 'no reason'})"


def format_tool_lines(tools: Iterable[tuple[str, str]], *, budget: int) -> str:
    pairs = list(tools)
    return share_budget(
        lambda share: [f"{name}: {cut(one_line(text), budget=2 * share)}".rstrip(": ") for name, text in pairs],
        budget=budget,
    )


def text_of(message: AnyMessage) -> str:
    return str(message.text)


def format_conversation(messages: Sequence[AnyMessage], *, budget: int) -> str:
    """Return a conversation's messages with the assistant's calls, one entry each; without system messages.

    Continuation lines are indented, so that none looks like another role's message.
    """
    roles = {HumanMessage: "user", AIMessage: "assistant", ToolMessage: "tool"}
    lines = []
    for message in messages:
        role = next((name for kind, name in roles.items() if isinstance(message, kind)), None)
        text = "\n".join(filter(None, [text_of(message).strip(), *format_calls(message)]))
        if role and text:
            lines.append(f"{role}: " + "\n    ".join(cut(text, budget=MESSAGE_CHARS).splitlines()))
    return join_lines(lines, budget=budget)


def format_calls(message: AnyMessage) -> list[str]:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return [f"called {format_call(call)}" for call in calls]


def format_policy(messages: Sequence[AnyMessage], *, budget: int) -> str:
    """Return the conversation's system messages: the agent's policies."""
    return cut("\n".join(text_of(message) for message in messages if isinstance(message, SystemMessage)), budget=budget)
