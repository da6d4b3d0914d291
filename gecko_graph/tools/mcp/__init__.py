"""Tools of MCP servers, over the official client (extra `mcp`): nothing else imports it."""

from __future__ import annotations

from typing import Any

from ...errors import ToolkitError


def load_reader() -> Any:
    """Return the module `reader`. Raises ToolkitError where the extra is not installed."""
    try:
        from . import reader
    except ImportError as error:
        raise ToolkitError(f"MCP needs the official client, 2.x: pip install 'gecko-graph[mcp]' ({error})") from None
    return reader
