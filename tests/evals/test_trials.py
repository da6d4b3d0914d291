"""Several trials of a case, and pass^k."""

from __future__ import annotations

import json
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.harness.figures import Case, Table, rate
from evals.harness.runner import pass_hat
from evals.harness.suite import Suite, Summary

from .kept import read_summary


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.data())
def test_pass_hat_is_the_share_of_choices_without_a_failure(outcomes, data):
    k = data.draw(st.integers(1, len(outcomes)))
    choices = list(combinations(outcomes, k))
    expected = sum(all(each) for each in choices) / len(choices)
    assert pass_hat(sum(outcomes), len(outcomes), k) == pytest.approx(expected)


@pytest.mark.parametrize(("successes", "trials", "k"), [(2, 1, 1), (-1, 3, 1), (1, 3, 0), (1, 3, 4)])
def test_pass_hat_of_nothing_is_refused(successes, trials, k):
    with pytest.raises(ValueError, match="successes of"):
        pass_hat(successes, trials, k)


class Dice(Suite):
    """Whether the seed is even, in two groups."""

    name = "dice"
    tools = "simulated"

    def cases(self):
        return [Case(f"{group}_{n}", n, group=group) for group in ("a", "b") for n in range(3)]

    def run_case(self, case):
        return {"seed": self.options.seed, "won": (self.options.seed + case.data) % 2 == 0}

    def passed(self, record):
        return record.values["won"]

    def is_random(self):
        return True

    def summarise(self, records):
        table = Table("Won", ["group", "won"])
        table.add("all", rate(records, self.passed))
        return Summary([table], notes=[record.id for record in records])


class Loaded(Dice):
    """Always the same."""

    name = "loaded"

    def is_random(self):
        return super(Dice, self).is_random()


class Unscored(Dice):
    """Without pass or fail."""

    name = "unscored"
    passed = Suite.passed


def test_trials_have_seeds_of_their_own_and_a_table_of_pass_hats(run, tmp_path):
    assert run(Dice, "--trials", 3, "--seed", 10, "--only", "a*") == 0
    told = read_summary(tmp_path)
    over, won = told["figures"]
    assert over["columns"] == ["cases", "pass^1", "pass^2", "pass^3"]
    # seeds 10, 11, 12: cases 0 and 2 win twice, case 1 once
    assert [cell["value"] for cell in over["rows"][0][1:]] == pytest.approx([5 / 9, 2 / 9, 0])
    assert over["rows"][0][1]["n"] == 3
    assert (won["rows"][0][1]["hits"], won["rows"][0][1]["n"]) == (2, 3)  # the first trial's
    assert told["notes"][:3] == ["a_0", "a_1", "a_2"]
    assert told["cases"]["n"] == 9
    assert told["sessions"][0]["options"]["trials"] == 3
    lines = [json.loads(line) for line in (tmp_path / "out" / "cases.jsonl").read_text().splitlines()][1:]
    assert [(line["id"], line["values"]["seed"]) for line in lines[:3]] == [("a_0#1", 10), ("a_0#2", 11), ("a_0#3", 12)]


def test_a_limit_counts_cases_and_not_trials(run, tmp_path):
    assert run(Dice, "--trials", 5, "--limit", 2) == 0
    lines = (tmp_path / "out" / "cases.jsonl").read_text().splitlines()
    assert len(lines) == 1 + 2 * 5


def test_trials_of_a_run_without_chance_are_refused(run, capsys):
    assert run(Loaded, "--trials", 5) == 2
    assert "nothing is random here" in capsys.readouterr().err


def test_a_suite_without_pass_or_fail_has_no_trials(run, capsys):
    with pytest.raises(SystemExit):
        run(Unscored, "--trials", 5)
    assert "--trials" in capsys.readouterr().err
