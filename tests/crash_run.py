"""A run of the desk that kills its own process at the n-th write of its checkpointer: `crash_run.py FILE N KIND`.

Run by tests/test_crash.py in a process of its own. Each real read appends a line to FILE.reads.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver

from gecko_graph import Models, Tool, create_gecko
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.tools import Toolkit
from tests import desk

THREAD = {"configurable": {"thread_id": "t"}}
READ = {"call": "rate", "args": {"currency": "EUR"}}


class Mortal(SqliteSaver):
    """Dies, as by kill -9, at the n-th write: before it (`before`) or when it is done (`after`)."""

    left = 10**9
    kind = "before"

    def _count(self) -> None:
        Mortal.left -= 1
        if Mortal.left == 0:
            os._exit(9)

    def put(self, *args, **kwargs):
        if self.kind == "before":
            self._count()
        done = super().put(*args, **kwargs)
        if self.kind == "after":
            self._count()
        return done

    def put_writes(self, *args, **kwargs):
        if self.kind == "before":
            self._count()
        super().put_writes(*args, **kwargs)
        if self.kind == "after":
            self._count()


def gecko(path: Path, saver: SqliteSaver):
    def rate(currency: str) -> dict:
        """Rate of a currency.

        Args:
            currency: its code
        """
        with open(f"{path}.reads", "a", encoding="utf-8") as log:
            log.write(currency + "\n")
        return {"rate": 1.25}

    tools = Toolkit([*desk.toolkit(), *Toolkit.from_tools([Tool(rate, effect="read")]).open("rate")])
    planner = [[READ, *desk.WRONG], [READ, *desk.RIGHT]]
    return create_gecko(tools, model=Models(planner=RecordedModel(turns=[{"planner": planner}])), checkpointer=saver)


class Connection(sqlite3.Connection):
    """Closed when nobody holds it any more: from 3.13 on Python warns of one that is left open."""

    def __del__(self):
        self.close()


def connect(path: Path) -> SqliteSaver:
    return SqliteSaver(sqlite3.connect(path, check_same_thread=False, factory=Connection))


def main(path: Path, count: int, kind: str) -> None:
    Mortal.left, Mortal.kind = count, kind
    saver = Mortal(sqlite3.connect(path, check_same_thread=False))
    gecko(path, saver).invoke(desk.inputs(), THREAD, durability="sync")


if __name__ == "__main__":
    targets = [argument.split("=") for argument in sys.argv[3:]]
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    for name, count in targets:
        child = os.fork()
        if child == 0:
            main(folder / name, int(count), kind)
            os._exit(0)
        os.waitpid(child, 0)
