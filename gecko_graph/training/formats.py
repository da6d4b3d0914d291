"""Samples as rows of others: for OpenAI, TRL, preference pairs, ShareGPT, NeMo Gym. Only rows to train on have some."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..state import JsonObject
from .calls import read_call


def is_good(row: Mapping[str, Any]) -> bool:
    """Return whether a row is one to train on: verified as right, mended, or not verified at all."""
    return row.get("verdict", {}).get("status", "keep") in ("keep", "fix")


def _say(calls: Sequence[Mapping[str, Any]], text: str) -> JsonObject:
    """Return the assistant's message; TRL's chat templates take arguments as text, too."""
    made = [
        {
            "id": f"label_{at}",
            "type": "function",
            "function": {"name": each["name"], "arguments": _dump(each["arguments"])},
        }
        for at, each in enumerate(calls)
    ]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _openai(row: Mapping[str, Any]) -> Iterator[JsonObject]:
    if is_good(row):
        said = _say(row["label"], row.get("text", ""))
        yield {"id": row["id"], "messages": [*row["messages"], said], "tools": row["tools"]}


def _trl(row: Mapping[str, Any]) -> Iterator[JsonObject]:
    """Yield a row for supervised training and GRPO alike: `tool_match_reward` reads label, tools and also."""
    if is_good(row):
        said = _say(row["label"], row.get("text", ""))
        made = {"id": row["id"], "prompt": row["messages"], "completion": [said], "tools": _dump(row["tools"])}
        yield {**made, "label": _dump(row["label"]), "also": _dump(row.get("also"))}


def _dpo(row: Mapping[str, Any]) -> Iterator[JsonObject]:
    wrong = row.get("verdict", {}).get("wrong")
    if wrong is not None and is_good(row):
        pair = {"chosen": [_say(row["label"], row.get("text", ""))], "rejected": [_say(wrong, "")]}
        yield {"id": row["id"], "prompt": row["messages"], **pair, "tools": _dump(row["tools"])}


def _sharegpt(row: Mapping[str, Any]) -> Iterator[JsonObject]:
    if not is_good(row):
        return
    system, turns = "", list[JsonObject]()
    for each in [*row["messages"], _say(row["label"], row.get("text", ""))]:
        calls = [read_call(call) for call in each.get("tool_calls", ())]
        if each["role"] == "system":
            system = each["content"]
        elif calls:
            turns += [{"from": "gpt", "value": each["content"]}] if each["content"] else []
            turns.append({"from": "function_call", "value": _dump(calls[0] if len(calls) == 1 else calls)})
        else:
            kind = {"assistant": "gpt", "tool": "observation"}.get(each["role"], "human")
            turns.append({"from": kind, "value": each["content"]})
    yield {
        "id": row["id"],
        "conversations": turns,
        "system": system,
        "tools": _dump([t["function"] for t in row["tools"]]),
    }


def as_responses_tools(tools: Sequence[Mapping[str, Any]]) -> list[JsonObject]:
    """Return tools as OpenAI's Responses API takes them."""
    return [{"type": "function", "strict": False, **tool["function"]} for tool in tools]


def _nemo_gym(row: Mapping[str, Any]) -> Iterator[JsonObject]:
    """Yield a row of NeMo Gym: the parameters of a request to OpenAI's Responses API, and the right calls."""
    if not is_good(row):
        return
    given: list[JsonObject] = []
    for each in row["messages"]:
        if each["role"] == "tool":
            given.append({"type": "function_call_output", "call_id": each["tool_call_id"], "output": each["content"]})
            continue
        if each["content"] or not each.get("tool_calls"):
            given.append({"role": each["role"], "content": each["content"]})
        given += [
            {"type": "function_call", "call_id": call["id"], **call["function"]} for call in each.get("tool_calls", ())
        ]
    right = [{"name": each["name"], "arguments": _dump(each["arguments"])} for each in row["label"]]
    yield {
        "id": row["id"],
        "responses_create_params": {"input": given, "tools": as_responses_tools(row["tools"])},
        "ground_truth": right,
    }


FORMATS: dict[str, Callable[[Mapping[str, Any]], Iterator[JsonObject]]] = {
    "openai": _openai,
    "trl": _trl,
    "dpo": _dpo,
    "sharegpt": _sharegpt,
    "nemo-gym": _nemo_gym,
}
"""What `--to` takes: a function from a verified row to rows."""
