"""Views of a rehearsal or a conversation: `format_run` for a finished run, `watch` for a running one, `html_page` for a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from textwrap import fill
from typing import Any

from ..state import Rehearsal

WIDTH = 100

__all__ = ["ConversationText", "RunText", "awatch", "format_run", "html_page", "watch"]

_HOMES = {"awatch": ".live", "html_page": ".page", "watch": ".live"}


@dataclass(frozen=True, slots=True)
class RunText:
    """A readable rehearsal: text where it is printed, HTML in a notebook."""

    rehearsal: Rehearsal = field(repr=False)
    width: int = WIDTH

    def __str__(self) -> str:
        from .rows import list_rows
        from .text import as_text  # here, because importing rich is slow

        return as_text(list_rows(self.rehearsal, waiting="going on"), width=self.width)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from .page import html_part

        return html_part(self.rehearsal)


@dataclass(frozen=True, slots=True)
class ConversationText:
    """A readable conversation: text where it is printed, HTML in a notebook."""

    output: Mapping[str, Any] = field(repr=False)
    width: int = WIDTH

    def __str__(self) -> str:
        from ..scenario.cases.result import read_conversation
        from .words import clean  # here, because importing them is slow

        result = read_conversation(self.output)
        lines = [*result.explain().partition("\n\n")[0].splitlines(), "", *result.lines()]
        return "\n".join(fill(clean(line), self.width, subsequent_indent=" " * 6) for line in lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from ..scenario.cases.result import read_conversation
        from .page import conversation_part

        return conversation_part(read_conversation(self.output))


def is_conversation(run: Any) -> bool:
    """Return whether this is the output of a conversation's graph."""
    return isinstance(run, Mapping) and {"messages", "world", "score"} <= run.keys()


def format_run(run: Mapping[str, Any], *, width: int = WIDTH) -> RunText | ConversationText:
    """Format a run: attempts, calls, complaints, results with their rung, changes, verdict, cost.

    Of an agent's run also the calls that a person is asked about, or those that were really made. Of a conversation its
    status, what was missed, and all messages.

    Args:
        run: The graph's output, or its `rehearsal`.
        width: Columns of the text, at least 40.

    Returns:
        An object that prints as a text tree and is drawn as HTML in a notebook.

    Raises:
        GeckoError: `run` holds no rehearsal.
    """
    from .records import rehearsal_of

    if is_conversation(run):
        return ConversationText(run, max(40, width))
    return RunText(rehearsal_of(run), max(40, width))


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), name)  # here, because importing rich and jinja2 is slow
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
