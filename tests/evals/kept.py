"""Suites of BFCL as a user starts them, and what a suite has kept."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from evals.__main__ import main

_SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=6)
_KEYS = st.integers(-9, 9) | st.text(max_size=3) | st.integers(0, 9).map(str)
VALUES = st.recursive(
    _SCALARS | st.sets(st.integers(0, 9), max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=12,
)
"""Values of Python, as BFCL's classes hold them."""


def start_bfcl(shared_data, tmp_path, *words):
    return main(["bfcl", "--data", str(shared_data), "--out", str(tmp_path / "out"), *words])


def kept_cases(tmp_path):
    lines = [json.loads(line) for line in (tmp_path / "out" / "cases.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == "case"]
