"""Read tools from documents and Python code, describe, select and export them."""

from __future__ import annotations

from .declaration import Tool
from .own_data import with_data
from .problems import Problem
from .spec import ToolExample, ToolSpec
from .toolkit import Toolkit

__all__ = ["Problem", "Tool", "ToolExample", "ToolSpec", "Toolkit", "with_data"]
