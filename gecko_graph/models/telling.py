"""How records are told to a model: plain text, one line a thing, within a budget of characters."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from ..state import Complaint, Step

RESULT_CHARS = 600


def tell_json(value: Any, *, budget: int = RESULT_CHARS) -> str:
    """A value as one line of JSON, cut at `budget` characters with a mark that says so."""
    return cut(json.dumps(value, ensure_ascii=False, default=str), budget=budget)


def cut(text: str, *, budget: int) -> str:
    """Text within `budget` characters; what is cut leaves its length behind."""
    return text if len(text) <= budget else f"{text[:budget]}… ({len(text)} characters)"


def within(lines: Iterable[str], *, budget: int) -> str:
    """As many whole lines as fit, oldest dropped first; says how many were."""
    kept: list[str] = []
    told = list(lines)
    for line in reversed(told):
        budget -= len(line) + 1
        if budget < 0:
            break
        kept.append(line)
    left_out = len(told) - len(kept)
    head = [f"… {left_out} earlier lines left out"] if left_out else []
    return "\n".join([*head, *reversed(kept)])


def tell_steps(steps: Sequence[Step], *, budget: int) -> str:
    """An attempt's calls with what came of them, one line each."""
    return within((f"{number}. {tell_step(step)}" for number, step in enumerate(steps, 1)), budget=budget)


def tell_step(step: Step) -> str:
    """One call and its outcome: `mkdir({"name": "temp"}) -> ok: {"created": "temp"}`."""
    call = step["call"]
    said = f"{call['name']}({call['malformed'] if 'malformed' in call else tell_json(call['args'])})"
    if "complaints" in step:
        return f"{said} -> refused: {'; '.join(tell_complaint(complaint) for complaint in step['complaints'])}"
    outcome = step["outcome"]
    return f"{said} -> {outcome['status']}: {tell_json(outcome['result'])}"


def tell_complaint(complaint: Complaint) -> str:
    """One complaint as a sentence."""
    return f"{complaint['tool']} {complaint['path']}: expected {complaint['expected']}, got {complaint['got']}"


def text_of(message: AnyMessage) -> str:
    """A message's text, whatever its content is made of."""
    return str(message.text)


def tell_conversation(messages: Sequence[AnyMessage], *, budget: int) -> str:
    """A conversation's human and assistant turns, one line each; system messages are told apart (`tell_policy`)."""
    speakers = {HumanMessage: "user", AIMessage: "assistant", ToolMessage: "tool"}
    lines = []
    for message in messages:
        speaker = next((word for kind, word in speakers.items() if isinstance(message, kind)), None)
        if speaker and (text := text_of(message)):
            lines.append(f"{speaker}: {cut(text, budget=2_000)}")
    return within(lines, budget=budget)


def tell_policy(messages: Sequence[AnyMessage], *, budget: int) -> str:
    """The conversation's system messages: the policies that the agent is under."""
    return cut("\n".join(text_of(message) for message in messages if isinstance(message, SystemMessage)), budget=budget)
