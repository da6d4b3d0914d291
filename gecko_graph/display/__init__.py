"""Seeing a rehearsal: `format_run` once it is over, `watch` while it goes on; as text, or as a table in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import GeckoError
from ..state import Rehearsal

WIDTH = 100

__all__ = ["RunText", "awatch", "format_run", "watch"]


@dataclass(frozen=True, slots=True)
class RunText:
    """A rehearsal to read: text where it is printed, a table in a notebook."""

    rehearsal: Rehearsal = field(repr=False)
    width: int = WIDTH

    def __str__(self) -> str:
        from .tree import as_text, rehearsal_tree  # here, because rich takes its time to import

        return as_text(rehearsal_tree(self.rehearsal), width=self.width)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from .page import rehearsal_page

        return rehearsal_page(self.rehearsal)


def format_run(run: Mapping[str, Any], *, width: int = WIDTH) -> RunText:
    """A run to read: attempts, calls, complaints, results with their rung, changes, verdict, cost.

    Args:
        run: What the graph returned, or its `rehearsal`.
        width: Columns of the text, at least 40.

    Returns:
        An object that prints as a text tree and shows as a table in a notebook.

    Raises:
        GeckoError: There is no rehearsal in `run`.
    """
    value = getattr(run, "value", None)  # of LangGraph's GraphOutput, which invoke(version="v2") returns
    run = value if isinstance(value, Mapping) else run
    rehearsal = run.get("rehearsal", run) if isinstance(run, Mapping) else None
    if not isinstance(rehearsal, Mapping) or "attempts" not in rehearsal:
        each = "; of a list give it one by one" if isinstance(run, list | tuple) else ""
        each = "; the run is paused" if isinstance(run, Mapping) and "__interrupt__" in run else each
        raise GeckoError(f"format_run wants what the graph returned, or its 'rehearsal'; there is none here{each}")
    return RunText(rehearsal, max(40, width))  # type: ignore[arg-type]


def __getattr__(name: str) -> Any:
    if name in ("watch", "awatch"):
        from . import watching  # here, because rich takes its time to import

        return getattr(watching, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
