"""The way of a call through the house: the rooms whose functions are handed it, from planner to booking.

`python -m tests.walk` prints the way of a rehearsed call, and of a real one from its approval to its booking.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

import gecko_graph
from gecko_graph import Models, Tool, Toolkit, create_gecko, create_gecko_agent
from gecko_graph.testing import recorded
from tests.floors import LEVEL, room_of

ROOT = Path(gecko_graph.__file__).parent
ITEMS = [{"description": "it is paid", "check": "True"}]
CONTRACT = {"requires": [{"check": "args.amount > 0", "error": "no"}], "effects": [], "returns": "paid"}


def pay(amount: float) -> str:
    """Pay an amount."""
    return "paid"


class Walk:
    """Notes each room (a folder, or a file of the top level) whose function is handed the call `pay`."""

    def __init__(self) -> None:
        self.way: list[str] = []
        self.climbs: list[str] = []
        """Functions that a lower room called with the call, each `from → to`."""
        self.is_open = True

    def __call__(self, frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not self.is_open or not code.co_filename.startswith(str(ROOT)):
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if any(is_call(frame.f_locals.get(name)) for name in names):
            room, caller = room_of(Path(code.co_filename)), frame.f_back
            while caller and not caller.f_code.co_filename.startswith(str(ROOT)):
                caller = caller.f_back
            above = room_of(Path(caller.f_code.co_filename)) if caller else room
            if LEVEL.get(above, 0) < LEVEL.get(room, 0):
                self.climbs.append(f"{above} → {room}: {code.co_name}")
            self.way.append(room)
        self.is_open = code.co_name != "commit"

    @property
    def rooms(self) -> list[str]:
        return list(dict.fromkeys(self.way))


def is_call(value: Any) -> bool:
    """Return whether a value is the call, or a record that holds it."""
    if not isinstance(value, dict):
        return False
    return value.get("name") == "pay" or is_call(value.get("call"))


def follow(run: Callable[[], Any]) -> Walk:
    """Run something, and return the way of the call in it."""
    walk = Walk()
    threading.setprofile(walk)
    sys.setprofile(walk)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return walk


def rehearsed() -> Walk:
    """Follow a call from the planner to its booking on the task state."""
    tools = Toolkit.from_tools([Tool(pay, contract=CONTRACT, effect="write")])
    plan = [{"call": "pay", "args": {"amount": 5}}, {"say": "Done."}]
    gecko = create_gecko(tools, model=Models(planner=recorded(planner=[plan])))
    given = {"messages": [("user", "Pay 5")], "task_state": {}, "checklist": ITEMS}
    return follow(lambda: gecko.invoke(given))


def carried_out() -> Walk:
    """Follow a call from its approval to its booking."""
    tools = Toolkit.from_tools([Tool(pay, contract=CONTRACT, effect="write")])
    plan = [{"call": "pay", "args": {"amount": 5}}, {"say": "Done."}]
    agent = create_gecko_agent(tools, model=Models(planner=recorded(planner=[plan])), checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [("user", "Pay 5")], "task_state": {}, "checklist": ITEMS}, thread)
    return follow(lambda: agent.invoke(Command(resume=[{"type": "approve"}]), thread))


if __name__ == "__main__":
    for name, walk in (("rehearsed", rehearsed()), ("carried out", carried_out())):
        print(f"{name}: {len(walk.rooms)} rooms, {len(walk.way)} functions: {' → '.join(walk.rooms)}")
        print(f"  {len(walk.climbs)} climbs", *walk.climbs, sep="\n    ")
