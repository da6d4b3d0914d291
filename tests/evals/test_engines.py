"""The suite `engines`: what it counts of pairs, and that a random pair is the same for its seed."""

from __future__ import annotations

from evals.suites.engines import KINDS, compare


def test_pairs_are_counted_by_who_finds_them_valid():
    text, names = {"type": "string"}, {"patternProperties": {"^a": {"type": "string"}}}
    pairs = [(text, "a"), (text, 1), (text, float("nan")), (names, {"a": "b"})]
    found = compare(iter(pairs))
    assert {kind: found[kind] for kind in KINDS} == {
        "both_valid": 1, "both_wrong": 1, "only_quick": 0, "only_whole": 0, "untested": 2,
    }  # fmt: skip
    assert found["differing"] == []
