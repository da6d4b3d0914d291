"""Tools: read from documents and Python, described, selected, written."""

from __future__ import annotations

from .problems import Problem
from .spec import ToolExample, ToolSpec
from .toolkit import Toolkit

__all__ = ["Problem", "ToolExample", "ToolSpec", "Toolkit"]
