"""Conversations as test cases: found in files, run several at once, reported."""

from __future__ import annotations

from .find import find_cases, load_agent
from .result import CaseResult, run_case

__all__ = ["CaseResult", "find_cases", "load_agent", "run_case"]
