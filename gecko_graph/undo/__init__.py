"""Undo: calls that revert writes, found by a search over forks of a `World`."""

from .finder import LIMIT_S, UndoFinder

__all__ = ["LIMIT_S", "UndoFinder"]
