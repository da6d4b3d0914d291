"""Rows of others as samples, told apart by shape: OpenAI, TRL, ShareGPT, xLAM, LoopTool-23k, BFCL, and our own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from ..learning.readers import read_result
from ..state import VERSION, Json, JsonObject
from .calls import read_call, read_call_texts, read_json, read_tools
from .rows import read_lines
from .samples import Bad, Sample

ROW_ERRORS = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
"""What reading a row may raise that is not of a known shape."""

_ROLES = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "model"), "assistant"),
    **dict.fromkeys(("observation", "tool", "function_response"), "tool"),
    "function_call": "assistant",
    "system": "system",
}
_TURN = re.compile(r"<\|im_start\|>(\w+)\s*(.*?)\s*(?:<\|im_end\|>|\Z)", re.DOTALL)
_RESPONSE = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>", re.DOTALL)
_TOOLS = re.compile(r"<tools>\s*(.*?)\s*</tools>", re.DOTALL)
_OWN = ("id", "state", "goal")
_TEXTS = ("tools", "messages", "label", "also", "results", "state", "goal", "from", "prompt", "completion")
"""Columns that may be JSON text, as Parquet has them."""


class Conversation(NamedTuple):
    """What a row of others holds: messages in OpenAI's form, of which those from `first` on are labels."""

    tools: list[JsonObject]
    messages: list[JsonObject]
    first: int = 0
    also: Sequence[Any] | None = None


def read_row(row: Any, *, name: str, source: Json, answers: Mapping[str, Any] | None = None) -> list[Sample]:
    """Return the samples of one row: a row of our own is one, a conversation has one for each assistant message.

    Args:
        row: The row as it was read.
        name: What the samples are called where the row has no id.
        source: Where the row comes from.
        answers: Of BFCL's rows, the answers by id.

    Raises:
        ValueError: It has no known shape, or is broken; the reason.
    """
    if not isinstance(row, Mapping):
        raise ValueError("unknown shape: a row is an object")
    given = {key: read_json(each, what=key) if key in _TEXTS and _is_json(each) else each for key, each in row.items()}
    if {"tools", "messages", "label"} <= given.keys():
        return [_read_own(given, name, source)]
    name = str(given.get("id") or given.get("task_id") or name)
    found = _read_shape(given, answers or {})
    kept = {key: given[key] for key in _OWN[1:] if given.get(key) is not None}
    return list(_split(found, name, kept, source))


def _is_json(value: Any) -> bool:
    return isinstance(value, str) and value[:1] in ("{", "[")


def _read_shape(row: Mapping[str, Any], answers: Mapping[str, Any]) -> Conversation:
    if isinstance(row.get("messages"), list):
        return Conversation(read_tools(row.get("tools", row.get("functions"))), _read_messages(row["messages"]))
    if isinstance(row.get("prompt"), list) and isinstance(row.get("completion"), list):
        messages = _read_messages([*row["prompt"], *row["completion"]])
        return Conversation(read_tools(row.get("tools")), messages, len(row["prompt"]))
    if isinstance(row.get("conversations"), list):
        return _read_sharegpt(row)
    if {"query", "answers", "tools"} <= row.keys():
        said = {"role": "assistant", "tool_calls": _list(row["answers"], "answers")}
        messages = _read_messages([{"role": "user", "content": row["query"]}, said])
        return Conversation(read_tools(row["tools"]), messages)
    if all(isinstance(row.get(key), str) for key in ("instruction", "input", "output")):
        return _read_looptool(row)
    if {"question", "function"} <= row.keys():
        return _read_bfcl(row, answers)
    raise ValueError(f"unknown shape: keys {', '.join(sorted(map(str, row))[:8])}")


def _list(given: Any, what: str) -> list[Any]:
    value = read_json(given, what=what) if isinstance(given, str) else given
    if not isinstance(value, list | dict):
        raise ValueError(f"{what}: no list")
    return value if isinstance(value, list) else [value]


def _read_sharegpt(row: Mapping[str, Any]) -> Conversation:
    messages: list[Any] = [{"role": "system", "content": row["system"]}] if row.get("system") else []
    for each in row["conversations"]:
        if not isinstance(each, Mapping) or _ROLES.get(str(each.get("from", each.get("role")))) is None:
            raise ValueError("unknown shape: a conversation whose messages have no known `from`")
        kind, text = str(each.get("from", each.get("role"))), each.get("value", each.get("content"))
        if kind == "function_call":
            messages.append({"role": "assistant", "tool_calls": _list(text, "a function_call")})
        else:
            messages.append({"role": _ROLES[kind], "content": text})
    return Conversation(read_tools(row.get("tools")), _read_messages(messages))


def _read_looptool(row: Mapping[str, Any]) -> Conversation:
    """Read `instruction` with the tools between marks, `input` in ChatML, and `output` as text with calls."""
    found = _TOOLS.search(row["instruction"])
    text = found[1] if found else "[]"
    tools = [read_json(line, what="tools") for line in text.splitlines()] if text[:1] == "{" else text
    messages: list[Any] = [{"role": "system", "content": row["instruction"]}]
    for role, said in _TURN.findall(row["input"]) or [("user", row["input"])]:
        results = _RESPONSE.findall(said) if role in ("user", "tool") else []
        messages += [{"role": "tool", "content": each} for each in results] or [{"role": role, "content": said}]
    messages.append({"role": "assistant", "content": row["output"]})
    return Conversation(read_tools(tools), _read_messages(messages), len(messages) - 1)


def _read_bfcl(row: Mapping[str, Any], answers: Mapping[str, Any]) -> Conversation:
    allowed = row.get("ground_truth", answers.get(str(row.get("id"))))
    question = row["question"][0] if row["question"] and isinstance(row["question"][0], list) else row["question"]
    if allowed is None and answers:
        raise ValueError("no answer of this id in the file of answers")
    if not isinstance(allowed, list) or not all(isinstance(each, dict) for each in allowed):
        raise ValueError("no answers beside it: give the second file (--answers)")
    calls = [{"name": name, "arguments": _firsts(values)} for each in allowed for name, values in each.items()]
    messages = _read_messages([*question, {"role": "assistant", "tool_calls": calls}])
    return Conversation(read_tools(row["function"]), messages, len(question), allowed)


def _firsts(allowed: Any) -> JsonObject:
    """Return of each argument the first allowed value; none where it may be left out."""
    if not isinstance(allowed, Mapping) or not all(isinstance(each, list) for each in allowed.values()):
        raise ValueError("answers: each argument has a list of allowed values")
    return {name: _first(values[0]) for name, values in allowed.items() if values and "" not in values}


def _first(value: Json) -> Json:
    if isinstance(value, dict):
        return _firsts(value) if all(isinstance(each, list) for each in value.values()) else value
    return [_first(each) for each in value] if isinstance(value, list) else value


def _read_messages(given: Sequence[Any]) -> list[JsonObject]:
    """Return messages in OpenAI's form, each call with an id and each result with that of its call."""
    messages: list[JsonObject] = []
    waiting: list[str] = []
    for each in given:
        if not isinstance(each, Mapping) or each.get("role") not in (
            "user",
            "assistant",
            "tool",
            "system",
            "developer",
        ):
            raise ValueError("a message without a known role")
        message: JsonObject = {"role": each["role"], "content": _text(each.get("content"))}
        if message["role"] == "assistant":
            calls = [read_call(call) for call in each.get("tool_calls") or ()]
            ids = [str(call.get("id") or "") for call in each.get("tool_calls") or ()]
            if not calls:
                calls, message["content"] = read_call_texts(message["content"])
                ids = [""] * len(calls)
            ids = [id_ or f"call_{len(messages)}_{at}" for at, id_ in enumerate(ids)]
            waiting = [*waiting, *ids] if calls else waiting
            message |= {"tool_calls": [_write_call(*pair) for pair in zip(ids, calls, strict=True)]} if calls else {}
        elif message["role"] == "tool":
            id_ = str(each.get("tool_call_id") or (waiting[0] if waiting else ""))
            if id_ not in waiting:
                raise ValueError("a result before its call")
            waiting.remove(id_)
            message["tool_call_id"] = id_
        messages.append(message)
    return messages


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else "" if content is None else json.dumps(content, ensure_ascii=False)


def _write_call(id_: str, call: JsonObject) -> JsonObject:
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    return {"id": id_, "type": "function", "function": {"name": call["name"], "arguments": arguments}}


def _split(found: Conversation, name: str, kept: JsonObject, source: Json) -> Iterator[Sample]:
    """Yield a sample for each assistant message that is a label."""
    messages = found.messages
    steps = [at for at in range(found.first, len(messages)) if messages[at]["role"] == "assistant"]
    if not steps:
        raise ValueError("no message of the assistant")
    results = {each["tool_call_id"]: read_result(each["content"]) for each in messages if each["role"] == "tool"}
    for number, at in enumerate(steps, 1):
        calls = messages[at].get("tool_calls", [])
        sample: Any = {"v": VERSION, "id": name if len(steps) == 1 else f"{name}#{number}"}
        sample |= {"tools": found.tools, "messages": messages[:at], "label": [read_call(each) for each in calls]}
        if found.also is not None:
            sample["also"] = found.also
        if calls and all(each["id"] in results for each in calls):
            sample["results"] = [results[each["id"]] for each in calls]
        sample |= {"text": messages[at]["content"]} if messages[at]["content"] else {}
        sample |= {**kept, "from": [{"row": source, "step": number, "steps": len(steps)}]}
        yield sample


def _read_own(row: Mapping[str, Any], name: str, source: Json) -> Sample:
    """Return a row of our own shape, checked."""
    if not isinstance(row["label"], list) or not isinstance(row["messages"], list):
        raise ValueError("label and messages are lists")
    label = [read_call(each) for each in row["label"]]
    texts = row.get("results")
    results = [read_result(each) for each in texts] if isinstance(texts, list) else None
    if results is not None and len(results) != len(label):
        raise ValueError(f"{len(results)} results for {len(label)} calls")
    if not isinstance(row.get("state", {}) or {}, dict):
        raise ValueError("the state is no object")
    known: JsonObject = {key: each for key, each in row.items() if each is not None}
    known |= {"v": VERSION, "id": str(row.get("id") or name), "label": label, "from": row.get("from") or [source]}
    known |= {"tools": read_tools(row["tools"]), "messages": _read_messages(row["messages"])}
    return cast("Sample", known | ({"results": results} if results is not None else {}))


def read_samples(
    file: str | Path, bad: list[Bad] | None = None, *, answers: Mapping[str, Any] | None = None
) -> Iterator[Sample]:
    """Yield a file's samples, whatever known shape its rows have; of the others, file, line and reason go to `bad`.

    Raises:
        GeckoError: The file cannot be read.
    """
    for line in read_lines(file):
        try:
            where = f"{Path(file).name}:{line.number}"
            yield from read_row(line.read(), name=where, source=where, answers=answers)
        except ROW_ERRORS as error:
            if bad is not None:
                bad.append(Bad(f"{file}:{line.number}", reason_of(error)))


def reason_of(error: BaseException) -> str:
    """Return why a row cannot be used."""
    if isinstance(error, UnicodeEncodeError):
        return "half a surrogate pair, which no file can hold"
    return str(error) if type(error) is ValueError else f"unknown shape ({type(error).__name__}: {error})"
