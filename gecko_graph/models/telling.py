"""How records are told to a model: plain text, one line a thing, within a budget of characters.

Whatever comes in may be of any length: results, arguments, names, replies. Nothing leaves here that is longer than its
budget, and what is left out leaves a mark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from ..state import Complaint, Json, Step
from ..task_state.changes import Change, net_changes

RESULT_CHARS = 600
MESSAGE_CHARS = 2_000
NAME_CHARS = 100
SHORT_TEXT = 200

_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode  # json.dumps makes an encoder each time

SHARES = (RESULT_CHARS, 400, 260, 160, 100, 60, 30, 0)
"""How long one value may be, where many values share a budget: the first share at which all of them fit."""


def tell_json(value: Any, *, budget: int = RESULT_CHARS) -> str:
    """A value as one line of JSON, within `budget` characters."""
    return cut(_encode(value), budget=budget)


def cut(text: str, *, budget: int) -> str:
    """Text within `budget` characters: its start and its end, and between them a mark with its whole length."""
    if len(text) <= budget:
        return text
    mark = f"… ({len(text)} characters) …"
    room = budget - len(mark)
    if room <= 0:
        return text[:budget]
    tail = room // 4
    return text[: room - tail] + mark + text[len(text) - tail :]


def fitting(value: Any, *, budget: int) -> str | None:
    """A value as JSON within `budget` characters, its long texts cut to one length; None where that is not enough."""
    limit = SHORT_TEXT
    fits: str | None = None
    while len(told := json.dumps(_clipped(value, limit), ensure_ascii=False)) <= budget:
        fits = told
        if limit > budget:
            break
        limit += limit // 2
    return fits


def _clipped(value: Any, limit: int) -> Any:
    if isinstance(value, dict):
        return {key: _clipped(each, limit) for key, each in value.items()}
    if isinstance(value, list):
        return [_clipped(each, limit) for each in value]
    return cut(value, budget=limit) if isinstance(value, str) else value


def line(text: str) -> str:
    """Text as one line."""
    return " ".join(text.split())


def within(lines: Iterable[str], *, budget: int) -> str:
    """As many lines as `budget` characters hold, oldest dropped first; says how many were. The last is always told."""
    told = list(lines)
    whole = "\n".join(told)
    if len(whole) <= budget:
        return whole
    mark = f"… {len(told)} earlier lines left out"
    kept: list[str] = []
    left = budget - len(mark)
    for each in reversed(told):
        left -= len(each) + 1
        if left < 0:
            break
        kept.append(each)
    if not kept:
        return cut(told[-1], budget=budget)
    return "\n".join([f"… {len(told) - len(kept)} earlier lines left out", *reversed(kept)])


def shared(lines_of: Callable[[int], list[str]], *, budget: int) -> str:
    """Lines whose values share a budget: all of them with ever shorter values, before any line is dropped.

    Args:
        lines_of: From the characters that one value may have to the lines.
        budget: Characters in all.
    """
    lines: list[str] = []
    for share in SHARES:
        lines = lines_of(share)
        if sum(len(each) + 1 for each in lines) <= budget:
            break
    return within(lines, budget=budget)


def tell_steps(steps: Sequence[Step], *, budget: int) -> str:
    """An attempt's calls with what came of them, one line each."""
    told = shared(
        lambda share: [_told_run(run, share) for run in _runs(steps)],
        budget=budget,
    )
    return told or "(no calls)"


def _runs(steps: Sequence[Step]) -> list[tuple[int, int, Step]]:
    """The steps with their numbers, first and last; equal calls that were refused in a row are one."""
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


def _told_run(run: tuple[int, int, Step], share: int) -> str:
    first, last, step = run
    return f"{first}. {tell_step(step, share=share)}" + (f" (the same up to call {last})" if last > first else "")


def tell_step(step: Step, *, share: int = RESULT_CHARS) -> str:
    """One call and its outcome, each value within `share` characters: `mkdir({"name": "a"}) -> ok: {"created": 1}`."""
    call = step["call"]
    given = call["malformed"] if "malformed" in call else call["args"]
    said = f"{cut(line(call['name']), budget=NAME_CHARS)}({tell_json(given, budget=share)})"
    if "complaints" in step:
        told = "; ".join(tell_complaint(complaint) for complaint in step["complaints"])
        return f"{said} -> refused: {cut(told, budget=2 * share)}"
    outcome = step["outcome"]
    return f"{said} -> {outcome['status']}: {tell_json(outcome['result'], budget=share)}"


def tell_complaint(complaint: Complaint) -> str:
    """One complaint as a sentence."""
    told = f"{complaint['tool']} {complaint['path']}: expected {complaint['expected']}, got {complaint['got']}"
    return cut(line(told), budget=RESULT_CHARS)


def format_change(before: Json, after: Json, *, budget: int) -> str:
    """What has changed between two states, one line a change: `replace /fuel 5.0 → 45.0`, `add /trays/bills []`.

    Removals are told member by member; of very many members of one container as `shrink /users 400 items → 1`.
    """
    changes = net_changes(before, after)
    return shared(lambda share: [format_one(each, share=share) for each in changes], budget=budget) or "(nothing)"


def format_one(change: Change, *, share: int = RESULT_CHARS) -> str:
    """One change on one line, each value within `share` characters."""
    said = f"{change.kind} {tell_json(change.path)[1:-1] or '(the root)'}"
    if change.kind == "shrink":
        lost = tell_json(list(change.lost), budget=share)
        return f"{said} {change.old} items → {change.new}, lost: {lost}"
    values = {"add": [change.new], "remove": [change.old]}.get(change.kind, [change.old, change.new])
    return f"{said} {' → '.join(_sized(value, share) for value in values)}"


def _sized(value: Json, share: int) -> str:
    """A value as JSON; of a container that is cut also how much it holds."""
    text = tell_json(value, budget=share)
    size = f"({len(value)} items) " if isinstance(value, (dict, list)) and "characters) …" in text else ""
    return size + text


def tell_tools(tools: Iterable[tuple[str, str]], *, budget: int) -> str:
    """Tools, given as name and description, one line each."""
    listed = list(tools)
    return shared(
        lambda share: [f"{name}: {cut(line(text), budget=2 * share)}".rstrip(": ") for name, text in listed],
        budget=budget,
    )


def text_of(message: AnyMessage) -> str:
    """A message's text, whatever its content is made of."""
    return str(message.text)


def tell_conversation(messages: Sequence[AnyMessage], *, budget: int) -> str:
    """A conversation's turns, one entry each, the assistant's calls as well: they say where results come from.

    System messages are told apart (`tell_policy`). Further lines of one message are indented, so that none of them
    looks like somebody else's turn.
    """
    speakers = {HumanMessage: "user", AIMessage: "assistant", ToolMessage: "tool"}
    lines = []
    for message in messages:
        speaker = next((word for kind, word in speakers.items() if isinstance(message, kind)), None)
        text = "\n".join(filter(None, [text_of(message).strip(), *told_calls(message)]))
        if speaker and text:
            lines.append(f"{speaker}: " + "\n    ".join(cut(text, budget=MESSAGE_CHARS).splitlines()))
    return within(lines, budget=budget)


def told_calls(message: AnyMessage) -> list[str]:
    """The calls that a message makes, one line each."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return [f"called {cut(line(call['name']), budget=NAME_CHARS)}({tell_json(call['args'])})" for call in calls]


def tell_policy(messages: Sequence[AnyMessage], *, budget: int) -> str:
    """The conversation's system messages: the policies that the agent is under."""
    return cut("\n".join(text_of(message) for message in messages if isinstance(message, SystemMessage)), budget=budget)
