"""Read rows of other formats as samples: OpenAI, TRL, ShareGPT, xLAM, LoopTool-23k, BFCL, and our own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from ..learning.readers import read_result
from ..state import VERSION, Json, JsonObject
from ..values.places import as_text
from ..values.rows import read_json, read_lines
from .call_texts import read_call_texts, read_said, read_text
from .samples import Bad, Sample, read_call, read_tools

ROW_ERRORS = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
"""Errors that reading a row of unknown format may raise."""

_CALLS = ("function_call", "tool_call", "function-call")
"""Roles whose messages are calls."""

_ROLES = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "model", "bot", *_CALLS), "assistant"),
    **dict.fromkeys(("observation", "tool", "function_response", "tool_response", "function", "ipython"), "tool"),
    **{role: role for role in ("system", "developer")},
}
_TURN = re.compile(r"<\|im_start\|>(\w+)\s*(.*?)\s*(?:<\|im_end\|>|\Z)", re.DOTALL)
_RESPONSE = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>", re.DOTALL)
_TOOLS = re.compile(r"<tools>\s*(.*?)\s*</tools>", re.DOTALL)
_TEXTS = ("tools", "messages", "label", "also", "results", "state", "goal", "from", "prompt", "completion", "answers")
"""Columns that may be JSON text, as in Parquet and xLAM."""


class Conversation(NamedTuple):
    """A row's tools and messages, in the row's own format; messages from `first` on are labels."""

    tools: Any
    messages: Sequence[Any]
    first: int = 0
    also: Sequence[Any] | None = None


def read_row(row: Any, *, name: str, source: Json, answers: Mapping[str, Any] | None = None) -> list[Sample]:
    """Return the samples of a row: one for our own format, else one per assistant message.

    Args:
        row: The row as read.
        name: The samples' name if the row has no id.
        source: The row's origin.
        answers: For BFCL's rows, the answers by id.

    Raises:
        ValueError: The row's format is unknown or invalid.
    """
    if not isinstance(row, Mapping):
        raise ValueError("unknown shape: a row must be an object")
    given = {key: read_json(each, what=key) if key in _TEXTS and _is_json(each) else each for key, each in row.items()}
    if {"tools", "messages", "label"} <= given.keys():
        return [_read_own(given, name, source)]
    for keys, read in _SHAPES.items():
        if {*keys} <= given.keys():
            kept = {key: given[key] for key in ("state", "goal") if given.get(key) is not None}
            name = str(given.get("id") or given.get("task_id") or name)
            return list(_split(read(given, answers or {}), name, kept, source))
    raise ValueError(f"unknown shape: keys {', '.join(sorted(map(str, row))[:8])}")


def _is_json(value: Any) -> bool:
    return isinstance(value, str) and value[:1] in ("{", "[")


def _read_openai(row: Mapping[str, Any], _: Any) -> Conversation:
    return Conversation(row.get("tools", row.get("functions")), row["messages"])


def _read_trl(row: Mapping[str, Any], _: Any) -> Conversation:
    return Conversation(row.get("tools"), [*row["prompt"], *row["completion"]], len(row["prompt"]))


def _read_sharegpt(row: Mapping[str, Any], _: Any) -> Conversation:
    system = [{"role": "system", "content": row["system"]}] if row.get("system") else []
    return Conversation(row.get("tools"), [*system, *row["conversations"]])


def _read_xlam(row: Mapping[str, Any], _: Any) -> Conversation:
    said = {"from": "function_call", "value": row["answers"]}
    return Conversation(row["tools"], [{"role": "user", "content": row["query"]}, said])


def _read_looptool(row: Mapping[str, Any], _: Any) -> Conversation:
    """Read `instruction` (tools between markers), `input` (ChatML), and `output` (text with calls)."""
    messages: list[Any] = [{"role": "system", "content": row["instruction"]}]
    for role, said in _TURN.findall(row["input"]) or [("user", row["input"])]:
        results = _RESPONSE.findall(said) if role in ("user", "tool") else []
        messages += [{"role": "tool", "content": each} for each in results] or [{"role": role, "content": said}]
    return Conversation(None, [*messages, {"role": "assistant", "content": row["output"]}], len(messages))


def _read_bfcl(row: Mapping[str, Any], answers: Mapping[str, Any]) -> Conversation:
    allowed = row.get("ground_truth", answers.get(str(row.get("id"))))
    question = row["question"][0] if row["question"] and isinstance(row["question"][0], list) else row["question"]
    if allowed is None:
        missing = "the file of answers has no such id" if answers else "no answers: give the file of answers"
        raise ValueError(f"{missing} (--answers)")
    calls = [{"name": name, "arguments": _firsts(values)} for each in allowed for name, values in each.items()]
    said = {"role": "assistant", "tool_calls": calls}
    return Conversation(row["function"], [*question, said], len(question), allowed)


def _firsts(allowed: Mapping[str, Any]) -> JsonObject:
    """Return the first of BFCL's allowed values of each argument, without optional arguments."""
    if not all(isinstance(each, list) for each in allowed.values()):
        raise ValueError("answers: each argument must have a list of allowed values")
    return {name: _first(values[0]) for name, values in allowed.items() if values and "" not in values}


def _first(value: Json) -> Json:
    if isinstance(value, dict):
        return _firsts(value) if all(isinstance(each, list) for each in value.values()) else value
    return [_first(each) for each in value] if isinstance(value, list) else value


_SHAPES: dict[tuple[str, ...], Callable[[Mapping[str, Any], Mapping[str, Any]], Conversation]] = {
    ("messages",): _read_openai,
    ("prompt", "completion"): _read_trl,
    ("conversations",): _read_sharegpt,
    ("query", "answers", "tools"): _read_xlam,
    ("instruction", "input", "output"): _read_looptool,
    ("question", "function"): _read_bfcl,
}
"""Keys of each format, and its reader; the first match is used."""


def _read_messages(given: Sequence[Any], tools: Sequence[JsonObject]) -> list[JsonObject]:
    """Return messages in OpenAI's form; each call has an id, and each result its call's id."""
    messages: list[JsonObject] = []
    waiting: list[str] = []
    for each in given:
        kind = str(each.get("role", each.get("from"))) if isinstance(each, Mapping) else ""
        if kind not in _ROLES:
            raise ValueError("unknown shape: a message without a known role")
        message: JsonObject = {"role": _ROLES[kind], "content": read_text(each.get("content", each.get("value")))}
        if message["role"] == "assistant":
            message |= _read_said(each, kind in _CALLS, len(messages), tools)
            waiting += [call["id"] for call in message.get("tool_calls", ())]
        elif message["role"] == "tool":
            id_ = str(each.get("tool_call_id") or (waiting[0] if waiting else ""))
            if id_ not in waiting:
                raise ValueError("a result before its call")
            waiting.remove(id_)
            message["tool_call_id"] = id_
        messages.append(message)
    return messages


def _read_said(given: Mapping[str, Any], is_calls: bool, at: int, tools: Sequence[JsonObject]) -> JsonObject:
    """Return text and calls of an assistant's message; its calls are beside the text, in it, or all of it."""
    said = given.get("content", given.get("value"))
    calls, text = (_read_list(said, tools), "") if is_calls else read_said(given, tools)
    made = [_write_call(read_call(each), each.get("id") or f"call_{at}_{count}") for count, each in enumerate(calls)]
    return {"content": text, **({"tool_calls": made} if made else {})}


def _read_list(given: Any, tools: Sequence[JsonObject]) -> list[Any]:
    value = given
    if isinstance(given, str):
        try:
            value = read_json(given, what="calls")
        except ValueError:
            value = read_call_texts(given, tools)[0]
            if not value:
                raise
    if not isinstance(value, list | dict):
        raise ValueError("calls: no list")
    return value if isinstance(value, list) else [value]


def _write_call(call: JsonObject, id_: Any) -> JsonObject:
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    return {"id": str(id_), "type": "function", "function": {"name": call["name"], "arguments": arguments}}


def _find_tools(messages: Sequence[Any]) -> Any:
    """Return the tools that a prompt has between markers (Hermes, Qwen, LoopTool), None if there are none."""
    prompts = (read_text(each.get("content", each.get("value"))) for each in messages[:1] if isinstance(each, Mapping))
    text = next((one for prompt in prompts for one in reversed(_TOOLS.findall(prompt)) if one), "")
    return [read_json(line, what="tools") for line in text.splitlines()] if text[:1] == "{" else text or None


def _split(found: Conversation, name: str, kept: JsonObject, source: Json) -> Iterator[Sample]:
    """Yield a sample for each labelled assistant message."""
    tools = read_tools(found.tools or _find_tools(found.messages))
    messages = _read_messages(found.messages, tools)
    steps = [at for at in range(found.first, len(messages)) if messages[at]["role"] == "assistant"]
    if not steps:
        raise ValueError("no message of the assistant")
    results = {each["tool_call_id"]: read_result(each["content"]) for each in messages if each["role"] == "tool"}
    for number, at in enumerate(steps, 1):
        calls = messages[at].get("tool_calls", [])
        sample: Any = {"v": VERSION, "id": name if len(steps) == 1 else f"{name}#{number}"}
        sample |= {"tools": tools, "messages": messages[:at], "label": [read_call(each) for each in calls]}
        if found.also is not None:
            sample["also"] = found.also
        if calls and all(each["id"] in results for each in calls):
            sample["results"] = [results[each["id"]] for each in calls]
        sample |= {"text": messages[at]["content"]} if messages[at]["content"] else {}
        sample |= {**kept, "from": [{"row": source, "step": number, "steps": len(steps)}]}
        yield sample


def _read_own(row: Mapping[str, Any], name: str, source: Json) -> Sample:
    """Validate a row of our own format."""
    if not isinstance(row["label"], list) or not isinstance(row["messages"], list):
        raise ValueError("label and messages must be lists")
    if not isinstance(row.get("state", {}) or {}, dict):
        raise ValueError("the state is no object")
    known: JsonObject = {key: each for key, each in row.items() if each is not None}
    known |= {"v": VERSION, "id": str(row.get("id") or name), "from": row.get("from") or [source]}
    known["tools"] = read_tools(row["tools"])
    known["messages"] = _read_messages(row["messages"], known["tools"])
    known["label"] = [read_call(each) for each in row["label"]]
    if isinstance(known.get("results"), list):
        known["results"] = [read_result(each) for each in known["results"]]
    for key in known.keys() & {"results", "also"}:
        if len(known[key]) != len(known["label"]):
            raise ValueError(f"{len(known[key])} {key} for {len(known['label'])} calls")
    return cast("Sample", known)


def read_samples(file: str | Path, bad: list[Bad]) -> Iterator[Sample]:
    """Yield a file's samples in any known format; the place and reason of unusable rows are appended to `bad`.

    Raises:
        GeckoError: The file cannot be read.
    """
    known: set[str] = set()
    for line in read_lines(file):
        try:
            where = f"{Path(file).name}:{line.number}"
            for sample in read_row(line.read(), name=where, source=where):
                if sample["id"] in known:
                    raise ValueError(f"duplicate id {sample['id']}")
                as_text(sample).encode()
                known.add(sample["id"])
                yield sample
        except ROW_ERRORS as error:
            bad.append(Bad(f"{file}:{line.number}", reason_of(error)))


def reason_of(error: BaseException) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "a lone surrogate, which cannot be stored"
    return str(error) if type(error) is ValueError else f"unknown shape ({type(error).__name__}: {error})"
