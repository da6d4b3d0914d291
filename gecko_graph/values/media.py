"""Images, sounds and files in results: the bytes are stored by digest, and a reference replaces them.

A reference is JSON: `{"type": "image", "mime_type": "image/png", "bytes": 6800, "digest": "sha256:..."}`. State,
records and prompts contain references only. `show_media` returns the stored blocks for the planner and for a page, as
long as this process has them.
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
"""Most bytes of one stored image, sound or file; the reference of a larger one has `left_out`."""
KEPT_BYTES = 64_000_000
"""Most bytes stored in this process; the least recently used are dropped."""
MOST_SHOWN = 20
"""Most media of one result that the planner sees."""

_TYPES = ("image", "audio", "video", "file", "document", "resource", "image_url", "input_audio", "media")
_NAMES = ("name", "title", "filename", "uri", "alt")

_KEPT: OrderedDict[str, tuple[JsonObject, int]] = OrderedDict()
_LOCK = Lock()


def set_media_aside(value: Json, *, simulated: bool = False) -> Json:
    """Return a result with references instead of content blocks with bytes; without any it is returned unchanged.

    In a `simulated` result a named placeholder replaces them: made-up bytes are no picture.
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
    """Return the stored content blocks that a result refers to, in order, MCP's in LangChain's form."""
    digests = dict.fromkeys(str(each["digest"]) for each in list_references(value) if "digest" in each)
    with _LOCK:
        found = [digest for digest in digests if digest in _KEPT][:MOST_SHOWN]
        for digest in found:
            _KEPT.move_to_end(digest)
        return [{**_KEPT[digest][0]} for digest in found]


def picture_of(reference: Json) -> str:
    """Return a reference's picture as a `data:` URL; "" if it is no picture, or is not stored."""
    mime, text = next(map(_find_bytes, show_media(reference)), None) or ("", "")
    is_picture = mime in ("image/png", "image/jpeg", "image/gif", "image/webp")
    return f"data:{mime};base64,{text}" if is_picture else ""


def as_mcp(block: JsonObject) -> JsonObject:
    mime, text = _find_bytes(block) or ("", "")
    if mime.startswith(("image/", "audio/")):
        return {"type": mime.partition("/")[0], "data": text, "mimeType": mime}
    return {"type": "resource", "resource": {"uri": f"data:{mime}", "blob": text, "mimeType": mime}}


def list_references(value: Json) -> Iterator[JsonObject]:
    """Yield the references and placeholders in a result, in order."""
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
    """Return the media type and base64 text of a content block, None if it has no bytes, as with a web address."""
    part: Any = block["resource"] if isinstance(block.get("resource"), dict) else block
    mime, text = part.get("mimeType", part.get("mime_type")), part.get("blob", part.get("data"))
    if text is None or (mime is None and "blob" not in part):  # LangChain parses the nested forms of all providers
        with suppress(KeyError):
            (part,) = ToolMessage([block], tool_call_id="").content_blocks
        mime, text = part.get("mime_type"), part.get("base64")
        if text is None and str(part.get("url")).startswith("data:"):
            mime, _, text = part["url"].removeprefix("data:").partition(";base64,")
    mime = mime or "application/octet-stream"
    is_media = text and isinstance(text, str) and isinstance(mime, str) and not mime.startswith("text/")
    return (mime, text) if is_media else None
