"""Tools: where they come from, what they say of themselves, what they promise."""

from __future__ import annotations

from .problems import Problem
from .spec import ToolExample, ToolSpec
from .toolkit import Toolkit

__all__ = ["Problem", "ToolExample", "ToolSpec", "Toolkit"]
