"""Running a suite of the tests' own, and the official package."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from evals import bfcl
from evals.bfcl import package
from evals.bfcl.tasks import read_tasks
from evals.harness import command
from evals.harness.options import EvalError

from .endpoint import Endpoint

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def own_place(monkeypatch):
    """Suites of the tests' own are found from the project's root."""
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.fixture
def run(tmp_path):
    """Run a suite in this process with its files under `tmp_path`; returns the exit code."""

    def go(kind, *words: object, out: str = "out") -> int:
        return command.run(kind, [*map(str, words), "--out", str(tmp_path / out)], called=kind.name)

    return go


@pytest.fixture(scope="session")
def official():
    """The official package; the test is skipped where it is not installed."""
    pytest.importorskip("mpmath", reason=package.INSTALL)
    try:
        return package.version()
    except EvalError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def tasks(official, shared_data):
    """Every task of the file, by id."""
    return {task.id: task for task in read_tasks(shared_data, bfcl.MULTI_TURN)}


@pytest.fixture
def endpoint():
    """Serve a script."""
    served = []

    def serve(*script):
        server = Endpoint(script)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        served.append(server)
        return server

    yield serve
    for server in served:
        server.shutdown()
        server.server_close()
