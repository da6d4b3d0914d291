"""Images, sounds and files in results: their bytes are kept apart, by their digest, and a reference stands for them.

A reference is JSON: `{"type": "image", "mime_type": "image/png", "bytes": 6800, "digest": "sha256:..."}`. It is what
state, records and prompts hold. `show_media` gives the blocks themselves for the planner and a page, as long as this
process keeps them.
"""

from __future__ import annotations

import base64
import hashlib
from binascii import Error as NotBase64
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from threading import Lock
from typing import Any

from langchain_core.messages import ToolMessage

from ..state import Json, JsonObject

MOST_BYTES = 4_000_000
"""Bytes of one image, sound or file that is kept; of a larger one the reference says that it is left out."""
KEPT_BYTES = 64_000_000
"""Bytes that are kept in this process; what was used longest ago goes first."""
MOST_SHOWN = 20
"""Media of one result that a planner is shown."""

_TYPES = ("image", "audio", "video", "file", "document", "resource", "image_url", "input_audio", "media")
_NAMES = ("name", "title", "filename", "uri", "alt")

_KEPT: OrderedDict[str, tuple[JsonObject, int]] = OrderedDict()
_LOCK = Lock()


def set_media_aside(value: Json, *, simulated: bool = False) -> Json:
    """Return a result with a reference in the place of each content block that holds bytes; one without as it is.

    In a `simulated` result, which a model or a schema has made up, a named placeholder stands there: its bytes are no
    picture.
    """
    if not _has_media(value):
        return value
    if isinstance(value, list):
        return [set_media_aside(each, simulated=simulated) for each in value]
    kind = value.get("type")
    if isinstance(kind, str) and kind in _TYPES and (found := _find_bytes(value)):
        mime, text = found
        parts = [value, *(each for each in value.values() if isinstance(each, dict))]
        names = {key: each for key in _NAMES for inner in parts if isinstance(each := inner.get(key), str)}
        kind = next((kind for kind in ("image", "audio", "video") if mime.startswith(f"{kind}/")), "file")
        known: JsonObject = {"type": kind, "mime_type": mime, **names}
        if simulated:
            return {**known, "placeholder": f"a simulated {kind}"}
        try:
            return {**known, **_keep(value, kind, mime, text)}
        except NotBase64:
            return value
    return {key: set_media_aside(each, simulated=simulated) for key, each in value.items()}


def _has_media(value: Json) -> bool:
    if isinstance(value, list):
        return any(map(_has_media, value))
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    return (isinstance(kind, str) and kind in _TYPES) or any(map(_has_media, value.values()))


def show_media(value: Json) -> list[JsonObject]:
    """Return the content blocks that a result refers to, in its order: as the tool gave them, MCP's as LangChain's."""
    digests = dict.fromkeys(str(each["digest"]) for each in list_references(value) if "digest" in each)
    with _LOCK:
        found = [digest for digest in digests if digest in _KEPT][:MOST_SHOWN]
        for digest in found:
            _KEPT.move_to_end(digest)
        return [{**_KEPT[digest][0]} for digest in found]


def picture_of(reference: Json) -> str:
    """Return a reference's picture as a `data:` address for a page; empty if it is none, or is not kept."""
    mime, text = next(map(_find_bytes, show_media(reference)), None) or ("", "")
    is_picture = mime in ("image/png", "image/jpeg", "image/gif", "image/webp")
    return f"data:{mime};base64,{text}" if is_picture else ""


def as_mcp(block: JsonObject) -> JsonObject:
    mime, text = _find_bytes(block) or ("", "")
    if mime.startswith(("image/", "audio/")):
        return {"type": mime.partition("/")[0], "data": text, "mimeType": mime}
    return {"type": "resource", "resource": {"uri": f"data:{mime}", "blob": text, "mimeType": mime}}


def list_references(value: Json) -> Iterator[JsonObject]:
    """Return the references and placeholders in a result, in its order."""
    if isinstance(value, dict) and isinstance(value.get("mime_type"), str) and {"digest", "placeholder"} & value.keys():
        yield value
    for each in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        yield from list_references(each)


def _keep(block: JsonObject, kind: str, mime: str, text: str) -> JsonObject:
    size = len(text) * 3 // 4
    if size > MOST_BYTES:
        digest = hashlib.sha256(text.encode()).hexdigest()
        return {"bytes": size, "digest": f"sha256:{digest}", "left_out": f"larger than {MOST_BYTES:,} bytes"}
    content = base64.b64decode(text, validate=True)
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    is_mcp = "mimeType" in block or "blob" in block.get("resource", ())
    shown = {"type": kind, "base64": text, "mime_type": mime} if is_mcp else block
    with _LOCK:
        _KEPT[digest] = (shown, len(content))
        while sum(size for _, size in _KEPT.values()) > KEPT_BYTES:
            _KEPT.popitem(last=False)
    return {"bytes": len(content), "digest": digest}


def _find_bytes(block: JsonObject) -> tuple[str, str] | None:
    """Return the media type and the base64 of a content block; None if it has none, as of a web address."""
    part: Any = block["resource"] if isinstance(block.get("resource"), dict) else block
    mime, text = part.get("mimeType", part.get("mime_type")), part.get("blob", part.get("data"))
    if text is None or (mime is None and "blob" not in part):  # LangChain reads the nested ones of all providers
        with suppress(KeyError):
            (part,) = ToolMessage([block], tool_call_id="").content_blocks
        mime, text = part.get("mime_type"), part.get("base64")
        if text is None and str(part.get("url")).startswith("data:"):
            mime, _, text = part["url"].removeprefix("data:").partition(";base64,")
    mime = mime or "application/octet-stream"
    is_media = text and isinstance(text, str) and isinstance(mime, str) and not mime.startswith("text/")
    return (mime, text) if is_media else None
