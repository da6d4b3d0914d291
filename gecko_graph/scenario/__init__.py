"""Scenarios: one file for a whole case. Reading, running, and the shipped examples."""

from __future__ import annotations

from .case import Scenario, Turn
from .play import play, run_scenario
from .shipped import examples, shipped
from .tools import read_toolkit

__all__ = ["Scenario", "Turn", "examples", "play", "read_toolkit", "run_scenario", "shipped"]
