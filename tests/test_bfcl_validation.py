"""Recorded calls of real models against the argument rules: the whole regression of the validation suite."""

from __future__ import annotations

from collections import Counter

import pytest

from evals.suites import validation
from gecko_graph.schemas.complaints import find_undecided
from gecko_graph.values.places import value_at


@pytest.fixture(scope="module")
def rules():
    return validation.Rules()


@pytest.fixture(scope="module")
def rows(shared_data, rules):
    return list(validation.read_rows(shared_data, rules))


@pytest.fixture(scope="module")
def refused(rows, rules):
    """What the rules have against each row."""
    return [rules.against(row) for row in rows]


@pytest.mark.slow
def test_every_correct_row_is_accepted_and_every_syntactic_one_refused(rows, refused):
    counts = Counter(row.label for row in rows)
    assert (counts["CORRECT"], counts["SYNTACTIC"]) == (15_388, 1_243)
    missed = [
        (row.answer["task_id"], row.answer["model"], found)
        for row, found in zip(rows, refused, strict=True)
        if (row.label == "CORRECT" and found) or (row.label == "SYNTACTIC" and not found)
    ]
    assert missed == []
    assert not set(validation.NOTHING_TO_VALIDATE) & set(counts)


def test_few_officially_valid_rows_are_refused_and_each_has_a_cause(rows, refused):
    valid = [(row, found) for row, found in zip(rows, refused, strict=True) if row.is_valid]
    assert len(valid) == 15_463
    false = [(row, found[0]) for row, found in valid if found]
    assert 0 < len(false) <= validation.MAX_FALSE
    assert all(validation.cause_of(found, row.answer["calls"], row.tools) for row, found in false)


def test_undecided_of_real_calls_names_places_that_are_there(rows):
    for row in [row for row in rows if row.label == "CORRECT"][::80]:
        for call in row.answer["calls"]:
            for place in find_undecided(row.tools[call["name"]].parameters, call["arguments"]):
                assert value_at(call["arguments"], place) is not None
