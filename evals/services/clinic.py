"""A clinic with ten rules that its document does not state: learned from 300 calls, tested by the guard on 90 writes.

The service, its traffic and the held-out calls are outside the repository (`../shared/repros`). The service runs in a
separate process, with the Python of `CLINIC_PYTHON`, which needs fastapi and uvicorn.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from langchain.agents import create_agent

from gecko_graph import Toolkit
from gecko_graph.learning.learn import Learned, learn_contracts
from gecko_graph.learning.readers import read_file
from gecko_graph.learning.shows import with_observes
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.state import JsonObject
from gecko_graph.testing import scripted
from gecko_graph.values.notes import notes_of
from gecko_graph.values.observation import BadRows

from ..harness.figures import Record, Table
from ..harness.options import ROOT
from ..harness.suite import Expectation

PYTHON = os.environ.get("CLINIC_PYTHON", sys.executable)
CLINIC = ROOT.parent / "shared" / "repros" / "clinic"
TRAFFIC = ROOT.parent / "shared" / "repros" / "truth"
DOCUMENT, READS = CLINIC / "clinic.json", CLINIC / "reads.contracts.yaml"
RECORDED, SEEDS, STEPS, PATIENCE_S = "http://127.0.0.1:8399/w/", (101, 102), 5_000, 60.0
WEEKS = {
    "rarely reads first": ("traffic.har", "week", True),
    "reads around writes": ("traffic2.har", "week2", True),
    "reads around writes, observes learned": ("traffic2.har", "week2", False),
}
"""The weeks of traffic: the file, the path of its clinic, and whether contracts say what reads show."""

LEAST, MOST = 32, 1
"""Least number of 67 refusals predicted, most of 23 lawful writes warned about, after reads around writes."""

NEEDED = "clinic is skipped: CLINIC_PYTHON must name the Python of an environment with fastapi and uvicorn"


def is_there() -> bool:
    """Return whether the service can run here."""
    command = [PYTHON, "-c", "import fastapi, uvicorn"]
    return CLINIC.is_dir() and not subprocess.run(command, capture_output=True, check=False).returncode


def learn_week(week: str) -> tuple[Toolkit, Learned]:
    """Return the clinic's tools, and what is learned about them from a week of traffic."""
    file, run, is_said = WEEKS[week]
    toolkit, bad = Toolkit.from_openapi(str(DOCUMENT), server="http://clinic"), BadRows()
    toolkit = toolkit.with_contracts(str(READS)) if is_said else toolkit
    read = partial(read_file, TRAFFIC / file, bad, server=RECORDED + run)
    toolkit = with_observes(toolkit, read(toolkit=toolkit))
    return toolkit, learn_contracts(toolkit, read(toolkit=toolkit), bad=bad)


def measure(week: str) -> JsonObject:
    """Return what the guard predicts for the held-out writes after learning from a week."""
    _, learned = learn_week(week)
    counts = Counter[str]()
    with _served() as server:
        for seed in SEEDS:
            counts.update(_guarded(f"{server}/w/held-{seed}", WEEKS[week][2], {"contracts": learned.contracts}, seed))
    refused = counts["foreseen"] + counts["missed"]
    return {**counts, "refused": refused, "lawful": counts["warned lawful"] + counts["quiet"]}


def _guarded(server: str, is_said: bool, learned: JsonObject, seed: int) -> Iterator[str]:
    """Yield for each held-out write that is really made what the guard said about it."""
    httpx.get(f"{server}/vets", trust_env=False).raise_for_status()
    toolkit = Toolkit.from_openapi(str(DOCUMENT), server=server)
    toolkit = toolkit.with_contracts(str(READS)) if is_said else toolkit
    said = [{"call": name, "args": args} for name, args in _held_out()(seed)]
    guard = GeckoMiddleware(toolkit, mode="guard", learned=learned)
    agent = create_agent(scripted(*said, {"say": "Done."}), tools=toolkit.as_tools(), middleware=[guard])
    task: Any = {"messages": [("user", "Go on.")]}
    for message in agent.invoke(task, {"recursion_limit": STEPS})["messages"]:
        if message.type != "tool" or toolkit.is_read(message.name):
            continue
        is_refused = "detail" in message.text
        marks = message.additional_kwargs["gecko"]
        is_told = bool(notes_of(marks, "may_refuse") or marks.get("refused"))
        yield ("foreseen" if is_told else "missed") if is_refused else ("warned lawful" if is_told else "quiet")


def _held_out() -> Callable[[int], Sequence[tuple[str, JsonObject]]]:
    """Return the function that draws the calls, from a script outside the repository."""
    known: dict[str, Any] = {}
    exec((CLINIC / "guard.py").read_text(encoding="utf-8").partition("\nW=")[0], known)  # our own script
    function: Callable[[int], Sequence[tuple[str, JsonObject]]] = known["calls"]
    return function


@contextmanager
def _served() -> Iterator[str]:
    """Yield the address of a clinic in a temporary folder."""
    with TemporaryDirectory() as folder, socket.socket() as free:
        shutil.copy(CLINIC / "clinic.py", folder)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        command = [PYTHON, "-m", "uvicorn", "clinic:app", "--port", str(port), "--log-level", "error"]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_for(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def summarise(records: Sequence[Record], expected: list[Expectation]) -> Table:
    """Return the predictions by week, and add the expectations."""
    heads = ["learned from", "refused", "foreseen", "lawful", "warned of"]
    table = Table("The clinic's held-out writes, under guard", heads)
    for record in records:
        one, week = record.values, record.id.partition(":")[2]
        foreseen, wrongly = one.get("foreseen", 0), one.get("warned lawful", 0)
        table.add(week, one["refused"], foreseen, one["lawful"], wrongly)
        if week != "rarely reads first":
            holds = foreseen >= LEAST and wrongly <= MOST
            expected.append(
                Expectation(f"clinic, {week}: {LEAST} refusals foreseen, {MOST} false alarm at most", holds)
            )
    return table
