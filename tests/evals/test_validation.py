"""The suite `validation`: its expectations."""

from __future__ import annotations

import pytest

from evals.harness.figures import Record
from evals.suites.validation import summary_of


def records(*pairs):
    """Records of (label, refused by)."""
    kinds = {"CORRECT": "valid", "CORRECT_SCHEMA_VIOLATION": "valid", "SYNTACTIC": "syntactic", "VALUE": "semantic"}
    for number, (label, by) in enumerate(pairs):
        facts = {"label": label, "kind": kinds[label], "model": "m", "error": "" if kinds[label] == "valid" else "e"}
        values = {"refused": bool(by), "by": by, "why": "because", "cause": "a cause"}
        yield Record(str(number), "simple", facts, "done", "", 0.0, "none", values)


@pytest.mark.parametrize(
    ("pairs", "holds"),
    [
        ([("CORRECT", ""), ("SYNTACTIC", "rule"), ("CORRECT_SCHEMA_VIOLATION", "rule"), ("VALUE", "")], [True] * 3),
        ([("CORRECT", "rule"), ("SYNTACTIC", "rule")], [False, True, True]),
        ([("CORRECT", "model"), ("SYNTACTIC", "rule")], [True] * 3),
        ([("CORRECT", ""), ("SYNTACTIC", "")], [True, False, True]),
        ([("CORRECT_SCHEMA_VIOLATION", "rule")] * 76, [True, True, False]),
    ],
)
def test_a_broken_rule_is_noticed_and_a_model_is_not_blamed_on_the_rules(pairs, holds):
    told = summary_of(list(records(*pairs)), asked=True, all_asked=True)
    assert [each.holds for each in told.expectations] == holds
