"""The public scorer beside ToolSandbox's public code (commit 165848b, polars 0.20.31) on random tables and graphs."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from evals.toolsandbox import suite
from evals.toolsandbox.public_code import PublicConstraint, match_publicly, read_goal, read_trajectory, score_publicly

pytest.importorskip("scipy")
FIXTURES = Path(__file__).parents[1] / "fixtures"


def read(name):
    return [json.loads(line) for line in (FIXTURES / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("kind", ["snapshot", "addition", "removal", "update", "guardrail"])
def test_similarities_are_the_public_codes(kind):
    """Nulls are zeros where tables are joined, else left out; a pair without a value makes all of it 0."""
    cases = [each for each in read("public_code_tables.jsonl") if each["kind"] == kind]
    assert len(cases) >= 20
    for case in cases:
        one = PublicConstraint("t", kind, tuple(case["rows"]), case["measures"], case["tolerance"], "before")
        found = one.compare({"t": case["now"]}, {"t": case["before"]})
        assert found == pytest.approx(case["similarity"], abs=1e-6), case


class Stub:
    """A milestone with a table of similarities."""

    threshold, text = 1.0, ""

    def __init__(self, number, case):
        self.id, self.case = str(number), case
        self.after = tuple(str(before) for before, after in case["edges"] if after == number)
        self.similarities, self.factors, reference = (case[key][number] for key in ("tabs", "gs", "refs"))
        self.references = frozenset(() if reference is None else (str(reference),))

    def compare(self, trajectory, place, places):
        factor = 1.0
        for name in self.references:
            factor = self.factors[places[name]]
        return self.similarities[place] * factor


def test_mappings_are_the_public_codes():
    for case in read("public_code_mappings.jsonl"):
        found = match_publicly([Stub(number, case) for number in range(case["n"])], [{}] * case["T"])
        placed = {each["id"]: [each["snapshot"], each["similarity"]] for each in found if each["snapshot"] is not None}
        assert placed == case["m"]


def compare(row):
    score = score_publicly(read_goal(row), read_trajectory(row))
    first, expected = row["first_user_message_index"], row["result"]
    return (
        all(suite._is_close(score[key], expected[key]) for key in suite._SCORES),
        suite._is_same(score["milestones"], expected["milestone_mapping"], first)
        and suite._is_same(score["minefields"], expected["minefield_mapping"], first),
    )


def test_a_wrong_score_and_a_wrong_mapping_are_found(read_jsonl):
    row = next(row for row in read_jsonl(suite.FILE) if row["variant"] == "drop_last")
    other = copy.deepcopy(row)
    other["result"]["similarity"] += 0.01
    assert compare(other) == (False, True)
    other = copy.deepcopy(row)
    other["result"]["milestone_mapping"]["0"][0] += 1
    assert compare(other) == (True, False)
