"""Shared fixtures: where the recorded data lies, and a network that ends at this machine."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import os
import socket
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path

os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
os.environ["LANGSMITH_TRACING"] = "false"
os.environ.pop("OPENAI_API_KEY", None)

gc.set_threshold(50_000, 20, 20)  # imports and graphs are many objects that stay: at 700 it took a tenth of the time

# compile each module once, not once a process and run: the workers of `-n 3` would rewrite all asserts each time
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.pop("PYTHONUNBUFFERED", None)  # a command writes as a user's does

import pytest
from hypothesis import HealthCheck, settings
from langgraph._internal import _serde

if hasattr(_serde, "_collect_from_type"):  # strict: each compilation reads the same types, a fifth of its time
    _collect_anew = _serde.collect_allowlist_from_schemas
    _collect = cache(lambda kind: _collect_anew(schemas=[kind]))

    def _collect_all(*, schemas=None, channels=None):
        kinds = [
            getattr(each, name, None) for each in (channels or {}).values() for name in ("ValueType", "UpdateType")
        ]
        try:
            return set().union(*map(_collect, (*(schemas or ()), *kinds)))
        except TypeError:  # a type that has no hash
            return _collect_anew(schemas=schemas, channels=channels)

    _serde.collect_allowlist_from_schemas = _collect_all

# else the first asyncio test has a loop made that nobody closes, which older versions of pytest report in a later test
asyncio.set_event_loop(None)

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"

BUSY = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is no failure."""
settings.register_profile("gecko", BUSY)
settings.register_profile("gecko-ci", BUSY, derandomize=True)  # the same examples: nothing fails by luck
FAST = settings(BUSY, max_examples=25)  # for the fast loop; all of them in the whole
settings.register_profile("gecko-fast", FAST)
settings.load_profile("gecko")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the recorded evaluation data; the test is skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("recorded evaluation data (../shared/data) is not on this machine")
    return SHARED


@pytest.fixture(scope="session")
def read_jsonl(shared_data):
    """Read one gzipped JSONL file of the recorded data into a list."""

    def read(name: str) -> list[dict]:
        with gzip.open(shared_data / name, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    return read


@pytest.fixture(scope="session")
def studio_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("studio")


@pytest.fixture(scope="session")
def studio(studio_folder):
    """Address of LangGraph's development server (`tests/studio.py`)."""
    from tests.studio import serve

    with serve(studio_folder) as url:
        yield url


@pytest.fixture(scope="session")
def count_steps() -> Callable[[Callable[[], object]], int]:
    """How many functions, Python's and C's, a call enters: its cost as a number that is always the same."""

    def count(function: Callable[[], object]) -> int:
        steps = 0

        def note(frame, event, arg):
            nonlocal steps
            steps += event == "call" or event == "c_call"

        sys.setprofile(note)
        try:
            function()
        finally:
            sys.setprofile(None)
        return steps

    return count


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    """Pauses before real calls are repeated are as many as ever, and short."""
    for module in ("claims", "decisions"):
        monkeypatch.setattr(import_module(f"gecko_graph.real.{module}"), "BACKOFF_S", 0.002)


@pytest.fixture(scope="session", autouse=True)
def only_this_machine():
    """Any connection that leaves this machine fails the test."""
    connect = socket.socket.connect

    def guarded(self, address):
        host = address[0] if isinstance(address, tuple) else address
        if self.family != socket.AF_UNIX and host not in {"127.0.0.1", "localhost", "::1"}:
            raise AssertionError(f"a test tried to reach {host}")
        return connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield


SLOW = frozenset((Path(__file__).with_name("slow.txt")).read_text(encoding="utf-8").splitlines())
"""Tests of over a third of a second (`pytest -m "not slow" -n 3 --durations=200`), one row or all of its rows."""


def is_fast(config):
    return config.getoption("markexpr") == "not slow" and not config.getoption("hypothesis_profile", None)


def pytest_cmdline_main(config):
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no":
        config.option.dist = "worksteal"  # neighbours in one process: what they load is loaded once


def pytest_configure(config):
    if is_fast(config):
        settings.load_profile("gecko-fast")


def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.nodeid in SLOW or item.nodeid.partition("[")[0] in SLOW:
            item.add_marker(pytest.mark.slow)
        test = getattr(item, "function", None)
        own = getattr(test, "_hypothesis_internal_use_settings", None)  # also where a test says how many it wants
        if own and own.max_examples > FAST.max_examples and is_fast(config):
            test._hypothesis_internal_use_settings = settings(own, max_examples=FAST.max_examples)


def pytest_collection_finish():
    gc.freeze()  # thousands of collected tests: no later collection walks through them
