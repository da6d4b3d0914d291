"""Shared fixtures: where the recorded data lies."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"


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
