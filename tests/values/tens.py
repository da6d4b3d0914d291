"""Work for processes: in a module of its own, as each of them imports it."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

from gecko_graph.values.mapping import Work


@dataclass
class Tens(Work[list[int], list[int]]):
    """Ten times each; dies of 5 at first, and of 7 always; a ValueError is raised for 13."""

    folder: str = ""

    def begin(self):
        with open(f"{self.folder}/begun", "a") as file:
            file.write("x")
        return self.do

    def do(self, chunk):
        for each in chunk:
            if each == 7 or (each == 5 and not os.path.exists(f"{self.folder}/died")):
                open(f"{self.folder}/died", "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            if each == 13:
                raise ValueError("thirteen")
        return [each * 10 for each in chunk]

    def split(self, item):
        return [[each] for each in item]

    def lost(self, item):
        return [-each for each in item]


class Lost(Tens):
    """Names what it has lost."""

    def lost(self, item):
        return Work.lost(self, item)


@dataclass
class Large(Work[int, bytes]):
    """Gives 30 MB; each item's first process is killed some milliseconds later, in the midst of sending."""

    folder: str

    def begin(self):
        return self.do

    def do(self, after_ms):
        tried = Path(self.folder) / str(after_ms)
        if not tried.exists():
            tried.touch()
            Timer(after_ms / 1000, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return bytes(30_000_000)
