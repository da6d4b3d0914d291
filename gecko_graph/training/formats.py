"""Convert samples to other row formats: OpenAI, TRL, preference pairs, ShareGPT, NeMo Gym; trainable rows only."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..state import JsonObject
from .samples import read_call


def is_good(row: Mapping[str, Any]) -> bool:
    """Return whether a row can be trained on: verified as right, fixed, or not verified."""
    return row.get("verdict", {}).get("status", "keep") in ("keep", "fix")


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write_calls(calls: Sequence[Mapping[str, Any]]) -> list[JsonObject]:
    """Return calls with their arguments as JSON text, which TRL's chat templates accept, too."""
    return [{"name": each["name"], "arguments": _dump(each["arguments"])} for each in calls]


def _say(calls: Sequence[Mapping[str, Any]], text: str = "") -> JsonObject:
    made = [{"id": f"label_{at}", "type": "function", "function": each} for at, each in enumerate(_write_calls(calls))]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


def _openai(row: Mapping[str, Any]) -> JsonObject:
    return {"messages": [*row["messages"], _say(row["label"], row.get("text", ""))], "tools": row["tools"]}


def _trl(row: Mapping[str, Any]) -> JsonObject:
    """Return a row for supervised training and GRPO: `tool_match_reward` reads label, tools and also."""
    texts = {key: _dump(row.get(key)) for key in ("tools", "label", "also")}
    return {"prompt": row["messages"], "completion": [_say(row["label"], row.get("text", ""))], **texts}


def _dpo(row: Mapping[str, Any]) -> JsonObject | None:
    wrong = row.get("verdict", {}).get("wrong")
    if wrong is None:
        return None
    pair = {"chosen": [_say(row["label"], row.get("text", ""))], "rejected": [_say(wrong)]}
    return {"prompt": row["messages"], **pair, "tools": _dump(row["tools"])}


def _sharegpt(row: Mapping[str, Any]) -> JsonObject:
    system, turns = "", list[JsonObject]()
    for each in _openai(row)["messages"]:
        calls = [read_call(call) for call in each.get("tool_calls", ())]
        if each["role"] == "system":
            system = each["content"]
            continue
        if each["content"] or not calls:
            kind = {"assistant": "gpt", "tool": "observation"}.get(each["role"], "human")
            turns.append({"from": kind, "value": each["content"]})
        if calls:
            turns.append({"from": "function_call", "value": _dump(calls[0] if len(calls) == 1 else calls)})
    return {"conversations": turns, "system": system, "tools": _dump([each["function"] for each in row["tools"]])}


def as_responses_tools(tools: Sequence[Mapping[str, Any]]) -> list[JsonObject]:
    """Return tools in the form of OpenAI's Responses API."""
    return [{"type": "function", "strict": False, **tool["function"]} for tool in tools]


def _nemo_gym(row: Mapping[str, Any]) -> JsonObject:
    """Return a row of NeMo Gym: the parameters of a request to OpenAI's Responses API, and the right calls."""
    given: list[JsonObject] = []
    for each in row["messages"]:
        made = each.get("tool_calls", ())
        calls = [{"type": "function_call", "call_id": one["id"], **one["function"]} for one in made]
        if each["role"] == "tool":
            calls = [{"type": "function_call_output", "call_id": each["tool_call_id"], "output": each["content"]}]
        elif each["content"] or not calls:
            given.append({"role": each["role"], "content": each["content"]})
        given += calls
    asked = {"input": given, "tools": as_responses_tools(row["tools"])}
    return {"responses_create_params": asked, "ground_truth": _write_calls(row["label"])}


def _write(form: Callable[[Mapping[str, Any]], JsonObject | None], row: Mapping[str, Any]) -> Iterator[JsonObject]:
    if is_good(row) and (made := form(row)) is not None:
        yield {"id": row["id"], **made}


_FORMS = {"openai": _openai, "trl": _trl, "dpo": _dpo, "sharegpt": _sharegpt, "nemo-gym": _nemo_gym}
FORMATS: dict[str, Callable[[Mapping[str, Any]], Iterator[JsonObject]]] = {
    name: partial(_write, form) for name, form in _FORMS.items()
}
"""The values of `--to`: each maps a verified row to rows of that format."""
