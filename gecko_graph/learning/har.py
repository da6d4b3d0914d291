"""Read rows from HAR files (HTTP Archive 1.2), as written by browsers and proxies.

A user is a thread, identified by a digest of credential or session cookie, which are in no row. The state is known as
far as the user's reads have shown it, by `observes` of the tools' contracts. Calls with incomplete bodies are skipped,
since their request or answer is unknown.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx

from ..errors import GeckoError
from ..masking import MASK
from ..models.failure import refuses
from ..state import JsonObject
from ..tools import Toolkit, ToolSpec
from ..tools.openapi.client import read_answer
from ..tools.openapi.credentials import Server
from ..tools.openapi.request import FORMS
from ..tools.openapi.request_reader import CannotRead, Operations, read_cookies
from ..values.observation import BadRows, Observation, mask_values
from ..values.places import map_texts
from .observation import known_by_reads

_NO_RULE = (401, 407, 429)
"""Refusals that are not the tool's own."""

_CONFLICT = 409
"""In doubt after a real call; but in a complete recording, a JSON object in it is a refusal."""

_BODILESS = (204, 205)
"""Answers that never have a body."""

_OVERHEAD = 3, 64
"""Bytes that a recorder may count in addition to a body: its encoding mark; its frame if compressed (mitmproxy)."""

_FRACTION = re.compile(r"[.,](\d+)")
_SESSION = re.compile(r"(?i)sess|sid$|token|auth|jwt|user|login|csrf")
_SHORTEST = 6


def read_har(file: str | Path, bad: BadRows, toolkit: Toolkit, server: Server | None = None) -> Iterator[Observation]:
    """Yield a file's calls, user by user in order of their start; other entries are counted by cause.

    An entry with an unreadable start follows the previous one.

    Args:
        file: The file.
        bad: Counts the entries that are not calls of these tools.
        toolkit: The tools of an OpenAPI document.
        server: The server that was called, if it is not the document's.

    Raises:
        GeckoError: The file cannot be read, or is not a HAR; names the place.
    """
    operations, threads = Operations(toolkit, server), dict[str, list[Observation]]()
    for number, entry in _in_order(_entries(file)):
        where = f"{file}: log.entries[{number}]"
        try:
            request, response = _request(_part(entry, "request", dict)), _part(entry, "response", dict)
            tool, args = operations.read(request)
            if not request.content and _may_have_body(entry["request"], tool):
                raise ValueError("it is not known whether the request had a body")
            user, secrets = _user(request, tool)
            row = Observation(tool.name, args, *_answer(response, request.method), source=f"{where}, user {user}")
            threads.setdefault(user, []).append(_without(row, secrets))
        except (ValueError, httpx.InvalidURL, TypeError, AttributeError, KeyError, RecursionError) as error:
            bad.add(str(error) if type(error) in (ValueError, CannotRead) else "not of a known form", where)
    for thread in threads.values():
        yield from known_by_reads(thread, toolkit)


def _entries(file: str | Path) -> list[Any]:
    try:
        document = json.loads(Path(file).read_text(encoding="utf-8-sig", errors="replace"))
        return list(_part(_part(document, "log", dict), "entries", list))
    except OSError as error:
        raise GeckoError(f"{file}: cannot be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        where = f"in line {error.lineno}, column {error.colno}"
        raise GeckoError(f"{file}: no JSON: {error.msg} {where}") from None
    except (ValueError, RecursionError) as error:
        raise GeckoError(f"{file}: no HAR: {error}") from None


def _in_order(entries: list[Any]) -> list[tuple[int, Any]]:
    """Return entries with their numbers in order of their start, across offsets and precisions."""
    found: list[tuple[datetime, str, int, Any]] = []
    begin = datetime.min.replace(tzinfo=UTC), ""
    for number, entry in enumerate(entries):
        with suppress(ValueError, TypeError, AttributeError, OverflowError):
            begin = _read_time(entry["startedDateTime"])
        found.append((*begin, number, entry))
    return [one[2:] for one in sorted(found, key=lambda one: one[:3])]


def _read_time(text: str) -> tuple[datetime, str]:
    """Return a time to the second, and the digits of its fraction. Without an offset it is UTC."""
    digits = _FRACTION.search(text)
    moment = datetime.fromisoformat(_FRACTION.sub("", text.strip().upper(), count=1))
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment, digits[1].rstrip("0") if digits else ""


def _part(holder: Any, key: str, kind: type) -> Any:
    value = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(value, kind):
        raise ValueError(f"no usable `{key}`")
    return value


def _pairs(holder: JsonObject, key: str) -> list[tuple[str, str]]:
    return [(str(one["name"]), str(one.get("value", ""))) for one in holder.get(key) or [] if "name" in one]


def _request(entry: JsonObject) -> httpx.Request:
    headers = [(name, value) for name, value in _pairs(entry, "headers") if not name.startswith(":")]
    post, method, url = entry.get("postData") or {}, _part(entry, "method", str), _part(entry, "url", str)
    if post.get("mimeType") and "content-type" not in {name.lower() for name, _ in headers}:
        headers.append(("content-type", str(post["mimeType"])))
    if str(post.get("mimeType")).startswith(FORMS[1]) and not post.get("text"):  # browsers omit files
        raise ValueError("a multipart body whose text is missing")
    coded = [(name.encode(), value.encode()) for name, value in headers]
    if post.get("params") and not post.get("text"):  # there are only the form's fields
        content = urlencode(_pairs(post, "params")).encode()
    else:
        size, sent = entry.get("bodySize"), _lowered(headers)
        content = _read_body("the request's body", post, sent, size, is_told=not post)
    return httpx.Request(method.upper(), url, headers=coded, content=content)


def _lowered(headers: list[tuple[str, str]]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers}


def _may_have_body(request: JsonObject, tool: ToolSpec) -> bool:
    """Return whether a request without a recorded body may have had one: neither document nor sizes exclude it."""
    if not tool.binding or "body" not in (place for place, _ in tool.binding.places.values()):
        return False
    return request.get("bodySize") == -1 and _lowered(_pairs(request, "headers")).get("content-length") != "0"


def _read_body(what: str, holder: JsonObject, headers: Mapping[str, str], *sizes: Any, is_told: bool) -> bytes:
    """Return a recorded body. Raises ValueError if it, or a part of it, is missing.

    Args:
        what: Its name in the message.
        holder: The object with its text.
        headers: Its headers, with lower-case names.
        sizes: Its size in bytes, then those of its transport; below 0 if unknown.
        is_told: Whether there is no body if no size is known.
    """
    content, is_coded = _content(holder), "content-encoding" in headers
    length = headers.get("content-length", "")
    told = float(length) if length.isdecimal() else -1
    given = [each if type(each) in (int, float) else -1 for each in (sizes[0], told, *sizes[1:])]
    if content:
        if max(given[: 1 if is_coded else 2]) > len(content) + _OVERHEAD[is_coded]:
            raise ValueError(f"{what} was cut off")
    elif holder.get("_file"):
        raise ValueError(f"{what} is in another file")
    elif max(given) > 0 or (max(given) < 0 and not is_told) or "transfer-encoding" in headers:
        raise ValueError(f"{what} was not recorded")
    return content


def _content(holder: JsonObject) -> bytes:
    text = str(holder.get("text") or "")
    if holder.get("encoding") != "base64":
        return text.encode("utf-8", "replace")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("its base64 is broken") from None


def _answer(response: JsonObject, method: str) -> tuple[Any, Any]:
    status, content = _part(response, "status", int), response.get("content") or {}
    if status <= 0:
        raise ValueError("it was not answered")
    if not (200 <= status < 300 or refuses(status) or status == _CONFLICT) or status in _NO_RULE:
        raise ValueError(f"answered with HTTP {status}, so it is not the tool's own answer")
    headers = _lowered(_pairs(response, "headers"))
    kind, _, rest = (headers.get("content-type") or str(content.get("mimeType", ""))).partition(";")
    media = f"{kind};{rest}" if content.get("encoding") == "base64" else kind  # text was decoded
    sizes = content.get("size"), response.get("bodySize")
    is_empty = method == "HEAD" or status in _BODILESS
    body = b"" if is_empty else _read_body("the answer's content", content, headers, *sizes, is_told="text" in content)
    answer = read_answer(status, httpx.Headers({"content-type": media}), body)
    if kind.strip().endswith("json") and isinstance(answer[1], dict) and answer[1].keys() == {"content_type", "bytes"}:
        raise ValueError("the answer's JSON is broken or cut off")
    if status == _CONFLICT and answer[1].keys() & {"http_status", "bytes"}:
        raise ValueError(f"answered with HTTP {status} and not a JSON object, so it is not the tool's own answer")
    return answer


def _user(request: httpx.Request, tool: ToolSpec) -> tuple[str, list[str]]:
    """Return a digest that identifies a user, and the credentials from which it is made."""
    crumbs = dict(one.partition("=")[::2] for one in read_cookies(request))
    given = [request.headers.get("authorization", "")]
    for scheme in (each for option in tool.binding.security for each in option.values()) if tool.binding else ():
        held = {"header": request.headers, "query": request.url.params, "cookie": crumbs}.get(str(scheme.get("in")), {})
        given.append(held.get(str(scheme.get("name")), ""))
    if not any(given):
        given = [value for name, value in sorted(crumbs.items()) if _SESSION.search(name)] or sorted(crumbs.values())
    said = "\n".join(filter(None, given))
    return blake2b(said.encode(), digest_size=4).hexdigest() if said else "unknown", said.split()


def _without(row: Observation, secrets: list[str]) -> Observation:
    """Return a row without secrets: those of the request, and values that look like secrets."""
    known = sorted((one for one in secrets if len(one) >= _SHORTEST), key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, known)) or r"(?!)")
    clean = [
        mask_values(map_texts(each, lambda text: pattern.sub(MASK, text), keys=True)) for each in (row.args, row.result)
    ]
    return replace(row, args=clean[0], result=clean[1])
