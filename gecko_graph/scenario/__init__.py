"""Scenarios: files that each describe one case. Reading, running, recording, and the shipped examples."""

from __future__ import annotations

from .case import Scenario, Turn, examples, order_service, shipped
from .play import play, run_scenario
from .recorder import Recorder, record
from .tools import read_toolkit

__all__ = [
    "Recorder", "Scenario", "Turn", "examples", "order_service", "play", "read_toolkit", "record", "run_scenario",
    "shipped",
]  # fmt: skip
