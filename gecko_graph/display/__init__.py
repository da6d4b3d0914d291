"""Views of a run or conversation: `format_run` (finished), `watch` (running), `html_page` (a file)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

WIDTH = 100

__all__ = ["RunText", "awatch", "format_run", "html_page", "watch"]

_HOMES = {"awatch": ".live", "html_page": ".page", "watch": ".live"}


@dataclass(frozen=True, slots=True)
class RunText:
    """A readable run: text when printed, HTML in a notebook."""

    rehearsal: Any = field(repr=False)
    width: int = WIDTH

    def __str__(self) -> str:
        from .rows import list_rows
        from .text import as_text  # here: importing rich is slow

        return as_text(list_rows(self.rehearsal, waiting="running"), width=self.width)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from .page import html_part

        return html_part(self.rehearsal)


def format_run(run: Mapping[str, Any], *, width: int = WIDTH) -> RunText:
    """Format a run: attempts, calls, complaints, results with their rung, changes, verdict, cost.

    For an agent's run, also the calls that wait for a person's decision, or the calls that were really made. For a
    conversation its status, the missed milestones and all messages.

    Args:
        run: The graph's output, or its `rehearsal`.
        width: Columns of the text, at least 40.

    Returns:
        An object that prints as a text tree and is drawn as HTML in a notebook.

    Raises:
        GeckoError: `run` contains no rehearsal.
    """
    from .records import is_conversation, rehearsal_of

    if is_conversation(run):
        from .page import ConversationText

        return ConversationText(run, max(40, width))
    return RunText(rehearsal_of(run), max(40, width))


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), name)  # here: importing rich and jinja2 is slow
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
