"""Read rows of real calls from other programs' files, such as OpenAI messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from ..state import Json, JsonObject
from ..tools import Toolkit
from ..tools.openapi.credentials import Server
from ..values.observation import BadRows, Observation
from ..values.rows import ENDINGS as OF_ROWS
from ..values.rows import FileRow, read_lines
from .har import read_har
from .observation import known_by_reads, with_later

ENDINGS = (*OF_ROWS, ".har")
"""Endings of the files in a folder of rows."""


def read_file(
    file: str | Path, bad: BadRows, toolkit: Toolkit | None = None, *, server: Server | None = None
) -> Iterator[Observation]:
    """Yield the observations of a HAR file (`.har`), of JSON lines (also `.gz`), a JSON list or Parquet.

    A row holds an observation, or a conversation's OpenAI messages. Results of a thread's later reads are added to
    its earlier calls.

    Args:
        file: The file; its rows may be of different kinds.
        bad: Counts unusable rows.
        toolkit: Tells which tools only read, so that a thread's reads are added to its calls; required for HAR files.
        server: For a HAR file, the server of the calls, if it is not the document's.

    Raises:
        GeckoError: The file cannot be read.
    """
    if toolkit is not None and str(file).endswith(".har"):
        yield from read_har(file, bad, toolkit, server)
    else:
        read = (row for line in read_lines(file) for row in _read_line(line, f"{file}:{line.number}", bad, toolkit))
        yield from with_later(read, toolkit.is_read if toolkit else lambda _: False)


def _read_line(line: FileRow, where: str, bad: BadRows, toolkit: Toolkit | None) -> Iterator[Observation]:
    try:
        row = line.read()
    except ValueError:
        bad.add(line.problem or "no JSON", where)
        return
    if not isinstance(line.content, bytes):  # of Parquet, where columns of many forms are JSON text
        row = {key: read_result(each) if _is_packed(key, each) else each for key, each in row.items()}
    try:
        messages = row if isinstance(row, list) else row.get("messages") if isinstance(row, dict) else None
        if isinstance(messages, list) and all(isinstance(each, dict) for each in messages):
            yield from read_messages(messages, source=where, bad=bad, toolkit=toolkit)
        else:
            yield Observation.from_row(row)
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError) as error:
        bad.add(str(error) if type(error) is ValueError else "not of a known form", where)


def _is_packed(key: str, value: Json) -> bool:
    return key not in ("tool", "status", "source") and isinstance(value, str) and value[:1] in ("{", "[")


def read_messages(
    messages: list[Any], *, source: str = "", bad: BadRows | None = None, toolkit: Toolkit | None = None
) -> Iterator[Observation]:
    """Yield the calls of a conversation in OpenAI's form; with `toolkit`, with the results of earlier reads.

    A result is an error if its text begins with "Error", or it has `error`.
    """
    rows = list(_answered(messages, source, bad))
    if toolkit is not None:
        yield from known_by_reads([row for row in rows if row.tool in toolkit], toolkit)
    yield from (row for row in rows if toolkit is None or row.tool not in toolkit)


def _answered(messages: list[Any], source: str, bad: BadRows | None) -> Iterator[Observation]:
    waiting: dict[str, tuple[str, JsonObject]] = {}
    for message in (each for each in messages if isinstance(each, dict)):
        waiting |= {id_: (name, args) for id_, name, args in _calls(message, source, bad)}
        key = str(message.get("tool_call_id"))
        if message.get("role") == "tool" and key in waiting:
            name, args = waiting.pop(key)
            result = read_result(message.get("content"))
            yield Observation(name, args, "error" if fails(result) else "ok", result, source=source)
    for name, _ in waiting.values():
        if bad:
            bad.add("a call without a result", f"{source} ({name})")


def _calls(message: JsonObject, source: str, bad: BadRows | None) -> Iterator[tuple[str, str, JsonObject]]:
    for call in cast("list[Any]", message.get("tool_calls") or []):
        function = call.get("function") or call  # some producers write name and arguments beside the id
        args, name = read_result(function.get("arguments") or "{}"), function.get("name")
        if isinstance(args, dict) and isinstance(name, str):
            yield str(call.get("id")), name, args
        elif bad:
            bad.add("arguments are not a JSON object", source)


def fails(result: Json) -> bool:
    if isinstance(result, str):
        return result.lstrip().lower().startswith("error")
    return isinstance(result, dict) and bool(result.get("error"))


def read_result(content: Any) -> Json:
    """Return a tool message's content: parsed JSON, else its text."""
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    if not isinstance(content, str):
        return cast("Json", content)
    with suppress(ValueError, RecursionError):
        return cast("Json", json.loads(content))
    return content
