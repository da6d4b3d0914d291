"""Run, record and test scenarios (`conversation/scenario.py`), and the shipped examples."""

from __future__ import annotations

from ..conversation.scenario import Scenario, Turn
from ..tools.reading import read_toolkit
from .examples import examples, order_service, shipped
from .play import play, run_scenario
from .recorder import Recorder, record

__all__ = [
    "Recorder", "Scenario", "Turn", "examples", "order_service", "play", "read_toolkit", "record", "run_scenario",
    "shipped",
]  # fmt: skip
