"""Views of a rehearsal: `format_run` for a finished run, `watch` for a running one; text, or a table in a notebook."""

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
    """A readable rehearsal: text where it is printed, a table in a notebook."""

    rehearsal: Rehearsal = field(repr=False)
    width: int = WIDTH

    def __str__(self) -> str:
        from .tree import as_text, rehearsal_tree  # here, because importing rich is slow

        return as_text(rehearsal_tree(self.rehearsal), width=self.width)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from .page import rehearsal_page

        return rehearsal_page(self.rehearsal)


def format_run(run: Mapping[str, Any], *, width: int = WIDTH) -> RunText:
    """Format a run: attempts, calls, complaints, results with their rung, changes, verdict, cost.

    Args:
        run: The graph's output, or its `rehearsal`.
        width: Columns of the text, at least 40.

    Returns:
        An object that prints as a text tree and shows as a table in a notebook.

    Raises:
        GeckoError: `run` holds no rehearsal.
    """
    value = getattr(run, "value", None)  # of LangGraph's GraphOutput, which invoke(version="v2") returns
    run = value if isinstance(value, Mapping) else run
    rehearsal = run.get("rehearsal", run) if isinstance(run, Mapping) else None
    if not isinstance(rehearsal, Mapping) or "attempts" not in rehearsal:
        hint = "; pass the items of a list one by one" if isinstance(run, list | tuple) else ""
        hint = "; the run is paused" if isinstance(run, Mapping) and "__interrupt__" in run else hint
        raise GeckoError(f"expected the graph's output or its 'rehearsal', got {type(run).__name__} without one{hint}")
    return RunText(rehearsal, max(40, width))  # type: ignore[arg-type]


def __getattr__(name: str) -> Any:
    if name in ("watch", "awatch"):
        from . import watching  # here, because importing rich is slow

        return getattr(watching, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
