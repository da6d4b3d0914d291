"""Files of other formats that are given instead of an OpenAPI document, and what to do with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_CONVERT = "convert it to OpenAPI first"
_FORMATS: tuple[tuple[Callable[[Mapping[str, Any]], Any], str], ...] = (
    (lambda root: "_postman_id" in root["info"] or "getpostman" in root["info"]["schema"],
     f"a Postman collection: {_CONVERT}"),
    (lambda root: root["asyncapi"], f"an AsyncAPI document: {_CONVERT}"),
    (lambda root: root["kind"].startswith("discovery#"), f"a Google discovery document: {_CONVERT}"),
    (lambda root: root.get("data", root)["__schema"],
     "a GraphQL schema, which is not read: describe its operations as tools with `name`, `description`, `parameters`"),
    (lambda root: root["mcpServers"],
     "a configuration of MCP servers: in Python, Toolkit.from_mcp(...) takes its `mcpServers`"),
    (lambda root: root["log"]["entries"], "a HAR file with recorded calls: `gecko-graph learn` reads those"),
    (lambda root: root["arazzo"], "an Arazzo document: give the OpenAPI documents of its `sourceDescriptions`"),
)  # fmt: skip


def name_format(document: Any) -> str | None:
    """Return the name of a document's format, and what to do with it; None if it is none of those that are known."""
    for holds, name in _FORMATS if isinstance(document, Mapping) else ():
        try:
            if holds(document):
                return name
        except (KeyError, TypeError, AttributeError):
            continue
    return None
